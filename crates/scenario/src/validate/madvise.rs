//! Actions that free memory: calls on a region, limits of a cgroup, reclaim of one.

use crate::Scenario;
use crate::check::Check;
use crate::kernel::CgroupVersion;
use crate::units::Bytes;
use crate::workload::{Advice, Discard, Huge, Process, RegionKind, Sharing};
use mmtwin_event::KernelRelease;

/// The first release with `MADV_FREE`.
const MADV_FREE: (u32, u32) = (4, 5);
/// The first release with `memory.reclaim`.
const MEMORY_RECLAIM: (u32, u32) = (5, 19);

/// A call on pages of a region, by a number of threads.
pub(super) fn discard(
    scenario: &Scenario,
    process: &Process,
    (name, how, threads): (&str, Discard, usize),
    path: &str,
    check: &mut Check<'_>,
) {
    let Some(region) = process.regions.iter().find(|region| region.name == name) else {
        return check
            .fault(&format!("{path}.region"), format!("process \"{}\" has no region \"{name}\"", process.name));
    };
    let private = region.sharing == Sharing::Private || process.threads == 1;
    check.require(private || threads == 1, &format!("{path}.threads"), || {
        format!("pages of \"{name}\", which all threads share, are freed by one thread, such as \"0\"")
    });
    check.require(region.huge != Huge::Hugetlb, &format!("{path}.region"), || {
        "reserved huge pages are not freed by a call".into()
    });
    if let Discard::Advice(advice) = how {
        let path = format!("{path}.advice");
        check.require(!region.locked, &path, || format!("\"{name}\" is locked, which the kernel does not free"));
        let free = advice == Advice::Free;
        check.require(!free || region.kind == RegionKind::Anon, &path, || {
            "the kernel takes \"free\" for anonymous memory only".into()
        });
        check.require(!free || since(scenario, MADV_FREE), &path, || {
            format!("kernel {} has no MADV_FREE, which 4.5 brought", scenario.kernel.release)
        });
    }
}

/// Writing to a file of a cgroup: a limit, or how much to reclaim.
pub(super) fn cgroup(scenario: &Scenario, name: &str, reclaim: Option<Bytes>, path: &str, check: &mut Check<'_>) {
    let known = scenario.cgroups.iter().any(|cgroup| cgroup.name == name);
    check.require(known, &format!("{path}.name"), || format!("there is no cgroup {name}"));
    check.require(scenario.kernel.cgroup == CgroupVersion::V2, &format!("{path}.kind"), || {
        "the files are those of cgroup v2; kernel.cgroup is \"v1\"".into()
    });
    if let Some(size) = reclaim {
        check.require(size.pages() > 0, &format!("{path}.size"), || "at least a page is reclaimed".into());
        check.require(since(scenario, MEMORY_RECLAIM), &format!("{path}.kind"), || {
            format!("kernel {} has no memory.reclaim, which 5.19 brought", scenario.kernel.release)
        });
    }
}

/// The scenario's kernel is of this release or later.
fn since(scenario: &Scenario, first: (u32, u32)) -> bool {
    // A version that cannot be read has its own error.
    KernelRelease::parse(&scenario.kernel.version).is_none_or(|release| release.is_at_least(first.0, first.1))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    const TEXT: &str = "[machine]\n[[machine.node]]\ncpus = \"0\"\nmemory = \"1 GiB\"\n[[cgroup]]\nname = \"/box\"\n\
                        [[process]]\nname = \"p\"\nthreads = 2\n[[process.region]]\nname = \"heap\"\nsize = \"1 MiB\"\n\
                        [[process.region]]\nname = \"own\"\nsize = \"1 MiB\"\nsharing = \"private\"\nlocked = true\n\
                        [[process.region]]\nname = \"file\"\nsize = \"1 MiB\"\nkind = \"file\"\n\
                        [[process.phase]]\n[[process.phase.action]]\n";

    fn refused(release: &str, action: &str) -> String {
        let text = format!("{TEXT}{action}\n[kernel]\nrelease = \"{release}\"\n");
        let faults = crate::parse("s", &text, Path::new(""), &[]).err();
        faults.map_or(String::new(), |faults| faults.to_string())
    }

    #[test]
    fn calls_that_the_kernel_takes() {
        for action in [
            "kind = \"madvise\"\nregion = \"heap\"\nadvice = \"free\"\nthreads = \"1\"\ncount = 3\ninterval = \"1 s\"",
            "kind = \"munmap\"\nregion = \"own\"\nfrom = \"50 %\"",
            "kind = \"madvise\"\nregion = \"file\"\nadvice = \"dontneed\"\nto = 0.5\nthreads = \"0\"",
            "kind = \"cgroup-limit\"\nname = \"/box\"\nlimit = \"memory.max\"\nsize = \"64 MiB\"",
            "kind = \"cgroup-limit\"\nname = \"/box\"\nlimit = \"memory.high\"",
            "kind = \"memory-reclaim\"\nname = \"/box\"\nsize = \"64 MiB\"",
        ] {
            assert_eq!(refused("6.1", action), "", "{action}");
        }
    }

    #[test]
    fn calls_that_it_refuses() {
        for (release, action, why) in [
            ("6.1", "kind = \"munmap\"\nregion = \"none\"", "has no region \"none\""),
            ("6.1", "kind = \"munmap\"\nregion = \"heap\"", "are freed by one thread"),
            ("6.1", "kind = \"munmap\"\nregion = \"own\"\nadvice = \"free\"", "\"munmap\" has no such key"),
            ("6.1", "kind = \"munmap\"\nregion = \"own\"\nfrom = 0.5\nto = 0.5", "end behind their beginning"),
            ("6.1", "kind = \"madvise\"\nregion = \"own\"\nadvice = \"dontneed\"", "is locked"),
            (
                "6.1",
                "kind = \"madvise\"\nregion = \"file\"\nadvice = \"free\"\nthreads = \"0\"",
                "anonymous memory only",
            ),
            ("3.13", "kind = \"madvise\"\nregion = \"heap\"\nadvice = \"free\"\nthreads = \"0\"", "no MADV_FREE"),
            ("6.1", "kind = \"memory-reclaim\"\nname = \"/none\"\nsize = \"1 MiB\"", "there is no cgroup /none"),
            ("6.1", "kind = \"memory-reclaim\"\nname = \"/box\"", "needs `size`"),
            ("6.1", "kind = \"cgroup-limit\"\nname = \"/box\"\nlimit = \"memory.none\"", "memory.none"),
            ("4.13", "kind = \"memory-reclaim\"\nname = \"/box\"\nsize = \"1 MiB\"", "memory.reclaim"),
        ] {
            let refused = refused(release, action);
            assert!(refused.contains(why), "{action}: {refused}");
        }
    }
}
