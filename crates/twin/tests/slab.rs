//! Names that are looked up: dentries fill blocks of slab, and shrinkers free them.

use crate::common::scenario::{Finished, ran, refused};
use mmtwin_event::results::Ending;

/// A machine of 128 MiB with a process that looks up names beside one that reads a file of 128 MiB.
fn finder(release: &str, names: u64) -> String {
    format!(
        "[machine]\nname = \"m\"\ndistance = [[10]]\n[[machine.node]]\ncpus = \"0-2\"\nmemory = \"128 MiB\"\n\
         [machine.disk]\nbandwidth = \"1 GB/s\"\n[kernel]\nrelease = \"{release}\"\nthp = \"never\"\n\
         sysctl = {{ \"kernel.numa_balancing\" = 0 }}\n[run]\nevents = [\"vmscan:*\", \"kmem:mm_page_*\"]\n\
         [[process]]\nname = \"finder\"\ncpus = \"0\"\n[[process.phase]]\n[[process.phase.action]]\nkind = \"lookup\"\n\
         count = {names}\n[[process]]\nname = \"reader\"\ncpus = \"1\"\n[[process.region]]\nname = \"file\"\n\
         size = \"128 MiB\"\nkind = \"file\"\n[[process.phase]]\n[[process.phase.access]]\nregion = \"file\"\n\
         pattern = \"sequential\"\nvia = \"syscall\"\nthink = \"10 us\"\ncount = 32768\n"
    )
}

/// Pages in use at the end, but for those of files.
fn taken(run: &Finished) -> u64 {
    let alloc = &run.kernel.alloc;
    let lists = |zone| (0..3).filter_map(|cpu| alloc.pageset(zone, cpu)).map(|list| list.count).sum::<u64>();
    let used = |zone: usize| alloc.zones[zone].managed - alloc.free_pages(zone) - lists(zone);
    alloc.populated().map(used).sum::<u64>() - run.counter("vmstat", "", "nr_file_pages")
}

fn pages(run: &Finished) -> (u64, u64) {
    let of = |name: &str| run.counter("vmstat", "", name);
    (of("pgalloc_dma") + of("pgalloc_dma32") + of("pgalloc_normal"), of("pgfree"))
}

#[test]
fn names_take_a_page_each_21_of_them() {
    let run = ran(&finder("6.1", 21_000).replace("count = 32768", "count = 1"));
    let (allocated, freed) = pages(&run);
    // One page was read, with those that were read ahead, and its table is freed with the process.
    assert!((1_000..1_100).contains(&(allocated - freed)), "{allocated} {freed}");
    assert_eq!((run.results.phases[0].actions[0].operations, run.counter("vmstat", "", "slabs_scanned")), (21_000, 0));
}

#[test]
fn shrinkers_free_pages() {
    // 300,000 names are 56 MiB. A process sleeps until RCU has freed all.
    let sleeper = "[[process]]\nname = \"sleeper\"\n[[process.phase]]\nduration = \"10 s\"\n";
    let run = ran(&format!("{}{sleeper}", finder("6.1", 300_000)));
    assert_eq!(run.results.ending, Ending::Completed);
    let of = |name: &str| run.counter("vmstat", "", name);
    let scanned = of("slabs_scanned");
    assert!(scanned > 20_000 && scanned.is_multiple_of(1024), "{scanned}");
    // Memory still in use is that of the file, of dentries that were not scanned, of the file's index, whose nodes have
    // 64 pages each and fill pairs of pages, 14 to a pair, and of a few partly filled blocks.
    let index = (32_768 / 64u64).div_ceil(14) * 2;
    let (slab, left) = (taken(&run) - index, (300_000 - scanned) / 21);
    assert!((left..left + 50).contains(&slab), "{slab} pages of {left}");
    // As large a part is scanned of the cache as of the lists.
    assert!(of("pgsteal_kswapd") > scanned / 21, "{scanned}");
}

#[test]
fn nodes_of_the_index_stay_with_shadows() {
    // A file of four times the memory, whose 2,048 nodes fill pairs of pages, 14 to a pair.
    let file = |kernel: &str| {
        ran(&format!(
            "[machine]\nname = \"m\"\ndistance = [[10]]\n[[machine.node]]\ncpus = \"0-2\"\nmemory = \"128 MiB\"\n\
             [machine.disk]\nbandwidth = \"1 GB/s\"\n[kernel]\n{kernel}\n[[process]]\nname = \"reader\"\n\
             [[process.region]]\nname = \"file\"\nsize = \"512 MiB\"\nkind = \"file\"\n[[process.phase]]\n\
             [[process.phase.access]]\nregion = \"file\"\npattern = \"sequential\"\nvia = \"syscall\"\n\
             count = 131072\n[[process]]\nname = \"end\"\n[[process.phase]]\nduration = \"10 s\"\n"
        ))
    };
    let [before, since] = ["release = \"3.5\"", "release = \"6.1\"\nthp = \"never\""].map(file);
    let all = 2048u64.div_ceil(14) * 2;
    assert!((all..all + 30).contains(&taken(&since)), "{} pages of {all}", taken(&since));
    // Of what is in memory yet, and of blocks that are not quite empty.
    let present = (before.counter("vmstat", "", "nr_file_pages") / 64).div_ceil(14) * 2;
    assert!((present..present + 30).contains(&taken(&before)), "{} pages of {present}", taken(&before));
}

#[test]
fn pressure_decides_between_names_and_pages() {
    let scanned = |pressure: &str| {
        let sysctl = format!("\"kernel.numa_balancing\" = 0, \"vm.vfs_cache_pressure\" = {pressure}");
        let run = ran(&finder("6.1", 300_000).replace("\"kernel.numa_balancing\" = 0", &sysctl));
        run.counter("vmstat", "", "slabs_scanned")
    };
    let [never, half, usual, more] = ["0", "50", "100", "400"].map(scanned);
    assert!(never == 0 && 0 < half && half < usual && usual < more, "{never} {half} {usual} {more}");
}

#[test]
fn a_kernel_of_2010_has_no_dentries() {
    let message = refused(&finder("2.6.36", 1).replace("sysctl = { \"kernel.numa_balancing\" = 0 }\n", ""));
    assert!(message.contains("process \"finder\": looking up names"), "{message}");
}
