//! Pages that are written to swap on a disk, and whether they are freed when that is done: shares of real kernels in the lab
//! (mode exact), measured on 30 November 2026 with this scenario and 256 MiB, of which a guest leaves 171
//! (docs/model/notebook.md, "Writes to swap on a disk").

use crate::common::scenario::ran;
use crate::lab_contention::guest;

#[test]
fn pages_whose_write_ends_before_they_are_back_on_their_list_stay_at_its_head() {
    let process = "[[process]]\nname = \"a\"\n[[process.region]]\nname = \"heap\"\nsize = \"176 MiB\"\n\
                   [[process.phase]]\n[[process.phase.access]]\nregion = \"heap\"\npattern = \"sequential\"\n\
                   write = \"100 %\"\ncount = 45056\n[machine.swap]\nsize = \"256 MiB\"\nsynchronous = false\n\
                   latency = \"100 us\"\nbandwidth = \"1 GB/s\"\n";
    // Of the pages that are written those which the end of that moves to the tail, in percent.
    for (release, kernel, within) in [("6.1", 3.4, 3.0), ("6.12", 3.1, 3.0), ("7.3", 93.0, 15.0)] {
        let guest = guest(release, &[("0-2", 180)], "\"kernel.numa_balancing\" = 0");
        let counters = "counters = [\"pgrotated\", \"pswpout\"]";
        let run = ran(&format!("{}{process}", guest.replace("counters = [\"numa_*\"]", counters)));
        let count = |name: &str| run.counter("vmstat", "", name) as f64;
        let share = count("pgrotated") / count("pswpout") * 100.0;
        assert!((share - kernel).abs() < within, "{release}: {share:.1} %, kernel {kernel} %");
        assert!(count("pswpout") > 1_000.0, "{release}: {}", count("pswpout"));
    }
}
