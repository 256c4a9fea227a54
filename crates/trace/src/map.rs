//! Files as bytes in memory, and which of them an address belongs to.
//!
//! A mapped file that another process shortens cannot be read behind its new end: the kernel sends SIGBUS. A program
//! can catch it and say which file it was, with [`file_at`].

use crate::Error;
use memmap2::Mmap;
use std::fs::File;
use std::ops::Deref;
use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicUsize, Ordering};

/// Bytes that are kept of a file's name, from its end.
const NAME: usize = 240;

/// A mapped file.
pub(crate) struct Mapped {
    map: Mmap,
    slot: &'static Slot,
}

/// Where a file is mapped, for a signal handler: only atomics, never freed, used again when a map is gone.
struct Slot {
    /// First address; 0: free. 1: being filled.
    start: AtomicUsize,
    len: AtomicUsize,
    name: [AtomicU8; NAME],
    named: AtomicUsize,
    next: AtomicPtr<Slot>,
}

static SLOTS: AtomicPtr<Slot> = AtomicPtr::new(std::ptr::null_mut());
/// Free slots, about: a recording of thousands of CPUs does not look through the list for each of them.
static FREE: AtomicUsize = AtomicUsize::new(0);

/// All slots, the newest first.
fn slots() -> impl Iterator<Item = &'static Slot> {
    // SAFETY: the list holds pointers of leaked boxes only, which live for ever and are only read and stored to as
    // atomics.
    let at = |slot: *mut Slot| unsafe { slot.as_ref() };
    std::iter::successors(at(SLOTS.load(Ordering::Acquire)), move |slot| at(slot.next.load(Ordering::Acquire)))
}

impl Slot {
    /// A slot that nobody else has.
    fn take() -> &'static Slot {
        let free = |slot: &&Slot| slot.start.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if FREE.load(Ordering::Relaxed) > 0
            && let Some(slot) = slots().find(free)
        {
            FREE.fetch_sub(1, Ordering::Relaxed);
            return slot;
        }
        let slot: &'static mut Slot = Box::leak(Box::new(Slot {
            start: AtomicUsize::new(1),
            len: AtomicUsize::new(0),
            name: [const { AtomicU8::new(0) }; NAME],
            named: AtomicUsize::new(0),
            next: AtomicPtr::new(std::ptr::null_mut()),
        }));
        let slot: *mut Slot = slot;
        let mut first = SLOTS.load(Ordering::Acquire);
        loop {
            // SAFETY: `slot` is a leaked box.
            let slot_ref: &'static Slot = unsafe { &*slot };
            slot_ref.next.store(first, Ordering::Release);
            match SLOTS.compare_exchange(first, slot, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return slot_ref,
                Err(other) => first = other,
            }
        }
    }
}

/// Name of the mapped file that holds an address, as far as it was kept, and its length. Safe in a signal handler.
pub fn file_at(address: usize) -> Option<([u8; NAME], usize)> {
    let slot = slots().find(|slot| {
        let start = slot.start.load(Ordering::Acquire);
        start > 1 && (start..start + slot.len.load(Ordering::Acquire)).contains(&address)
    })?;
    let name = std::array::from_fn(|i| slot.name[i].load(Ordering::Relaxed));
    Some((name, slot.named.load(Ordering::Relaxed).min(NAME)))
}

/// Maps a file; `None` if it is empty.
pub(crate) fn map(name: &str, file: &File) -> Result<Option<Mapped>, Error> {
    if file.metadata().map_err(|e| Error::io(name, e))?.len() == 0 {
        return Ok(None);
    }
    // SAFETY: the map is only read, as bytes, and every reader checks its offsets against the length. A file that
    // another process shortens meanwhile ends this process with SIGBUS, of which the program makes a message.
    let map = unsafe { Mmap::map(file) }.map_err(|e| Error::io(name, e))?;
    let slot = Slot::take();
    let kept = &name.as_bytes()[name.len().saturating_sub(NAME)..];
    kept.iter().zip(&slot.name).for_each(|(byte, kept)| kept.store(*byte, Ordering::Relaxed));
    slot.named.store(kept.len(), Ordering::Relaxed);
    slot.len.store(map.len(), Ordering::Release);
    slot.start.store(map.as_ptr() as usize, Ordering::Release);
    Ok(Some(Mapped { map, slot }))
}

impl Deref for Mapped {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.map
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        self.slot.start.store(0, Ordering::Release);
        FREE.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn an_address_is_known_while_its_file_is_mapped() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"some bytes").unwrap();
        let long = "x".repeat(NAME) + "/the file";
        let mapped = map(&long, &file).unwrap().unwrap();
        let (address, end) = (mapped.as_ptr() as usize, mapped.as_ptr() as usize + mapped.len());
        let (name, length) = file_at(address + 3).unwrap();
        assert!(length == NAME && name.ends_with(b"/the file"));
        assert!(file_at(end).is_none());
        let other = map("b", &file).unwrap().unwrap();
        assert_eq!(file_at(other.as_ptr() as usize).unwrap().1, 1);
        drop(mapped);
        assert!(file_at(address).is_none());
    }
}
