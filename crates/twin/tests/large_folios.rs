//! Files that are read ahead in large folios (`kernel.filemap.large_folios`): what is allocated, referenced, reclaimed,
//! written, moved and removed as one.

use crate::common::scenario::ran;

/// A machine of 256 MiB on which one process works on a file of `size` MiB in these phases.
fn text(large: bool, size: u64, phases: &str) -> String {
    format!(
        "[machine]\ndistance = [[10]]\n[[machine.node]]\ncpus = \"0-1\"\nmemory = \"256 MiB\"\n\
         [kernel]\nrelease = \"7.3\"\nthp = \"never\"\nfilemap.large_folios = {large}\n\
         sysctl = {{ \"kernel.numa_balancing\" = 0 }}\n[[process]]\nname = \"p\"\n\
         [[process.region]]\nname = \"file\"\nsize = \"{size} MiB\"\nkind = \"file\"\n{phases}\
         [run]\nseed = 1\nsample = \"100 ms\"\n"
    )
}

/// A phase of one access of the file.
fn phase(access: &str) -> String {
    format!("[[process.phase]]\n[[process.phase.access]]\nregion = \"file\"\n{access}\n")
}

const STREAM: &str = "pattern = \"sequential\"\nvia = \"syscall\"\ncount = 98_304";

#[test]
fn a_stream_reads_the_same_pages_and_reclaims_whole_folios() {
    let [single, large] = [false, true].map(|large| ran(&text(large, 384, &phase(STREAM))));
    let count = |name: &str| [&single, &large].map(|run| run.counter("vmstat", "", name));
    assert_eq!(count("pgpgin"), [4 * 98_304; 2]);
    let [pages, folios] = count("pgsteal_file");
    // Half of the file has to go. A batch ends with the folio that reaches its size.
    assert!(pages > 30_000 && folios.abs_diff(pages) < 3_000, "{pages} {folios}");
    // A sequence of reads of a folio is one use of it: nothing is activated.
    assert_eq!(count("pgactivate"), [0, 0]);
}

#[test]
fn two_uses_of_a_folio_activate_all_of_its_pages() {
    let again = "pattern = \"uniform\"\nvia = \"syscall\"\ncount = 3_000";
    let phases = phase("pattern = \"sequential\"\nvia = \"syscall\"\ncount = 16_384") + &phase(again);
    let [single, large] = [false, true].map(|large| ran(&text(large, 64, &phases)).counter("vmstat", "", "pgactivate"));
    // Of 16,384 pages 3,000 are used again, of 512 folios of 32 nearly all.
    assert!((1_000..3_000).contains(&single) && large > 14_000, "{single} {large}");
}

#[test]
fn a_folio_is_dirty_and_written_as_one_and_its_clean_pages_are_not_written() {
    let write = "pattern = \"uniform\"\nvia = \"syscall\"\nwrite = 1.0\ncount = 400";
    let phases = phase("pattern = \"sequential\"\nvia = \"syscall\"\ncount = 16_384") + &phase(write);
    let run = ran(&text(true, 64, &(phases + "[[process.phase]]\nduration = \"60 s\"\n")));
    let count = |name: &str| run.counter("vmstat", "", name);
    let (dirtied, out) = (count("nr_dirtied"), count("pgpgout") / 4);
    assert!(dirtied > 5_000 && count("nr_written") == dirtied, "{dirtied} {}", count("nr_written"));
    assert!((300..=500).contains(&out), "{out}: 400 pages and what the journal takes");
    assert_eq!([count("nr_dirty"), count("nr_writeback")], [0, 0]);
}

/// Reads, mapped reads and writes of a file that does not fit; then it is deleted, and the first window of a new one read.
#[test]
fn nothing_is_left_of_a_file_that_is_gone() {
    for large in [false, true] {
        let phases = [
            "pattern = \"sequential\"\nvia = \"syscall\"\ncount = 98_304",
            "pattern = \"sequential\"\nvia = \"mmap\"\ncount = 98_304",
            "pattern = \"zipf\"\nskew = 0.9\nvia = \"mmap\"\nwrite = 0.3\ncount = 60_000",
            "pattern = \"uniform\"\nvia = \"syscall\"\nwrite = 0.3\ncount = 60_000",
            "pattern = \"sequential\"\nvia = \"syscall\"\nrecycle = true\ncount = 98_305",
        ];
        let run = ran(&text(large, 384, &phases.map(phase).concat()));
        let count = |name: &str| run.counter("vmstat", "", name);
        assert!(count("pgsteal_file") > 100_000 && count("pgactivate") > 0);
        let left = ["nr_mapped", "nr_isolated_file", "nr_writeback", "nr_dirty", "nr_file_pages"].map(count);
        assert_eq!(left, [0, 0, 0, 0, 4], "large {large}");
    }
}

/// Three threads read and delete a third of a file each, again and again; read-ahead goes beyond the thirds, which do not end
/// where folios do.
#[test]
fn a_folio_of_which_a_part_is_deleted_is_split() {
    let access = "pattern = \"sequential\"\nsharing = \"private\"\nvia = \"syscall\"\nrecycle = true\ncount = 12_001";
    let text = text(true, 17, &phase(access)).replace("name = \"p\"\n", "name = \"p\"\nthreads = 3\n");
    let run = ran(&text);
    let count = |name: &str| run.counter("vmstat", "", name);
    // Each thread has deleted its third (1,450 pages) eight times, and read it again.
    assert!(count("pgpgin") / 4 > 30_000, "{}", count("pgpgin"));
    let cached = count("nr_file_pages");
    assert!((300..=4_352).contains(&cached), "{cached}");
    assert_eq!(["nr_inactive_file", "nr_active_file"].map(count).iter().sum::<u64>(), cached);
}

#[test]
fn a_folio_follows_its_task_to_another_node_as_a_whole() {
    let moved = [false, true].map(|large| {
        let run = ran(&format!(
            "[machine]\ndistance = [[10, 20], [20, 10]]\n[[machine.node]]\ncpus = \"0-1\"\nmemory = \"256 MiB\"\n\
             [[machine.node]]\ncpus = \"2-3\"\nmemory = \"256 MiB\"\n[kernel]\nrelease = \"7.3\"\nthp = \"never\"\n\
             filemap.large_folios = {large}\nsysctl = {{ \"kernel.numa_balancing\" = 1 }}\n\
             [[process]]\nname = \"reader\"\ncpus = \"0\"\n[[process.region]]\nname = \"file\"\nsize = \"32 MiB\"\n\
             kind = \"file\"\nfile = \"f\"\n[[process.phase]]\n[[process.phase.access]]\nregion = \"file\"\n\
             pattern = \"sequential\"\nvia = \"syscall\"\ncount = 8192\n\
             [[process]]\nname = \"mapper\"\ncpus = \"2\"\nstart = \"2 s\"\n[[process.region]]\nname = \"file\"\n\
             size = \"32 MiB\"\nkind = \"file\"\nfile = \"f\"\n[[process.phase]]\nduration = \"20 s\"\n\
             [[process.phase.access]]\nregion = \"file\"\npattern = \"uniform\"\nthink = \"20 us\"\n\
             [run]\nseed = 1\n"
        ));
        ["numa_hint_faults", "numa_pages_migrated"].map(|name| run.counter("vmstat", "", name))
    });
    let [[faults, pages], [large_faults, large_pages]] = moved;
    assert!(pages > 4_000 && faults >= pages, "{moved:?}");
    assert!(large_pages > 4_000 && large_faults * 8 < large_pages, "{moved:?}");
}
