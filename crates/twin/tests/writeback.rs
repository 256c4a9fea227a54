//! Dirty pages of files in whole runs: they are all written once, in time, and writers are as fast as the disk.

use crate::common::scenario::{Finished, count, events, ran};
use mmtwin_event::results::Ending;

/// A small machine whose disk takes some time.
fn machine(megabytes: u64, bandwidth: &str, sysctls: &str) -> String {
    format!(
        "[machine]\nname = \"m\"\ndistance = [[10]]\ndisk = {{ latency = \"2 ms\", bandwidth = \"{bandwidth}\" }}\n\
         [[machine.node]]\ncpus = \"0-1\"\nmemory = \"{megabytes} MiB\"\n\
         [kernel]\nrelease = \"6.1\"\nthp = \"never\"\n[kernel.sysctl]\n\"kernel.numa_balancing\" = 0\n{sysctls}\n\
         [run]\nevents = [\"vmscan:*\", \"writeback:*\"]\nsample = \"100 ms\"\n"
    )
}

fn writer(megabytes: u64, access: &str) -> String {
    format!(
        "[[process]]\nname = \"writer\"\n[[process.region]]\nname = \"file\"\nsize = \"{megabytes} MiB\"\nkind = \"file\"\n\
         [[process.phase]]\n[[process.phase.access]]\nregion = \"file\"\nwrite = 1.0\n{access}\n"
    )
}

/// Seconds of the only phase.
fn seconds(run: &Finished) -> f64 {
    let phase = &run.results.phases[0];
    (phase.end - phase.start) as f64 / 1e9
}

#[test]
fn dirtied_pages_are_written_or_dirty() {
    for (via, kernel) in [("syscall", "6.1"), ("mmap", "6.1"), ("syscall", "6.12")] {
        let config = machine(256, "200 MB/s", "").replace("\"6.1\"", &format!("\"{kernel}\""));
        let access = format!("pattern = \"sequential\"\nvia = \"{via}\"\ncount = 131072");
        let run = ran(&(config + &writer(512, &access)));
        assert_eq!(run.results.ending, Ending::Completed, "{via}");
        // Twice the memory has been written page by page; the file stays when its writer has ended.
        let [written, dirty, under] = ["nr_written", "nr_dirty", "nr_writeback"].map(|name| count(&run, name));
        assert_eq!((count(&run, "nr_dirtied"), written + dirty + under), (131_072, 131_072), "{via}");
        assert!(written >= 131_072 - 20_000, "{via}: {written}");
        assert!((40_000..65_536).contains(&count(&run, "nr_file_pages")), "{via}");
        assert_eq!((count(&run, "nr_isolated_file"), count(&run, "nr_mapped")), (0, 0), "{via}");
        assert_eq!(count(&run, "pgscan_file"), run.isolated, "{via}");
        // Calls that write whole pages read nothing, and what they overwrite has left no trace that counts. Of what a mapping
        // reads ahead, reclaim may take a little before it is accessed.
        assert_eq!(count(&run, "pgpgin") == 0, via == "syscall", "{via}");
        let refaults = count(&run, "workingset_refault_file");
        assert!(refaults <= if via == "syscall" { 0 } else { 131 }, "{via}: {refaults}");
        assert!(events(&run, "writeback_start") > 0 && events(&run, "writeback_pages_written") > 0);
    }
}

#[test]
fn writers_are_as_fast_as_the_disk() {
    // 512 MiB at 40 MB/s take 13.4 s.
    let limits = "\"vm.dirty_bytes\" = 67_108_864\n\"vm.dirty_background_bytes\" = 33_554_432\n";
    let access = "pattern = \"sequential\"\nvia = \"syscall\"\ncount = 131072";
    let run = ran(&(machine(1024, "40 MB/s", limits) + &writer(512, access)));
    let pauses = events(&run, "balance_dirty_pages");
    assert!(pauses > 50, "{pauses}");
    // 64 MiB of it may be dirty at the end.
    assert!((11.7..=14.0).contains(&seconds(&run)), "{} s", seconds(&run));
    assert_eq!((count(&run, "nr_dirty_threshold"), count(&run, "nr_dirty_background_threshold")), (16_384, 8192));
    // Nothing is longer than a wait for the journal, behind all that can be dirty: 1.7 s.
    let at: Vec<u64> =
        run.events.iter().filter(|event| event.2 == "balance_dirty_pages").map(|event| event.0).collect();
    let longest = at.windows(2).map(|pair| pair[1] - pair[0]).max();
    assert!(longest.is_some_and(|longest| longest < 2_000_000_000), "{longest:?}");
}

#[test]
fn a_free_writer_is_not_paused() {
    let access = "pattern = \"sequential\"\nvia = \"syscall\"\ncount = 10000";
    let run = ran(&(machine(1024, "40 MB/s", "") + &writer(64, access)));
    assert_eq!((events(&run, "balance_dirty_pages"), count(&run, "nr_dirtied")), (0, 10_000));
    assert!(seconds(&run) < 1.0, "{}", seconds(&run));
}

#[test]
fn old_pages_are_written_though_they_are_few() {
    let access = "pattern = \"sequential\"\nvia = \"syscall\"\ncount = 1000\n[[process.phase]]\n\
                  [[process.phase.action]]\nkind = \"sleep\"\ntime = \"SLEEP\"\n";
    let written = |sleep: &str, sysctls: &str| {
        let run = ran(&(machine(1024, "100 MB/s", sysctls) + &writer(64, &access.replace("SLEEP", sleep))));
        count(&run, "nr_written")
    };
    // 30 s old, looked for every 5 s. Before the disk has written anything it has no part in the background limit, so
    // that the first look writes what is there; nothing is dirtied after that.
    let never = "\"vm.dirty_writeback_centisecs\" = 0\n";
    assert_eq!((written("36 s", ""), written("36 s", never)), (1000, 0));
    let soon = "\"vm.dirty_writeback_centisecs\" = 100\n\"vm.dirty_expire_centisecs\" = 100\n";
    assert_eq!(written("3 s", soon), 1000);
}

#[test]
fn a_page_on_its_way_to_the_disk_faults_when_it_is_mapped_and_written() {
    // Over and over 16 MiB, of which at most 8 may be dirty.
    let limits = "\"vm.dirty_bytes\" = 8_388_608\n\"vm.dirty_background_bytes\" = 4_194_304\n";
    let access = "pattern = \"sequential\"\nvia = \"mmap\"\ncount = 40960";
    let run = ran(&(machine(512, "100 MB/s", limits) + &writer(16, access)));
    let faults = run.results.phases[0].accesses[0].faults;
    assert!(faults >= count(&run, "nr_dirtied") - 4096 && count(&run, "nr_dirtied") > 20_000, "{faults}");
}

#[test]
fn memory_used_as_a_disk_is_written_at_once() {
    let config = machine(256, "1 GB/s", "").replace("2 ms", "0 ns");
    let run = ran(&(config + &writer(512, "pattern = \"sequential\"\nvia = \"syscall\"\ncount = 131072")));
    assert_eq!(run.results.ending, Ending::Completed);
    let written = count(&run, "nr_written");
    assert!((131_072 - 20_000..=131_072).contains(&written), "{written}");
    assert_eq!((count(&run, "nr_writeback"), count(&run, "pgpgout")), (0, 4 * written));
}

#[test]
fn files_can_be_populated() {
    let config = writer(64, "pattern = \"sequential\"\nvia = \"mmap\"\ncount = 16384");
    let config = config.replace("kind = \"file\"", "kind = \"file\"\npopulate = true");
    let run = ran(&(machine(512, "100 MB/s", "") + &config));
    assert_eq!((run.results.ending.clone(), run.results.phases.len()), (Ending::Completed, 2));
    assert!(count(&run, "nr_dirtied") >= 16_384);
}

#[test]
fn a_cgroup_has_limits_and_after_some_time_a_flusher() {
    let path = format!("{}/tests/data/lab/cgroup-writer.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("a scenario");
    // The kernel: 7 flushes of the root's files by the cgroup's writer, 19,280 pages written in 5.3 s, 20,002 faults.
    let run = ran(&text);
    let written = count(&run, "nr_written");
    assert!((17_000..20_000).contains(&written) && (4.6..5.6).contains(&seconds(&run)), "{written}");
    assert!(events(&run, "balance_dirty_pages") > 10);
    // Without one it is far below the limits: what is written is what the periodic flush finds.
    let free = ran(&text.replace("cgroup = \"/box\"\n", ""));
    assert_eq!(events(&free, "balance_dirty_pages"), 0);
    // Files do not belong to cgroups of version 1, whose limits do not count.
    let first = ran(&text.replace("release = \"6.1\"", "release = \"6.1\"\ncgroup = \"v1\""));
    assert_eq!(events(&first, "balance_dirty_pages"), 0);
}

/// From 6.12 on a cgroup's dirty pages are known as of the last flush of its statistics, every two seconds: its writer waits
/// for that, whatever has been written meanwhile.
#[test]
fn a_writer_waits_for_the_next_flush_of_its_cgroups_statistics() {
    let path = format!("{}/tests/data/lab/cgroup-writer.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("a scenario").replace("\"500 ms\"", "\"60 s\"");
    let newer = text.replace("release = \"6.1\"", "release = \"6.12\"").replace("\"lab-4n\"", "\"lab-4n-6.12\"");
    let longest = |text: &str| {
        let run = ran(text);
        let pauses: Vec<u64> =
            run.events.iter().filter(|event| event.2 == "balance_dirty_pages").map(|event| event.0).collect();
        // Pauses of at most 200 ms that follow one another are one wait.
        let waits = pauses.chunk_by(|a, b| b - a < 210_000_000);
        waits.map(|wait| wait[wait.len() - 1] - wait[0]).max().unwrap_or(0) as f64 / 1e9
    };
    // Guests of 6.12 and 7.3 with one or two such writers: once or twice more than a second, none on 6.1.
    let waited = [longest(&text), longest(&newer)];
    assert!(waited[0] < 1.0 && (1.0..2.2).contains(&waited[1]), "{waited:?}");
}
