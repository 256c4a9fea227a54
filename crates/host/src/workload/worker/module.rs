//! Work that only a kernel module can do: allocating pages and vmalloc areas as the kernel does for itself.
//!
//! This is the one place where the module's interface is called; its source and the interface's meaning are in
//! `crates/lab/module`. Pages are allocated in the context of the calling thread, in parts, so that a phase ends in
//! time; vmalloc areas in a kernel thread per thread of the action, which all begin when the last one has come. An
//! action of pages ends with the first allocation that fails, which is counted.

use super::action::Doer;
use super::purges::Purges;
use crate::workload::policy::MemPolicy;
use crate::{Error, clock};
use mmtwin_event::results::ActionResult;
use mmtwin_scenario::units::PageRate;
use mmtwin_scenario::workload::{ActionKind, Gfp, Policy, VmallocTest};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd};
use std::path::Path;
use std::time::Duration;

/// Where the module is called.
pub const DEVICE: &str = "/dev/mmtwin";

/// Allocations in one call: some 100 us, after which the clock is read.
const PART: u64 = 256;

/// True if an action is work of a kernel module.
pub fn needed(action: &ActionKind) -> bool {
    matches!(action, ActionKind::PageLoop { .. } | ActionKind::PageHog { .. } | ActionKind::VmallocTest { .. })
}

/// `struct mmtwin_pages`.
#[repr(C)]
#[derive(Debug, Default)]
struct PagesCall {
    gfp: u32,
    order: u32,
    node: i32,
    failed: u32,
    hold: u64,
    count: u64,
    done: u64,
}

/// `struct mmtwin_result`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct TestResult {
    loops: u64,
    failures: u64,
    time: u64,
}

/// `struct mmtwin_vmalloc`.
#[repr(C)]
#[derive(Debug, Default)]
struct VmallocCall {
    threads: u32,
    tests: u32,
    repeat: u32,
    pages: u32,
    loops: u64,
    deadline: u64,
    start: u64,
    end: u64,
    freed: u64,
    results: [TestResult; 3],
}

/// A structure that the module reads and writes.
///
/// # Safety
/// It is the structure of this number in the module's header: `repr(C)`, of plain numbers, without padding.
unsafe trait Call: Sized {
    const NUMBER: u8;
    /// What the header's `_IOWR` makes of it: both directions, size, type and number.
    const REQUEST: libc::c_ulong = 3 << 30
        | (size_of::<Self>() as libc::c_ulong) << 16
        | (b'm' as libc::c_ulong) << 8
        | Self::NUMBER as libc::c_ulong;
}

// SAFETY: the fields are those of `struct mmtwin_pages`, in its order.
unsafe impl Call for PagesCall {
    const NUMBER: u8 = 0x40;
}

// SAFETY: the fields are those of `struct mmtwin_vmalloc`, in its order.
unsafe impl Call for VmallocCall {
    const NUMBER: u8 = 0x41;
}

fn open() -> Result<File, Error> {
    let file = File::options().read(true).write(true).open(DEVICE);
    file.map_err(|e| Error::io(DEVICE, e))
}

fn call<C: Call>(file: &File, work: &mut C) -> Result<(), Error> {
    // SAFETY: the module reads and writes as many bytes at `work` as the request says, which is its size; all bits
    // that it may write are a value of `C`, which consists of numbers.
    let status = unsafe { libc::ioctl(file.as_raw_fd(), C::REQUEST as _, std::ptr::from_mut(work)) };
    if status == 0 { Ok(()) } else { Err(Error::io(DEVICE, io::Error::last_os_error())) }
}

/// Does an action of this kind until it is done or it is `deadline`; what is known beforehand is in `result`.
pub fn perform(
    action: &ActionKind,
    doer: &Doer<'_>,
    deadline: u64,
    mut result: ActionResult,
) -> Result<ActionResult, Error> {
    match action {
        ActionKind::PageLoop { order, gfp, node, policy, hold, count, rate } => {
            let call = PagesCall { gfp: number(*gfp), order: *order, hold: *hold, ..node_of(*node) };
            result.detail = format!("order {order}, {gfp}, hold {hold}");
            let file =
                with_policy(*node, policy.as_ref(), doer, || allocate(call, *count, *rate, deadline, &mut result))?;
            let begin = clock::now();
            // Frees what is held.
            drop(file);
            result.time += clock::now() - begin;
        }
        ActionKind::PageHog { order, gfp, node, policy, count, rate } => {
            let call = PagesCall { gfp: number(*gfp), order: *order, hold: 0, ..node_of(*node) };
            result.detail = format!("order {order}, {gfp}");
            let file =
                with_policy(*node, policy.as_ref(), doer, || allocate(call, *count, *rate, deadline, &mut result))?;
            // Its pages are kept until the process ends.
            let _ = file.into_raw_fd();
        }
        ActionKind::VmallocTest { tests, loops, repeat, pages } => {
            let mask = tests.iter().fold(0, |mask, test| mask | test.bit());
            result.detail = format!("run_test_mask={mask:#x}");
            let (threads, loops, repeat, pages) = (doer.threads, *loops, *repeat, *pages);
            let call = VmallocCall { threads, tests: mask, repeat, pages, loops, deadline, ..VmallocCall::default() };
            test_vmalloc(call, tests, doer.first, &mut result)?;
        }
        _ => return Err(Error::io(result.kind, io::Error::from(io::ErrorKind::Unsupported))),
    }
    Ok(result)
}

fn number(gfp: Gfp) -> u32 {
    match gfp {
        Gfp::Atomic => 0,
        Gfp::Kernel => 1,
        Gfp::HighuserMovable => 2,
        Gfp::TransHugeLight => 3,
    }
}

fn node_of(node: Option<u32>) -> PagesCall {
    // The scenario has been checked: its nodes are few.
    PagesCall { node: node.map_or(-1, |node| node as i32), ..PagesCall::default() }
}

/// Does something with the action's memory policy, if it has one of its own, and goes back to that of the process.
fn with_policy<T>(
    node: Option<u32>,
    policy: Option<&Policy>,
    doer: &Doer<'_>,
    work: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    let own = policy.filter(|_| node.is_none());
    let set = |policy: &Policy| {
        MemPolicy::of(policy, doer.machine).set_for_thread().map_err(|e| Error::io("memory policy", e))
    };
    own.map_or(Ok(()), set)?;
    let done = work()?;
    own.map_or(Ok(()), |_| set(&doer.process.policy))?;
    Ok(done)
}

/// Allocates as a page action says. Returns the file that holds the pages.
fn allocate(
    mut work: PagesCall,
    count: Option<u64>,
    rate: Option<PageRate>,
    deadline: u64,
    result: &mut ActionResult,
) -> Result<File, Error> {
    let file = open()?;
    let begin = clock::now();
    let mut paused = 0;
    loop {
        let now = clock::now();
        let left = count.map_or(u64::MAX, |count| count.saturating_sub(result.operations));
        if now >= deadline || left == 0 {
            break;
        }
        if let Some(wait) = rate.map(|rate| begin.saturating_add(due(result.operations, work.order, rate)))
            && wait > now
        {
            std::thread::sleep(Duration::from_nanos(wait.min(deadline) - now));
            paused += clock::now() - now;
            continue;
        }
        let may = rate.map_or(PART, |rate| allowed(now - begin, work.order, rate) - result.operations);
        work.count = left.min(may).min(PART);
        call(&file, &mut work)?;
        result.operations += work.done;
        if work.failed != 0 {
            result.failures += 1;
            break;
        }
    }
    result.time = clock::now() - begin - paused;
    Ok(file)
}

/// Nanoseconds after the beginning at which the next allocation may be done when so many are.
fn due(done: u64, order: u32, rate: PageRate) -> u64 {
    let pages = u128::from(done) << order;
    u64::try_from(pages * 1_000_000_000 / u128::from(rate.0.max(1))).unwrap_or(u64::MAX)
}

/// Allocations that may be done so many nanoseconds after the beginning: all those that are [`due`].
fn allowed(after: u64, order: u32, rate: PageRate) -> u64 {
    let per_second = u128::from(rate.0.max(1));
    // The last one whose time, rounded down, has come.
    let allocations = ((u128::from(after) + 1) * per_second - 1) / (1_000_000_000 << order) + 1;
    u64::try_from(allocations).unwrap_or(u64::MAX)
}

/// Runs the tests together with the other threads. The `first` times the purges of all.
fn test_vmalloc(
    mut work: VmallocCall,
    tests: &[VmallocTest],
    first: bool,
    result: &mut ActionResult,
) -> Result<(), Error> {
    let file = open()?;
    // Those that come later wait until the first one is there too.
    let purges = first.then(Purges::begin).flatten();
    call(&file, &mut work)?;
    if let Some(purges) = purges {
        purges.end(result);
    }
    result.operations = work.freed;
    result.time = if work.start == 0 { 0 } else { work.end - work.start };
    for test in tests {
        let of = work.results[test.bit().trailing_zeros() as usize];
        result.failures += of.failures;
        result.more.insert(format!("{test}_loops"), of.loops as f64);
        result.more.insert(format!("{test}_us"), of.time as f64 / 1e3);
    }
    Ok(())
}

/// Whether the module can be called.
pub fn access() -> Result<(), rustix::io::Errno> {
    use rustix::fs::Access;
    rustix::fs::access(Path::new(DEVICE), Access::READ_OK | Access::WRITE_OK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn structures_have_the_sizes_that_their_numbers_say() {
        assert_eq!(PagesCall::REQUEST, 0xc028_6d40);
        assert_eq!(VmallocCall::REQUEST, 0xc080_6d41);
        // Fields side by side: no padding.
        assert_eq!(size_of::<PagesCall>(), 4 * 4 + 3 * 8);
        assert_eq!(size_of::<VmallocCall>(), 4 * 4 + 5 * 8 + 9 * 8);
    }

    #[test]
    fn fields_are_those_of_the_header() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../lab/module/mmtwin.h");
        let header = std::fs::read_to_string(path).expect("the header of the module");
        let fields = |name: &str| -> Vec<String> {
            let body = header.split(&format!("struct {name} {{")).nth(1).and_then(|rest| rest.split("};").next());
            let lines = body.unwrap_or_else(|| panic!("no {name}")).lines();
            lines.filter_map(|line| Some(line.split_once(';')?.0.trim().to_string())).collect()
        };
        let pages =
            ["__u32 gfp", "__u32 order", "__s32 node", "__u32 failed", "__u64 hold", "__u64 count", "__u64 done"];
        assert_eq!(fields("mmtwin_pages"), pages);
        assert_eq!(fields("mmtwin_result"), ["__u64 loops", "__u64 failures", "__u64 time"]);
        let vmalloc = [
            "__u32 threads",
            "__u32 tests",
            "__u32 repeat",
            "__u32 pages",
            "__u64 loops",
            "__u64 deadline",
            "__u64 start",
            "__u64 end",
            "__u64 freed",
            "struct mmtwin_result results[MMTWIN_TESTS]",
        ];
        assert_eq!(fields("mmtwin_vmalloc"), vmalloc);
        assert!(header.contains("_IOWR('m', 0x40, struct mmtwin_pages)"));
        assert!(header.contains("_IOWR('m', 0x41, struct mmtwin_vmalloc)"));
        let place = |word: &str| header.find(&format!("\t{word},")).unwrap_or_else(|| panic!("no {word}"));
        let flags = [Gfp::Atomic, Gfp::Kernel, Gfp::HighuserMovable, Gfp::TransHugeLight];
        assert_eq!(flags.map(number), [0, 1, 2, 3]);
        assert!(flags.map(|gfp| place(&format!("MMTWIN_{gfp}"))).is_sorted());
        assert!(["FIX_SIZE", "FULL_FIT", "LONG_BUSY_LIST"].map(|test| place(&format!("MMTWIN_{test}"))).is_sorted());
    }

    proptest! {
        #[test]
        fn an_allocation_is_allowed_from_its_time_on(done in 0u64..1 << 40, order in 0u32..=10, rate in 1u64..1 << 40) {
            let rate = PageRate(rate);
            let at = due(done, order, rate);
            prop_assert!(allowed(at, order, rate) > done);
            prop_assert!(at == 0 || allowed(at - 1, order, rate) <= done);
        }
    }
}
