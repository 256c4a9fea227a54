//! What the judged sets look like: the table that opens docs/fidelity.md, the file behind it, and the details of
//! scenarios of the development set.

use super::aggregate::{COLUMNS, table};
use super::ranking::ranking;
use super::{Choice, Chosen, Judged, Quantity, Row, Set, rows};
use crate::Error;
use crate::fidelity::{NEWEST, failed};
use crate::text::wrapped;
use std::fmt::Write;
use std::path::Path;

/// Where the page goes on with the hand-made scenarios.
const EXAMPLES: &str = "## Named examples\n";
/// Columns before those of a row.
const HEAD: &str = "set,commit,date,scenarios,cells,runs,ended_alike";
/// Name of the file of errors.
pub const ROWS: &str = "unseen.csv";
/// Name of the file of choices.
pub const CHOICES: &str = "choice.csv";
/// Instead of the name of a set: half of the kernel's runs beside the other half.
const HALVES: &str = "kernel beside itself";
/// Quantities of a scenario that are printed at most.
const SHOWN: usize = 15;

/// A set with what was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Name of the set, and of the kernel where it is one alone.
    pub set: String,
    /// Commit of the twin.
    pub commit: String,
    /// Its date.
    pub date: String,
    /// Scenarios.
    pub scenarios: usize,
    /// Scenarios by kernel.
    pub cells: usize,
    /// Runs of the kernel.
    pub runs: usize,
    /// Runs that ended alike on both arms.
    pub alike: usize,
    /// Errors by group.
    pub rows: Vec<Row>,
    /// Choices between values of a tunable; `None`: no family is stored.
    pub chosen: Option<Chosen>,
}

impl Summary {
    /// A set on the kernels on which all of it runs, and on the newest, on which a third of it does; without runs, none.
    pub fn of(set: Set, twin: (&str, &str), judged: &[Judged], chosen: Option<Chosen>) -> Vec<Summary> {
        let newest = format!("{} set on {NEWEST}", set.name());
        let (newer, all): (Vec<&Judged>, Vec<&Judged>) = judged.iter().partition(|of| of.cell.kernel == NEWEST);
        let both =
            [Summary::new(format!("{} set", set.name()), twin, &all, chosen), Summary::new(newest, twin, &newer, None)];
        both.into_iter().filter(|of| of.runs > 0).collect()
    }

    /// Of half of the kernel's runs beside the other half, on the kernels on which all scenarios run.
    pub fn of_kernel(twin: (&str, &str), judged: &[Judged]) -> Option<Summary> {
        let all: Vec<&Judged> = judged.iter().filter(|of| of.cell.kernel != NEWEST).collect();
        Some(Summary::new(HALVES.into(), twin, &all, None)).filter(|of| of.runs > 0)
    }

    fn new(set: String, (commit, date): (&str, &str), judged: &[&Judged], chosen: Option<Chosen>) -> Summary {
        let quantities: Vec<Quantity> = judged.iter().flat_map(|of| of.quantities.iter().cloned()).collect();
        let ran = || judged.iter().filter(|of| !of.ends.is_empty());
        let mut seeds: Vec<u64> = ran().map(|of| of.cell.seed).collect();
        seeds.dedup();
        let ends = || judged.iter().flat_map(|of| &of.ends);
        Summary {
            set,
            commit: commit.into(),
            date: date.into(),
            scenarios: seeds.len(),
            cells: ran().count(),
            runs: ends().count(),
            alike: ends().filter(|(kernel, twin)| kernel.is_like(twin)).count(),
            // With the digits of the file, so that the page is the same of either.
            rows: rows(&quantities).iter().filter_map(|row| Row::read(&row.line())).collect(),
            chosen: chosen.and_then(|chosen| Chosen::read(&chosen.line())),
        }
    }

    fn sentence(&self) -> String {
        let Summary { set, commit, date, scenarios, cells, runs, alike, .. } = self;
        if set == HALVES {
            return format!(
                "The kernel beside itself: {cells} cells of {scenarios} scenarios of both sets, the runs with the seeds 1 and 2 judged \
                 by those with 3 and 4; {alike} of {runs} pairs ended alike. A twin without error of its own would have such a table, with half as \
                 many runs."
            );
        }
        format!(
            "The {set}: {scenarios} scenarios, {cells} cells of a scenario on a kernel, {runs} runs of a kernel, of which \
             {alike} ended as the twin's did. Twin of commit {commit}, {date}."
        )
    }
}

/// The file behind the table.
pub fn text(summaries: &[Summary]) -> String {
    let mut text = format!("{HEAD},{COLUMNS}\n");
    for of in summaries {
        let Summary { set, commit, date, scenarios, cells, runs, alike, rows, chosen: _ } = of;
        for row in rows {
            let _ = writeln!(text, "{set},{commit},{date},{scenarios},{cells},{runs},{alike},{}", row.line());
        }
    }
    text
}

/// The file of choices.
pub fn choices(summaries: &[Summary]) -> String {
    let mut text = format!("set,{}\n", Chosen::COLUMNS);
    for of in summaries {
        if let Some(chosen) = &of.chosen {
            let _ = writeln!(text, "{},{}", of.set, chosen.line());
        }
    }
    text
}

/// From the texts of both files; `None`: one is not such.
fn read(text: &str, choices: &str) -> Option<Vec<Summary>> {
    let mut summaries = read_rows(text)?;
    let mut lines = choices.lines();
    if lines.next()? != format!("set,{}", Chosen::COLUMNS) {
        return None;
    }
    for line in lines {
        let (set, rest) = line.split_once(',')?;
        summaries.iter_mut().find(|of| of.set == set)?.chosen = Some(Chosen::read(rest)?);
    }
    Some(summaries)
}

fn read_rows(text: &str) -> Option<Vec<Summary>> {
    let mut lines = text.lines();
    if lines.next()? != format!("{HEAD},{COLUMNS}") {
        return None;
    }
    let mut summaries: Vec<Summary> = Vec::new();
    for line in lines {
        let mut cells = line.splitn(8, ',');
        let mut next = || cells.next();
        let (set, commit, date) = (next()?, next()?, next()?);
        let mut number = || next()?.parse::<usize>().ok();
        let (scenarios, in_all, runs, alike) = (number()?, number()?, number()?, number()?);
        let row = Row::read(cells.next()?)?;
        match summaries.last_mut().filter(|of| of.set == set) {
            Some(of) => of.rows.push(row),
            None => summaries.push(Summary {
                set: set.into(),
                commit: commit.into(),
                date: date.into(),
                scenarios,
                cells: in_all,
                runs,
                alike,
                rows: vec![row],
                chosen: None,
            }),
        }
    }
    Some(summaries)
}

/// The start of the page by the files behind it, [`ROWS`] and [`CHOICES`] of `folder`, to the heading of the hand-made
/// scenarios. Without the first it is the heading alone.
///
/// # Errors
/// If a file cannot be read, or is not one.
pub fn opening_of(folder: &Path) -> Result<String, Error> {
    let (rows, choices) = (folder.join(ROWS), folder.join(CHOICES));
    if !rows.exists() {
        return Ok(opening(&[]));
    }
    let text = |file: &Path| std::fs::read_to_string(file).map_err(|e| failed(format!("{}: {e}", file.display())));
    let again = || failed(format!("{}: not of this version: `mmtwin fidelity test --write-docs`", rows.display()));
    Ok(opening(&read(&text(&rows)?, &text(&choices)?).ok_or_else(again)?))
}

/// The tables of sets, each with its sentence.
pub fn tables(summaries: &[Summary]) -> String {
    let one = |of: &Summary| {
        let chosen = of.chosen.as_ref().map(|chosen| format!("\n{}", wrapped(&chosen.sentence())));
        format!("\n{}\n{}{}", wrapped(&of.sentence()), table(&of.rows), chosen.unwrap_or_default())
    };
    summaries.iter().map(one).collect()
}

/// The start of the page.
fn opening(summaries: &[Summary]) -> String {
    let mut page = String::from("# Fidelity\n");
    if !summaries.is_empty() {
        page.push('\n');
        page.push_str(&wrapped(
            "How far the twin is from real kernels on scenarios that nobody wrote: a seed draws machine, tunables and workload \
             (`mmtwin fidelity generate --seed N`). Rules of the twin are found and corrected on the development set (seeds 1 to \
             999) and on the named examples below. The test set (seeds 1000 to 1999) judges: only what is in this table is printed \
             of it.",
        ));
    }
    page.push_str(&tables(summaries));
    page.push('\n');
    if !summaries.is_empty() {
        for paragraph in HOW {
            page.push_str(&wrapped(paragraph));
            page.push('\n');
        }
    }
    page.push_str(EXAMPLES);
    page
}

/// How to read the table.
const HOW: [&str; 2] = [
    "Every scenario runs in the [lab](reference/lab.md) in mode exact, on 6.1 and 6.12, every third on 7.3 too, with \
     the seeds 1 to 4, and in the twin from the state of each guest. Each seed begins its workload at another time after the \
     boot. Of 7.3 the \
     costs of files and faults are measured, others are those of 6.12. An error is the distance of the twin's median from the kernel's, without what \
     an idle guest counts, in percent of the kernel's. A quantity is judged if one side has 1000 of it (stalls 100; phases \
     0.1 s; throughput 100 accesses per second; makespan 1 s; latency 1 us, of 1000 accesses); where the kernel has less, the error is in percent of that. \
     Node counters and placement are judged on machines with several nodes, phases with a duration by their throughput, \
     others by how long they took. *Seed to seed* is how far the kernel's own runs are from each other. How busy the host \
     is does not matter: guest time counts instructions, and a run repeated under another load was equal in every figure. Runs \
     with the seeds 1 and 2 are from before 30 November 2026: they began at once, with earlier builds of the lab's agent. \
     With the seeds 3 and 4 not all scenarios have been run yet.",
    "`mmtwin fidelity run --seeds A..B` runs in the lab what is not stored, `mmtwin fidelity test` judges what is stored. Every \
     figure of the table is in [fidelity/unseen.csv](fidelity/unseen.csv) and [fidelity/choice.csv](fidelity/choice.csv). A \
     family is a scenario on one kernel with a limit, the memory of the machine, or a sysctl that its workload is about at \
     several values (`mmtwin fidelity run --families`); its throughput is the geometric mean over phases. The latency of an access is without think time, and judged where 1 % of the accesses or more have page faults or are calls: \
     the slowest of mere touches are those that the emulator's other CPUs interrupt. Of runs before 29 November 2026 none is kept. Not judged: curves over time, \
     counters of cgroups.",
];

/// A page with another opening.
pub fn reopened(page: &str, summaries: &[Summary]) -> Option<String> {
    let rest = page.split_once(EXAMPLES)?.1;
    Some(opening(summaries) + rest)
}

/// The families of the development set, which quantities its error is made of, then its scenarios one by one, the
/// quantities with the largest errors first.
pub fn details(judged: &[Judged], choices: &[Choice]) -> String {
    let mut text = String::from("\n");
    choices.iter().for_each(|choice| text.push_str(&(choice.line() + "\n")));
    text += &ranking(judged.iter().flat_map(|of| &of.quantities));
    for Judged { cell, ends, quantities } in judged {
        let _ = writeln!(text, "\n## Seed {} on {}\n", cell.seed, cell.kernel);
        for (kernel, twin) in ends.iter().filter(|(kernel, twin)| !(kernel.is_whole() && kernel.is_like(twin))) {
            let _ = writeln!(text, "- the kernel's run: {kernel:?}; the twin's: {twin:?}");
        }
        let mut sorted: Vec<&Quantity> = quantities.iter().collect();
        sorted.sort_by(|a, b| b.error.abs().total_cmp(&a.error.abs()));
        let _ =
            writeln!(text, "| quantity | kernel | twin | error | kernel, seed to seed | |\n|---|--:|--:|--:|--:|---|");
        for of in sorted.into_iter().take(SHOWN) {
            let own = of.own.map_or_else(|| "n/a".into(), |own| format!("{own:.1} %"));
            let beyond = if of.is_beyond() { "beyond" } else { "" };
            let Quantity { name, kernel, twin, error, .. } = of;
            let _ = writeln!(text, "| {name} | {kernel:.1} | {twin:.1} | {error:+.1} % | {own} | {beyond} |");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary() -> Summary {
        let rows = rows(&[]);
        let (commit, date) = ("abc".into(), "2026-11-26".into());
        Summary { set: "test set".into(), commit, date, scenarios: 2, cells: 4, runs: 8, alike: 7, rows, chosen: None }
    }

    #[test]
    fn the_file_has_all_that_the_table_has() {
        let chosen = Chosen { families: 3, tau: (Some(0.5), 2), clear: (None, 0), own: (Some(1.0), 1), best: (1, 2) };
        let of = [summary(), Summary { set: "development set".into(), chosen: Some(chosen), ..summary() }];
        assert_eq!(read(&text(&of), &choices(&of)), Some(of.to_vec()));
        assert_eq!(read("set,commit\n", &choices(&of)), None);
        assert_eq!(read(&text(&of), ""), None);
    }

    #[test]
    fn the_page_opens_with_the_table() {
        let page = opening(&[summary()]) + "\nThe rest.\n";
        assert!(page.starts_with("# Fidelity\n\nHow far"), "{page}");
        assert!(page.contains("4 cells of a scenario on a kernel, 8 runs of a kernel, of which 7 ended"), "{page}");
        let other = reopened(&page, &[]).expect("a page");
        assert_eq!(other, "# Fidelity\n\n## Named examples\n\nThe rest.\n");
        assert_eq!(reopened(&other, &[summary()]), Some(page));
        assert_eq!(reopened("# Fidelity\n", &[]), None);
    }
}
