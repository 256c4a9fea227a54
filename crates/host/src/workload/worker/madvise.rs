//! Memory that is freed: system calls on pages of a region, limits of a cgroup, reclaim of one.

use super::action::Doer;
use super::region;
use crate::{Error, clock};
use mmtwin_event::results::ActionResult;
use mmtwin_scenario::program;
use mmtwin_scenario::units::{Bytes, PAGE};
use mmtwin_scenario::workload::{ActionKind, Advice, Discard, Limit};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Does an action of this kind until it is done or it is `deadline`; what is known beforehand is in `result`.
pub fn perform(
    action: &ActionKind,
    doer: &Doer<'_>,
    deadline: u64,
    mut result: ActionResult,
) -> Result<ActionResult, Error> {
    match action {
        ActionKind::Discard { region, how, range, count, interval } => {
            let Some((index, pages)) = program::discarded(doer.process, doer.number, region, *range) else {
                return Ok(result);
            };
            let (offset, length) = ((pages.start * PAGE) as usize, ((pages.end - pages.start) * PAGE) as usize);
            let mut next = clock::now();
            while result.operations < *count && length > 0 {
                let begin = clock::now();
                if begin >= deadline {
                    break;
                }
                discard(doer, index, *how, offset, length)?;
                result.operations += 1;
                result.time += clock::now() - begin;
                next += interval.0;
                if *interval != Default::default() && result.operations < *count {
                    std::thread::sleep(Duration::from_nanos(next.min(deadline).saturating_sub(clock::now())));
                }
            }
        }
        ActionKind::CgroupLimit { cgroup, limit, size } => {
            let none = if matches!(limit, Limit::Low | Limit::Min) { "0" } else { "max" };
            let text = size.map_or(none.to_string(), |Bytes(size)| size.to_string());
            let path = file(doer, cgroup, &limit.to_string())?;
            fs::write(&path, &text).map_err(|e| Error::io(format!("{} = {text}", path.display()), e))?;
            result.operations = 1;
        }
        ActionKind::MemoryReclaim { cgroup, size: Bytes(size) } => {
            let path = file(doer, cgroup, "memory.reclaim")?;
            match fs::write(&path, size.to_string()) {
                Ok(()) => result.operations = 1,
                // It has reclaimed what it could.
                Err(e) if e.raw_os_error() == Some(libc::EAGAIN) => result.failures = 1,
                Err(e) => return Err(Error::io(format!("{} = {size}", path.display()), e)),
            }
        }
        _ => return Err(Error::io(result.kind, io::Error::from(io::ErrorKind::Unsupported))),
    }
    Ok(result)
}

/// A file of a cgroup of the scenario.
fn file(doer: &Doer<'_>, cgroup: &str, name: &str) -> Result<PathBuf, Error> {
    let found = doer.cgroups.iter().find(|(of, _)| of == cgroup);
    let (_, directory) = found.ok_or_else(|| Error::io(cgroup, io::Error::from(io::ErrorKind::NotFound)))?;
    Ok(directory.join(name))
}

/// One call on a part of a region.
fn discard(doer: &Doer<'_>, index: usize, how: Discard, offset: usize, length: usize) -> Result<(), Error> {
    let (region, mapped) = (&doer.process.regions[index], &doer.regions[index]);
    let advice = match how {
        Discard::Advice(Advice::Dontneed) => libc::MADV_DONTNEED,
        Discard::Advice(Advice::Free) => libc::MADV_FREE,
        Discard::Unmap => return region::renew(region, mapped, offset, length, doer.machine),
    };
    // SAFETY: the part lies in the mapping, whose content is any numbers.
    let done = unsafe { libc::madvise(mapped.base.add(offset).cast(), length, advice) };
    match done {
        0 => Ok(()),
        _ => Err(Error::io(format!("madvise of region {}", region.name), io::Error::last_os_error())),
    }
}

#[cfg(test)]
mod tests {
    use super::super::action::perform;
    use super::super::region::map;
    use super::*;
    use mmtwin_scenario::Scenario;
    use std::path::Path;

    const PAGES: usize = 256;

    fn scenario() -> Scenario {
        let text = "[machine]\n[[machine.node]]\ncpus = \"0\"\nmemory = \"1 GiB\"\n[kernel]\nrelease = \"6.1\"\n\
                    [[cgroup]]\nname = \"/box\"\n[[process]]\nname = \"p\"\n[[process.region]]\nname = \"heap\"\n\
                    size = \"1 MiB\"\nhuge = \"never\"\n";
        mmtwin_scenario::parse("s", text, Path::new(""), &[]).unwrap()
    }

    /// Pages that are in memory.
    fn resident(mapped: &region::Mapped) -> usize {
        let mut pages = vec![0u8; PAGES];
        // SAFETY: the kernel writes a byte per page of the mapping.
        assert_eq!(unsafe { libc::mincore(mapped.base.cast(), mapped.length, pages.as_mut_ptr()) }, 0);
        pages.iter().filter(|page| **page & 1 == 1).count()
    }

    #[test]
    fn pages_of_a_region_are_freed() {
        let scenario = scenario();
        let (process, machine, directory) = (&scenario.processes[0], &scenario.machine, Path::new("."));
        let regions = [map(&process.regions[0], None, machine).unwrap()];
        let doer =
            Doer { process, machine, directory, regions: &regions, cgroups: &[], number: 0, threads: 1, first: true };
        // SAFETY: the mapping is private to the test.
        let write = || (0..PAGES).for_each(|page| unsafe { regions[0].base.add(page * 4096).write(1) });
        for (how, left) in
            [(Discard::Advice(Advice::Dontneed), 64), (Discard::Unmap, 64), (Discard::Advice(Advice::Free), 256)]
        {
            write();
            let range = ["25 %", "1"].map(|share| share.parse().unwrap());
            let (region, interval) = ("heap".into(), Default::default());
            let action = ActionKind::Discard { region, how, range, count: 2, interval };
            let result = perform(&action, &doer, u64::MAX).unwrap();
            assert_eq!((result.operations, resident(&regions[0])), (2, left), "{how:?}");
            assert!(result.detail.starts_with("heap") && result.detail.ends_with("25 % to 100 %"), "{}", result.detail);
        }
        write();
        assert_eq!(resident(&regions[0]), PAGES);
    }

    #[test]
    fn files_of_a_cgroup_are_written() {
        let (scenario, cgroup) = (scenario(), tempfile::tempdir().unwrap());
        let cgroups = [("/box".to_string(), cgroup.path().to_path_buf())];
        let (process, machine, directory) = (&scenario.processes[0], &scenario.machine, Path::new("."));
        let doer =
            Doer { process, machine, directory, regions: &[], cgroups: &cgroups, number: 0, threads: 1, first: true };
        let limit = |limit, size| ActionKind::CgroupLimit { cgroup: "/box".into(), limit, size };
        for (action, file, text) in [
            (limit(Limit::Max, Some(Bytes(1 << 20))), "memory.max", "1048576"),
            (limit(Limit::High, None), "memory.high", "max"),
            (limit(Limit::Low, None), "memory.low", "0"),
            (ActionKind::MemoryReclaim { cgroup: "/box".into(), size: Bytes(8192) }, "memory.reclaim", "8192"),
        ] {
            assert_eq!(perform(&action, &doer, u64::MAX).unwrap().operations, 1);
            assert_eq!(fs::read_to_string(cgroup.path().join(file)).unwrap(), text);
        }
        let other = ActionKind::MemoryReclaim { cgroup: "/other".into(), size: Bytes(1) };
        assert!(perform(&other, &doer, u64::MAX).is_err());
    }
}
