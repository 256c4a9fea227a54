//! `mmtwin fidelity`.

use crate::cli::Fidelity;
use crate::fidelity::difference::{CHANGES, Change, section};
use crate::fidelity::{Cell, Judged, KERNELS, SEEDS, cells};
use crate::{Failure, say};
use mmtwin_report::model::{Body, Cell as Value};
use std::fmt::Write;

/// Where the table of all cells is kept.
const DOCS: &str = "docs/fidelity.md";

/// Runs the verb.
pub fn run(arguments: Fidelity) -> Result<i32, Failure> {
    let all = cells(&arguments.directory)?;
    let known = |name: &str| all.iter().any(|cell| cell.name == name) || CHANGES.iter().any(|c| c.name == name);
    if let Some(name) = arguments.scenarios.iter().find(|name| !known(name)) {
        return Err(Failure::Usage(format!("there is no scenario {name} in {}", arguments.directory.display())));
    }
    let chosen = |cell: &&Cell| {
        (arguments.scenarios.is_empty() || arguments.scenarios.contains(&cell.name))
            && arguments.kernel.as_ref().is_none_or(|kernel| *kernel == cell.kernel)
            && arguments.mode.is_none_or(|mode| mode == cell.mode)
    };
    let mut judged = Vec::new();
    for cell in all.iter().filter(chosen) {
        if arguments.refresh {
            let runs = cell.refresh(arguments.again)?;
            say(&format!("{cell}: {runs} runs in the lab"));
        }
        judged.push(cell.judge()?);
    }
    let named = |change: &&Change| match arguments.scenarios.as_slice() {
        [] => arguments.kernel.is_none(),
        names => names.iter().any(|name| name == change.name),
    };
    let changes: Vec<&Change> = CHANGES.iter().filter(named).collect();
    if arguments.refresh {
        for change in &changes {
            let runs = change.refresh(&arguments.directory, arguments.again)?;
            say(&format!("{} before and after: {runs} runs in the lab", change.name));
        }
    }
    let mut text = page(&judged);
    if !changes.is_empty() {
        text.push_str(&section(&changes, &arguments.directory)?);
    }
    match arguments.write_docs {
        true => std::fs::write(DOCS, text)?,
        false => std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes())?,
    }
    Ok(0)
}

/// All cells as a page.
fn page(judged: &[Judged]) -> String {
    let mut text = String::from("# Fidelity\n\n");
    let _ = writeln!(
        text,
        "The twin beside real kernels. Each scenario of `scenarios/fidelity` ran in the lab (`mmtwin run --on lab`, mode\n\
         exact) on Debian's kernels {} with the seeds {} to {}; the recordings are in the repository. The twin ran\n\
         the same files with the same seeds when this page was made (`make fidelity`), from the free memory that each\n\
         kernel's zones had at the begin. A quantity is inside if the twin's median lies in the kernel's range over the seeds. The kernel also does its own work, and the agent's start is in\n\
         its counters: the scenario `background` shows how much that is.\n",
        KERNELS.join(" and "),
        SEEDS[0],
        SEEDS[SEEDS.len() - 1]
    );
    text.push_str(
        "| scenario | kernel | runs | quantities | inside | inside or within 5 % |\n|---|---|---|---|---|---|\n",
    );
    for Judged { cell, fidelity, runs, .. } in judged {
        let _ = match fidelity.as_ref().map(|fidelity| fidelity.counts()) {
            Some((inside, near, all)) => {
                writeln!(text, "| {} | {} | {runs} | {all} | {inside} | {near} |", cell.name, cell.kernel)
            }
            None => writeln!(text, "| {} | {} | 0 | n/a | n/a | n/a |", cell.name, cell.kernel),
        };
    }
    for Judged { cell, title, fidelity, .. } in judged {
        let _ = writeln!(text, "\n## {} on {}\n\n{title}.", cell.name, cell.kernel);
        let Some(fidelity) = fidelity else { continue };
        let _ = writeln!(text, "{}.\n", sentence(&fidelity.summary()));
        text.push_str("| quantity | kernel | least | greatest | twin | error | |\n|---|---|---|---|---|---|---|\n");
        let Body::List { rows, .. } = fidelity.table().body else { continue };
        for row in rows {
            let cells: Vec<String> = row.iter().enumerate().map(|(at, cell)| shown(at, cell)).collect();
            let _ = writeln!(text, "| {} |", cells.join(" | "));
        }
    }
    text
}

fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// A cell of the table of a scenario; its sixth is an error in percent.
fn shown(at: usize, cell: &Value) -> String {
    match cell {
        Value::Text(text) => text.clone(),
        other => match other.number() {
            Some(number) if at == 5 => format!("{number:+.1} %"),
            Some(number) => format!("{number}"),
            None => "n/a".into(),
        },
    }
}
