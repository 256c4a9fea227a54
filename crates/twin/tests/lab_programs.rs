//! Memory of the lab's programs that a guest's state has: what of it is read and freed in the run. Figures of real kernels in the
//! lab (mode exact), measured on 30 November 2026 with this scenario and 256 MiB, of which a guest leaves 171
//! (docs/model/notebook.md, "Memory of the lab's programs").

use crate::common::scenario::{Finished, count, ran_from};
use crate::lab_contention::guest;
use mmtwin_event::counters::{Backing, Lru, Lruvec, Run};
use mmtwin_twin::engine::State;

/// The recorder and one process; in guests 605, 606 and 637 pages.
const PAGES: u64 = 600;

/// A process writes this many pages once, on a machine whose programs have folios of an order on the list of inactive
/// anonymous ones.
fn run(release: &str, (folios, order): (u64, u32), writes: u64) -> Finished {
    let process = format!(
        "[[process]]\nname = \"a\"\n[[process.region]]\nname = \"heap\"\nsize = \"256 MiB\"\n[[process.phase]]\n\
         [[process.phase.access]]\nregion = \"heap\"\npattern = \"sequential\"\nwrite = \"100 %\"\ncount = {writes}\n\
         [machine.swap]\nsize = \"256 MiB\"\nsynchronous = true\nlatency = \"0 us\"\nbandwidth = \"1 GB/s\"\n"
    );
    let guest = guest(release, &[("0-2", 171)], "\"kernel.numa_balancing\" = 0\n\"vm.page-cluster\" = 0");
    let counters = "counters = [\"pswp*\", \"nr_anon_pages\"]";
    let of = Run { zone: "DMA32".into(), backing: Backing::Anon, mapped: true, order, folios, ..Run::default() };
    let lruvec = Lruvec { cgroup: "/".into(), lists: [vec![of], vec![], vec![], vec![]], ..Lruvec::default() };
    let lru = (folios > 0).then(|| Lru { lruvecs: vec![lruvec], batches: Vec::new() });
    let text = format!("{}{process}", guest.replace("counters = [\"numa_*\"]", counters));
    ran_from(&text, State { lru, ..State::default() })
}

#[test]
fn what_was_swapped_of_programs_is_read_when_a_phase_and_a_process_end() {
    // Nothing that the process wrote is read again.
    for (release, kernel) in [("6.1", 225), ("6.12", 216), ("7.3", 266)] {
        let of = run(release, (PAGES, 0), 65_536);
        let read = count(&of, "pswpin");
        assert!((kernel * 3 / 4..=kernel * 5 / 4).contains(&read), "{release}: {read}, kernel {kernel}");
        assert!(count(&of, "pswpout") > 20_000, "{release}: {}", count(&of, "pswpout"));
        assert_eq!(count(&run(release, (0, 0), 65_536), "pswpin"), 0, "{release}: without programs");
    }
}

#[test]
fn a_process_that_exits_frees_its_share_of_the_programs_memory() {
    // Without pressure: in guests of 6.1, 6.12 and 7.3 with three processes 2,025, 2,020 and 2,090 pages become 520 to 534.
    assert_eq!(count(&run("6.1", (PAGES, 0), 256), "nr_anon_pages"), PAGES / 2);
}

#[test]
fn large_folios_belong_to_no_program() {
    assert_eq!(count(&run("6.1", (3, 9), 256), "nr_anon_pages"), 3 * 512);
}
