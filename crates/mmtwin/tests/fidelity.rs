//! The stored runs of real kernels: the page about them is true today, and one of them, another with every commit, is
//! run again.

use mmtwin::fidelity::{Cell, SEEDS, cells};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

fn all() -> Vec<Cell> {
    let found = cells(&root().join("scenarios/fidelity")).unwrap_or_else(|error| panic!("{error}"));
    assert!(found.len() >= 12, "six scenarios on two kernels");
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
    assert!(!stored.contains("| 0 | n/a"), "every cell is stored");
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
    let cell = cells.swap_remove(turn(cells.len()));
    let seed = SEEDS[turn(SEEDS.len())];
    let (stored, again) = match cell.repeat(seed) {
        Ok(both) => both,
        Err(error) if lab_is_there() => panic!("{} on {}, seed {seed}: {error}", cell.name, cell.kernel),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "skipped: a_stored_run_comes_out_again: {error}");
            return;
        }
    };
    // The same QEMU, kernel and agent would give the same bytes. Others move what is counted by some pages of their own,
    // as another seed does.
    for key in stored[0].keys() {
        let values: Vec<f64> = stored.iter().filter_map(|run| run.get(key)).copied().collect();
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let margin = (high - low) + 0.05 * high.abs().max(low.abs()) + 200.0;
        let new = *again.get(key).unwrap_or_else(|| panic!("{}: no {} any more", cell.name, key.1));
        let near = (low - margin..=high + margin).contains(&new);
        assert!(near, "{} on {}, seed {seed}: {} was {low} to {high}, is {new}", cell.name, cell.kernel, key.1);
    }
}

fn lab_is_there() -> bool {
    mmtwin_lab::doctor(&mmtwin_lab::Folder::find()).iter().all(|check| check.works)
}
