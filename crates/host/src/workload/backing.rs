//! Files behind regions: made by the recorder before the run, without a name, so that nothing is left behind however
//! the run ends. Workers open them as `/proc/PID/fd/N`.

use super::refusal::Refusal;
use super::worker;
use crate::Error;
use mmtwin_scenario::Scenario;
use mmtwin_scenario::units::{Bytes, PAGE};
use mmtwin_scenario::workload::{ActionKind, Huge, Region, RegionKind};
use rustix::fs::{MemfdFlags, memfd_create, statfs, statvfs};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// File systems that are memory themselves: `TMPFS_MAGIC` and `RAMFS_MAGIC` of the kernel.
const IN_MEMORY: [rustix::fs::FsWord; 2] = [0x0102_1994, 0x8584_58f6];

/// Blocks of a file that are in memory while it is made.
const AT_ONCE: u64 = 16;

/// A page, where a disk takes it from without a copy.
#[derive(Clone, Copy)]
#[repr(C, align(4096))]
struct Aligned([u8; PAGE as usize]);

/// The files of a run, open.
#[derive(Debug, Default)]
pub struct Backing {
    /// By process and region.
    files: BTreeMap<(usize, usize), PathBuf>,
    open: Vec<File>,
}

impl Backing {
    /// Makes the files of a scenario. Those on a disk are written in `directory`, to the disk, and then dropped from
    /// memory: the first access reads them.
    /// Before a file is made, `note` gets its path: it has a name for a moment.
    pub fn create(
        scenario: &Scenario,
        directory: &Path,
        note: &mut dyn FnMut(&Path) -> Result<(), Error>,
    ) -> Result<Backing, Error> {
        let mut backing = Backing::default();
        let mut named: BTreeMap<&str, PathBuf> = BTreeMap::new();
        for (p, process) in scenario.processes.iter().enumerate() {
            for (r, region) in process.regions.iter().enumerate() {
                let known = region.file.as_deref().and_then(|file| named.get(file)).cloned();
                let path = match (region.kind, known) {
                    (RegionKind::Anon, _) => continue,
                    (_, Some(path)) => path,
                    (RegionKind::Shmem, None) => backing.keep(in_memory(region)?),
                    (RegionKind::File, None) => backing.keep(on_disk(region, directory, note)?),
                };
                if let Some(file) = &region.file {
                    named.insert(file, path.clone());
                }
                backing.files.insert((p, r), path);
            }
        }
        Ok(backing)
    }

    /// The file behind each of the first `regions` regions of a process.
    pub fn of(&self, process: usize, regions: usize) -> Vec<Option<PathBuf>> {
        (0..regions).map(|region| self.files.get(&(process, region)).cloned()).collect()
    }

    fn keep(&mut self, file: File) -> PathBuf {
        let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        self.open.push(file);
        path.into()
    }
}

/// Regions of a scenario, those of the same file once.
pub fn distinct(scenario: &Scenario) -> Vec<&Region> {
    let mut named = std::collections::BTreeSet::new();
    let regions = scenario.processes.iter().flat_map(|process| &process.regions);
    regions.filter(|region| region.file.as_deref().is_none_or(|file| named.insert(file))).collect()
}

/// Why files on a disk are not available.
pub fn refusal(scenario: &Scenario, directory: &Path) -> Option<Refusal> {
    let regions = distinct(scenario);
    let wanted = regions.iter().filter(|r| r.kind == RegionKind::File).map(|r| worker::length(r)).sum::<u64>();
    let actions = scenario.processes.iter().flat_map(|process| &process.phases).flat_map(|phase| &phase.actions);
    // A file system in memory keeps no dentries of names that do not exist.
    let looks_up = actions.map(|action| &action.kind).any(|kind| matches!(kind, ActionKind::Lookup { .. }));
    if wanted == 0 && !looks_up {
        return None;
    }
    let given = match (statfs(directory), statvfs(directory)) {
        (Err(e), _) | (_, Err(e)) => e.to_string(),
        (Ok(kind), _) if IN_MEMORY.contains(&kind.f_type) => "it is in memory itself; a region of kind shmem is".into(),
        (_, Ok(space)) => match space.f_bavail.saturating_mul(space.f_frsize) {
            free if free < wanted => format!("{} are free", Bytes(free)),
            _ => return None,
        },
    };
    Some(Refusal::Disk { wanted: Bytes(wanted), directory: directory.display().to_string(), given })
}

fn in_memory(region: &Region) -> Result<File, Error> {
    let what = || format!("memory file of region {}", region.name);
    let huge =
        if region.huge == Huge::Hugetlb { MemfdFlags::HUGETLB | MemfdFlags::HUGE_2MB } else { MemfdFlags::empty() };
    let file = memfd_create(region.name.as_str(), MemfdFlags::CLOEXEC | huge).map_err(|e| Error::io(what(), e))?;
    let file = File::from(file);
    file.set_len(worker::length(region)).map_err(|e| Error::io(what(), e))?;
    Ok(file)
}

fn on_disk(region: &Region, directory: &Path, note: &mut dyn FnMut(&Path) -> Result<(), Error>) -> Result<File, Error> {
    let path = directory.join(format!(".mmtwin-{}-{}", std::process::id(), region.name.replace('/', "-")));
    let fail = |e| Error::io(path.display().to_string(), e);
    note(&path)?;
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).map_err(fail)?;
    // Past the page cache where that is possible: a file larger than memory would begin the run with memory reclaimed.
    let direct = OpenOptions::new().write(true).custom_flags(libc::O_DIRECT).open(&path);
    std::fs::remove_file(&path).map_err(fail)?;
    let mut writer = direct.as_ref().unwrap_or(&file);
    // Blocks that are written: reading one that is only reserved needs no disk.
    let block: Vec<Aligned> = (0..256).map(|page| Aligned([(page / 7) as u8; PAGE as usize])).collect();
    // SAFETY: pages that follow each other without gaps, of bytes.
    let block = unsafe { std::slice::from_raw_parts(block.as_ptr().cast::<u8>(), size_of_val(block.as_slice())) };
    let length = worker::length(region);
    let mut written = 0;
    while written < length {
        let part = (length - written).min(block.len() as u64);
        writer.write_all(&block[..part as usize]).map_err(fail)?;
        written += part;
        if written % (AT_ONCE * block.len() as u64) == 0 || written == length {
            file.sync_all().map_err(fail)?;
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).map_err(|e| fail(e.into()))?;
        }
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "[machine]\n[[machine.node]]\ncpus = \"0\"\nmemory = \"1 GiB\"\n[kernel]\nrelease = \"6.1\"\n\
        [[process]]\nname = \"a\"\n[[process.region]]\nname = \"x\"\nsize = \"64 KiB\"\nkind = \"shmem\"\n\
        file = \"s\"\n[[process.region]]\nname = \"y\"\nsize = \"1 MiB\"\n\
        [[process]]\nname = \"b\"\n[[process.region]]\nname = \"x\"\nsize = \"64 KiB\"\nkind = \"shmem\"\n\
        file = \"s\"\n[[process.region]]\nname = \"z\"\nsize = \"5000 B\"\nkind = \"file\"\n";

    #[test]
    fn regions_of_one_file_share_it_and_nothing_is_left() {
        let scenario = mmtwin_scenario::parse("s", TEXT, Path::new(""), &[]).unwrap_or_else(|f| panic!("{f}"));
        let root = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let backing = Backing::create(&scenario, root.path(), &mut |_| Ok(())).unwrap();
        let (a, b) = (backing.of(0, 2), backing.of(1, 2));
        assert!(a[0].is_some() && a[0] == b[0] && a[1].is_none() && b[1].is_some() && b[1] != b[0]);
        assert_eq!(std::fs::metadata(a[0].as_ref().unwrap()).unwrap().len(), 64 << 10);
        assert_eq!(std::fs::metadata(b[1].as_ref().unwrap()).unwrap().len(), 8192);
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0, "files have no name");
        assert_eq!(distinct(&scenario).len(), 3);
    }

    #[test]
    fn files_need_a_disk() {
        let scenario = mmtwin_scenario::parse("s", TEXT, Path::new(""), &[]).unwrap();
        let message = |directory: &str| refusal(&scenario, Path::new(directory)).map(|refusal| refusal.to_string());
        assert!(message("/no/such/place").unwrap().starts_with("files of 8 KiB in /no/such/place: "));
        assert_eq!(message(env!("CARGO_MANIFEST_DIR")), None);
    }
}
