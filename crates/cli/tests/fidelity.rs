//! The stored runs of real kernels: the page about them is true today, and one of them, another with every commit, is
//! run again.

use mmtwin::Scenario;
use mmtwin::running::{LabOptions, on_lab};
use mmtwin_lab::Mode;
use mmtwin_validate::fidelity::{Cell, Guests, SEEDS, cells};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

fn all() -> Vec<Cell> {
    let found = cells(&root().join("scenarios/fidelity")).unwrap_or_else(|error| panic!("{error}"));
    assert!(found.len() >= 24, "six scenarios on two kernels in two modes");
    found
}

#[test]
fn the_page_is_true_today() {
    let output = Command::new(env!("CARGO_BIN_EXE_mmtwin")).arg("fidelity").current_dir(root()).output();
    let output = output.expect("the program");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let stored = std::fs::read_to_string(root().join("docs/fidelity.md")).expect("the page");
    let today = String::from_utf8(output.stdout).expect("UTF-8");
    assert!(
        stored == today,
        "the twin has changed: `make fidelity` writes docs/fidelity.md anew, git shows the difference"
    );
    // NUMA balancing and reclaim take longest in the lab, and mode smp the more the busier the host is.
    let missing: Vec<&str> = stored.lines().filter(|line| line.contains("not stored")).collect();
    let long = |line: &str| line.starts_with("| numa-") || line.starts_with("| reclaim-");
    let expected = |line: &&str| long(line) && line.contains("| smp |");
    assert!(missing.iter().all(expected), "every other cell is stored: {missing:?}");
    assert!(stored.lines().all(|line| line.starts_with('|') || line.len() <= 120), "text is to be read");
}

/// Number of the cell that is run again: commits so far, so that all have their turn.
fn turn(cells: usize) -> usize {
    let count = Command::new("git").args(["rev-list", "--count", "HEAD"]).current_dir(root()).output();
    let count = count.ok().and_then(|output| String::from_utf8(output.stdout).ok()?.trim().parse::<usize>().ok());
    count.unwrap_or(0) % cells
}

#[test]
fn a_stored_run_comes_out_again() {
    let mut cells = all();
    // The range of a few seeds is not that of all. How many pages of the scenarios `pages-` fit on a small node is what
    // the guest's boot has left, which differs with agent and host; the twin continues from it, and is judged page by page.
    // With NUMA balancing which thread scans next depends on ticks, so on how many instructions the agent takes to start.
    // Reclaim begins with what the guest's boot has left in memory, as the pages' scenarios do.
    let hangs_on_agent = |name: &str| ["pages-", "numa-", "reclaim-"].iter().any(|kind| name.starts_with(kind));
    cells.retain(|cell| cell.is_complete() && !hangs_on_agent(&cell.name));
    let cell = cells.swap_remove(turn(cells.len()));
    let seed = SEEDS[turn(SEEDS.len())];
    let run = |runs: &[(&Scenario, PathBuf)], options: &LabOptions| {
        on_lab(runs, options, &AtomicBool::new(false), &|_, _| {})?.into_iter().try_for_each(|run| run.map(drop))
    };
    let (stored, again) = match cell.repeat(seed, Guests { run: &run, note: &|_| {} }) {
        Ok(both) => both,
        Err(error) if lab_is_there() => panic!("{cell}, seed {seed}: {error}"),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "skipped: a_stored_run_comes_out_again: {error}");
            return;
        }
    };
    // The same QEMU, kernel and agent would give the same bytes. Others move what is counted by some pages of their own,
    // as another seed does. In mode smp more differs: only what the twin is judged by is looked at, and where a phase
    // lasts a time, as much is done as the host is fast.
    let judged = cell.judge(&[]).unwrap_or_else(|error| panic!("{error}")).fidelity.unwrap_or_default();
    let said = cell.scenario(seed).unwrap_or_else(|error| panic!("{error}"));
    let by_time = said.processes.iter().flat_map(|process| &process.phases).any(|phase| phase.duration.is_some());
    let looked_at = |name: &str| {
        let row = judged.rows.iter().find(|row| row.name == name);
        cell.mode == Mode::Exact || row.is_some_and(|row| !by_time || row.is_zone_as_it_is())
    };
    // What is free at the end beside the begin is what lists of CPUs happen to hold, and limits of dirty pages are parts
    // of it; how much kcompactd goes through and moves in its one run is where the guest's boot has left pages, which
    // differs with the agent. In mode smp a guest on a busy host has more time to write its own files, of its boot: 1212
    // KiB were seen where 460 to 612 are stored.
    let chance = |name: &str| {
        let of_time = cell.mode == Mode::Smp && name == "pgpgout";
        let of_free = ["nr_free_pages", "nr_dirty_threshold", "nr_dirty_background_threshold"].contains(&name);
        let of_kcompactd = name.starts_with("compact_") || name.starts_with("pgmigrate_");
        of_free || of_kcompactd || of_time
    };
    for key in stored[0].values.keys().filter(|key| looked_at(&key.1) && !chance(&key.1)) {
        let values: Vec<f64> = stored.iter().filter_map(|run| run.values.get(key)).copied().collect();
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let margin = (high - low) + 0.05 * high.abs().max(low.abs()) + 200.0;
        let new = *again.values.get(key).unwrap_or_else(|| panic!("{cell}: no {} any more", key.1));
        let near = (low - margin..=high + margin).contains(&new);
        assert!(near, "{cell}, seed {seed}: {} was {low} to {high}, is {new}", key.1);
    }
}

fn lab_is_there() -> bool {
    mmtwin_lab::doctor(&mmtwin_lab::Folder::find()).iter().all(|check| check.works)
}
