//! The memory of a process: its regions mapped as the scenario says.

use crate::Error;
use crate::workload::policy::MemPolicy;
use mmtwin_scenario::Machine;
use mmtwin_scenario::units::PAGE;
use mmtwin_scenario::workload::{Huge, Region, RegionKind};
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// Size of a huge page.
pub const HUGE: usize = 2 << 20;
/// Regions begin at a multiple of this, and below [`END`]. The kernel interleaves by address, of which it takes 32 bits
/// without those within a page: page 0 of a region, and its first huge page, is then number 0 for any number of nodes up
/// to 8, and not for what the layout of the address space happens to be.
const ALIGNMENT: usize = 840 * HUGE;
/// Where the first region is tried: below what programs and the kernel place themselves.
const FIRST: usize = ALIGNMENT * 640;
/// No region ends behind this.
const END: usize = 1 << 44;

/// A mapped region. Its memory stays mapped until the process ends.
#[derive(Debug)]
pub struct Mapped {
    /// First byte.
    pub base: *mut u8,
    /// Bytes.
    pub length: usize,
    /// The file behind it, if it has one.
    pub file: Option<File>,
}

// SAFETY: the mapping stays until the process ends, though parts of it are replaced in place by new ones, and every
// access to it is atomic (`touch`).
unsafe impl Sync for Mapped {}
// SAFETY: as above.
unsafe impl Send for Mapped {}

/// Bytes that a region takes: whole pages of its kind.
pub fn length(region: &Region) -> u64 {
    let page = if region.huge == Huge::Hugetlb { HUGE as u64 } else { PAGE };
    region.size.0.next_multiple_of(page)
}

/// Maps a region; `file` is what backs it.
pub fn map(region: &Region, file: Option<&Path>, machine: &Machine) -> Result<Mapped, Error> {
    let fail = |what: &str, e: io::Error| Error::io(format!("{what} of region {}", region.name), e);
    let file = file.map(|path| OpenOptions::new().read(true).write(true).open(path));
    let file = file.transpose().map_err(|e| fail("file", e))?;
    let length = usize::try_from(length(region)).map_err(|_| fail("size", io::ErrorKind::OutOfMemory.into()))?;
    let base = place(length, region, file.as_ref()).map_err(|e| fail("mapping", e))?;
    attributes(region, base, length, machine)?;
    Ok(Mapped { base, length, file })
}

/// Unmaps a part of a region, of whole pages, and maps the place again as the scenario says: one call does both, so that
/// the place never belongs to anything else.
pub fn renew(region: &Region, mapped: &Mapped, offset: usize, length: usize, machine: &Machine) -> Result<(), Error> {
    // SAFETY: the part lies in the mapping.
    let base = unsafe { mapped.base.add(offset) };
    over(base, length, region, mapped.file.as_ref(), offset)
        .map_err(|e| Error::io(format!("mapping of region {}", region.name), e))?;
    attributes(region, base, length, machine)
}

/// Advice, memory policy and locks of a mapping that was just made.
fn attributes(region: &Region, base: *mut u8, length: usize, machine: &Machine) -> Result<(), Error> {
    let fail = |what: &str, e: io::Error| Error::io(format!("{what} of region {}", region.name), e);
    let advice = match region.huge {
        Huge::Madvise => Some(libc::MADV_HUGEPAGE),
        Huge::Never => Some(libc::MADV_NOHUGEPAGE),
        Huge::Default | Huge::Hugetlb => None,
    };
    if let Some(advice) = advice {
        // SAFETY: the range is the mapping just made; the advice does not change its content.
        let result = unsafe { libc::madvise(base.cast(), length, advice) };
        // A kernel without huge pages needs no advice against them.
        if result != 0 && region.huge == Huge::Madvise {
            return Err(fail("huge pages", io::Error::last_os_error()));
        }
    }
    if let Some(policy) = &region.policy {
        MemPolicy::of(policy, machine).set_for_range(base, length).map_err(|e| fail("memory policy", e))?;
    }
    if region.locked {
        // Pages are locked when they are first touched, by whoever accesses them: locking must not access them here.
        // SAFETY: the range is the mapping just made; locking does not change its content.
        let result = unsafe { libc::syscall(libc::SYS_mlock2, base, length, libc::MLOCK_ONFAULT) };
        if result != 0 {
            return Err(fail("locking", io::Error::last_os_error()));
        }
    }
    Ok(())
}

/// Maps it at a multiple of [`ALIGNMENT`] with unmapped space behind it, so that it is never merged with a neighbour.
fn place(length: usize, region: &Region, file: Option<&File>) -> io::Result<*mut u8> {
    let around = length.checked_add(HUGE).ok_or(io::ErrorKind::OutOfMemory)?;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let mut address = FIRST;
    loop {
        if address.checked_add(around).is_none_or(|end| end > END) {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let only_free = flags | libc::MAP_FIXED_NOREPLACE;
        // SAFETY: a new mapping that replaces none. (A kernel before 4.17 takes the address for a wish.)
        let space = unsafe { libc::mmap(address as *mut _, around, libc::PROT_NONE, only_free, -1, 0) };
        if space as usize == address {
            break;
        }
        if space != libc::MAP_FAILED {
            // SAFETY: the mapping just made, which it is not known of.
            unsafe { libc::munmap(space, around) };
        } else if io::Error::last_os_error().raw_os_error() != Some(libc::EEXIST) {
            return Err(io::Error::last_os_error());
        }
        address += ALIGNMENT;
    }
    over(address as *mut u8, length, region, file, 0)
}

/// Maps a part of a region over what is at its place, from `offset` bytes in its file on.
fn over(address: *mut u8, length: usize, region: &Region, file: Option<&File>, offset: usize) -> io::Result<*mut u8> {
    use std::os::fd::AsRawFd;
    let anonymous = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let execute = if region.exec { libc::PROT_EXEC } else { 0 };
    let huge = if region.huge == Huge::Hugetlb { libc::MAP_HUGETLB | libc::MAP_HUGE_2MB } else { 0 };
    let (flags, fd) = match (region.kind, file) {
        (RegionKind::File | RegionKind::Shmem, Some(file)) => (libc::MAP_SHARED, file.as_raw_fd()),
        _ => (anonymous | huge, -1),
    };
    let offset = if fd == -1 { 0 } else { offset as libc::off_t };
    let protection = libc::PROT_READ | libc::PROT_WRITE | execute;
    // SAFETY: the range lies in the space reserved for the region, which nothing else uses.
    let base = unsafe { libc::mmap(address.cast(), length, protection, flags | libc::MAP_FIXED, fd, offset) };
    if base == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(base.cast()) }
}
