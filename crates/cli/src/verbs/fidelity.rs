//! `mmtwin fidelity`.

use super::unseen;
use crate::args::{Fidelity, FidelityCells, FidelityVerb};
use crate::lab::on_lab;
use crate::{Failure, parallel, say};
use mmtwin_trace::output::FileOutput;
use mmtwin_validate::fidelity::difference::{CHANGES, Change, summary};
use mmtwin_validate::fidelity::unseen::opening_of;
use mmtwin_validate::fidelity::{Cell, Guests, Judge, Judged, cells, details, files, page};
use std::path::Path;

/// Where the page is kept.
pub(super) const PAGE: &str = "docs/fidelity.md";
/// Where the figures behind it are kept.
pub(super) const FILES: &str = "docs/fidelity";

/// Runs the verb.
pub fn run(arguments: Fidelity) -> Result<i32, Failure> {
    match arguments.verb {
        Some(FidelityVerb::Generate(arguments)) => unseen::generate(&arguments),
        Some(FidelityVerb::Run(arguments)) => unseen::run(&arguments),
        Some(FidelityVerb::Test(arguments)) => unseen::test(&arguments),
        Some(FidelityVerb::Search(arguments)) => unseen::search(&arguments),
        None => judge_cells(&arguments.cells),
    }
}

fn judge_cells(arguments: &FidelityCells) -> Result<i32, Failure> {
    let all = cells(&arguments.directory)?;
    let known = |name: &str| all.iter().any(|cell| cell.name == name) || CHANGES.iter().any(|c| c.name == name);
    if let Some(name) = arguments.scenarios.iter().find(|name| !known(name)) {
        return Err(Failure::Usage(format!("no scenario {name} in {}", arguments.directory.display())));
    }
    let chosen = |cell: &&Cell| {
        (arguments.scenarios.is_empty() || arguments.scenarios.contains(&cell.name))
            && arguments.kernel.as_ref().is_none_or(|kernel| *kernel == cell.kernel)
            && arguments.mode.is_none_or(|mode| mode == cell.mode)
    };
    let guests = Guests { run: &|runs, options| on_lab(runs, options, |_| Ok(())), note: &say };
    if arguments.refresh {
        for cell in all.iter().filter(chosen) {
            let runs = cell.refresh(arguments.again, guests)?;
            say(&format!("{cell}: {runs} runs in the lab"));
        }
    }
    let named = |change: &&Change| match arguments.scenarios.as_slice() {
        [] => arguments.kernel.is_none() && arguments.mode.is_none(),
        names => names.iter().any(|name| name == change.name),
    };
    let changes: Vec<&Change> = CHANGES.iter().filter(named).collect();
    if arguments.refresh {
        for change in &changes {
            let runs = change.refresh(&arguments.directory, arguments.again, guests)?;
            say(&format!("{} before and after: {runs} runs in the lab", change.name));
        }
    }
    let chosen: Vec<&Cell> = all.iter().filter(chosen).collect();
    let judge = Judge::new(&all)?;
    let judged: Vec<Judged> = parallel::each(&chosen, |cell| Ok(judge.judge(cell)?))?;
    let (changed, sentence) = match changes.is_empty() {
        true => (None, String::new()),
        false => summary(&changes, &arguments.directory).map(|(csv, sentence)| (Some(csv), sentence))?,
    };
    let mut text = page(&opening_of(FILES.as_ref())?, &judged, &sentence);
    if !arguments.write_docs {
        if !arguments.scenarios.is_empty() {
            text.push_str(&details(&judged));
        }
        std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes())?;
        return Ok(0);
    }
    std::fs::create_dir_all(FILES)?;
    for csv in files(&judged).into_iter().chain(changed) {
        FileOutput::open(&Path::new(FILES).join(csv.name), true, 0o666)?.write(csv.text().as_bytes())?;
    }
    FileOutput::open(PAGE.as_ref(), true, 0o666)?.write(text.as_bytes())?;
    Ok(0)
}
