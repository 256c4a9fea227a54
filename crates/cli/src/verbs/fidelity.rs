//! `mmtwin fidelity`.

use crate::args::Fidelity;
use crate::lab::on_lab;
use crate::{Failure, parallel, say};
use mmtwin_trace::output::FileOutput;
use mmtwin_validate::fidelity::difference::{CHANGES, Change, section};
use mmtwin_validate::fidelity::{BACKGROUND, Cell, Guests, Judged, cells, page};
use std::collections::BTreeMap;

/// Where the table of all cells is kept.
const DOCS: &str = "docs/fidelity.md";

/// Runs the verb.
pub fn run(arguments: Fidelity) -> Result<i32, Failure> {
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
    let mut backgrounds = BTreeMap::new();
    for cell in all.iter().filter(|cell| cell.name == BACKGROUND) {
        backgrounds.insert((cell.kernel.clone(), cell.mode.to_string()), cell.observed()?);
    }
    let judge = |cell: &Cell| {
        let background = backgrounds.get(&(cell.kernel.clone(), cell.mode.to_string()));
        cell.judge(background.filter(|_| cell.name != BACKGROUND).map_or(&[], |runs| runs))
    };
    let chosen: Vec<&Cell> = all.iter().filter(chosen).collect();
    let judged: Vec<Judged> = parallel::each(&chosen, |cell| Ok(judge(cell)?))?;
    let mut text = page(&judged);
    if !changes.is_empty() {
        text.push_str(&section(&changes, &arguments.directory)?);
    }
    match arguments.write_docs {
        true => FileOutput::open(DOCS.as_ref(), true, 0o666)?.write(text.as_bytes())?,
        false => std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes())?,
    }
    Ok(0)
}
