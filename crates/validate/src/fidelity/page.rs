//! docs/fidelity.md: what all cells say together, and a row for each. The figures behind it are in the files of
//! [`super::csv`].

use super::{BACKGROUND, Judged, KERNELS, MODES, SEEDS};
use crate::text::wrapped;
use mmtwin_lab::Mode;
use mmtwin_report::fidelity::balancing::{Balanced, balanced, median_error};
use mmtwin_report::fidelity::{Count, Fidelity, median_of, reclaim};
use mmtwin_report::model::{Body, Cell as Value, Table};
use std::fmt::Write;

/// Columns of a scenario's table.
const QUANTITIES: [&str; 8] = ["quantity", "kernel", "least", "greatest", "background", "twin", "error", ""];
/// Place of the error, which is in percent.
const ERROR: usize = 6;
/// Of these, those that are only the kernel's.
const OF_KERNEL: usize = 4;

/// All cells, with what one must know to read them, behind the page's `opening`. `changes` says how published changes
/// came out.
pub fn page(opening: &str, judged: &[Judged], changes: &str) -> String {
    let mut text = format!("{opening}\n");
    text.push_str(&wrapped(&format!(
        "The twin beside real kernels: scenarios of `scenarios/fidelity`, each run in the [lab](reference/lab.md) on Debian's kernels \
         {} in the modes {} with the seeds {} to {}, and in the twin from the same files.",
        KERNELS.join(" and "),
        MODES.map(|mode| mode.to_string()).join(" and "),
        SEEDS[0],
        SEEDS[SEEDS.len() - 1],
    )));
    text.push_str("\n| kernel | mode | scenarios | quantities | inside | inside or within 5 % | curves inside |\n");
    text.push_str("|---|---|--:|--:|--:|--:|--:|\n");
    each_table(|kernel, mode| {
        let compared: Vec<&Fidelity> = of(judged, kernel, mode).filter_map(compared).collect();
        if compared.is_empty() {
            return;
        }
        let sum = |of: &dyn Fn(&Fidelity) -> usize| compared.iter().map(|fidelity| of(fidelity)).sum::<usize>();
        let all = sum(&|fidelity| fidelity.counts().2);
        let part = |count: usize| format!("{count} ({:.0} %)", 100.0 * count as f64 / all.max(1) as f64);
        let (inside, near) = (sum(&|fidelity| fidelity.counts().0), sum(&|fidelity| fidelity.counts().1));
        let curves = [sum(&|fidelity| fidelity.curves_inside().0), sum(&|fidelity| fidelity.curves_inside().1)];
        let (scenarios, inside, near) = (compared.len(), part(inside), part(near));
        let _ = writeln!(
            text,
            "| {kernel} | {mode} | {scenarios} | {all} | {inside} | {near} | {} of {} |",
            curves[0], curves[1]
        );
    });
    text.push('\n');
    for line in [numa_balancing(judged), of_reclaim(judged), page_by_page(judged), event_by_event(judged)] {
        line.iter().for_each(|line| text.push_str(&wrapped_item(line)));
    }
    if !changes.is_empty() {
        text.push_str(&wrapped_item(changes));
    }
    text.push_str(&how_to_read());
    each_table(|kernel, mode| table(&mut text, &of(judged, kernel, mode).collect::<Vec<_>>(), kernel, mode));
    text
}

/// What there is a table for.
fn each_table(mut work: impl FnMut(&str, Mode)) {
    MODES.into_iter().for_each(|mode| KERNELS.into_iter().for_each(|kernel| work(kernel, mode)));
}

/// The cells of a kernel in a mode, but for the one without a workload.
fn of<'a>(judged: &'a [Judged], kernel: &str, mode: Mode) -> impl Iterator<Item = &'a Judged> {
    judged.iter().filter(move |of| of.cell.kernel == kernel && of.cell.mode == mode && of.cell.name != BACKGROUND)
}

fn compared(of: &Judged) -> Option<&Fidelity> {
    of.fidelity.as_ref()
}

/// The counters that the mechanisms of a cell are judged by.
fn judged_counters(fidelity: &Fidelity) -> Vec<Count> {
    let balancing = balanced(fidelity).into_iter().flat_map(|of| of.counts).flatten();
    balancing.chain(reclaim::counters(fidelity).into_iter().map(|(_, count)| count)).collect()
}

/// The cells of a kernel in a mode.
fn table(text: &mut String, judged: &[&Judged], kernel: &str, mode: Mode) {
    if judged.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n## Kernel {kernel}, mode {mode}\n");
    let columns =
        "scenario | quantities | inside | inside or within 5 % | curves inside | judged | median error | beyond";
    let _ = writeln!(text, "| {columns} |\n|---|--:|--:|--:|--:|--:|--:|--:|");
    for of in judged.iter().filter(|of| of.fidelity.is_none()) {
        let _ = writeln!(text, "| {} | not stored | | | | | | |", of.cell.name);
    }
    for (of, fidelity) in judged.iter().filter_map(|of| Some((of, of.fidelity.as_ref()?))) {
        let (inside, near, all) = fidelity.counts();
        let curves = match fidelity.curves_inside() {
            (_, 0) => "n/a".into(),
            (within, known) => format!("{within} of {known}"),
        };
        let counters = judged_counters(fidelity);
        let verdicts: Vec<bool> = counters.iter().filter_map(|count| count.good).collect();
        let beyond = verdicts.iter().filter(|good| !**good).count();
        let error = median_of(counters.into_iter()).map_or("n/a".into(), |error| format!("{error:.1} %"));
        let judged = verdicts.len();
        let _ = writeln!(
            text,
            "| {} | {all} | {inside} | {near} | {curves} | {judged} | {error} | {beyond} |",
            of.cell.name
        );
    }
}

/// Where each page was, over all cells that record it.
fn page_by_page(judged: &[Judged]) -> Option<String> {
    let found = judged.iter().filter_map(|of| of.pages.as_ref()).fold(None, |sum: Option<super::Agreement>, of| {
        let mut sum = sum.unwrap_or_default();
        sum.add(of);
        Some(sum)
    })?;
    Some(format!(
        "**Page by page**: {} of {} pages that workloads were given are in another zone on the twin; {} of {} watermarks differ.",
        found.elsewhere, found.pages, found.other_watermarks, found.watermarks
    ))
}

/// The cells with NUMA balancing, by what it is judged by.
fn numa_balancing(judged: &[Judged]) -> Option<String> {
    let with: Vec<_> = judged.iter().filter_map(|of| Some((of, balanced(of.fidelity.as_ref()?)?))).collect();
    let verdicts: Vec<bool> =
        with.iter().flat_map(|(_, of)| of.counts).flatten().filter_map(|count| count.good).collect();
    let median = median_error(with.iter().map(|(_, of): &(_, Balanced)| of))?;
    let settled = within(with.iter().map(|(judged, of)| (of.settled, judged.apart.0)), 15.0);
    let elsewhere = within(with.iter().map(|(judged, of)| (of.elsewhere, judged.apart.1)), 5.0);
    Some(format!(
        "**NUMA balancing**: median error of the counters {median:.1} %, {} of {} beyond their bounds. Settled within 15 %: \
         {settled}. Pages within 5 percentage points: {elsewhere}.",
        verdicts.iter().filter(|good| !**good).count(),
        verdicts.len(),
    ))
}

/// In how many cells the twin, and a run of the kernel among its others, are within a bound.
fn within(cells: impl Iterator<Item = (Option<f64>, Option<f64>)>, bound: f64) -> String {
    let cells: Vec<(f64, f64)> = cells.filter_map(|(twin, own)| Some((twin?.abs(), own?))).collect();
    let count = |good: &dyn Fn(f64, f64) -> bool| cells.iter().filter(|(twin, own)| good(*twin, *own)).count();
    let (twin, own) = (count(&|twin, _| twin <= bound), count(&|_, own| own <= bound));
    let both = count(&|twin, own| twin <= bound && own <= bound);
    let farther = count(&|twin, own| twin > bound.max(own));
    format!(
        "{twin} of {} cells; the kernel's own runs: {own}, the twin in {both} of these; farther than bound and kernel's own: \
         {farther}",
        cells.len()
    )
}

/// The cells in which memory was reclaimed, by what that is judged by.
fn of_reclaim(judged: &[Judged]) -> Option<String> {
    let sums = MODES.into_iter().filter_map(|mode| {
        let of_mode = judged.iter().filter(|of| of.cell.mode == mode);
        let counts: Vec<Count> = of_mode
            .filter_map(compared)
            .flat_map(|fidelity| reclaim::counters(fidelity).into_iter().map(|(_, count)| count))
            .collect();
        let verdicts: Vec<bool> = counts.iter().filter_map(|count| count.good).collect();
        let (median, beyond) = (median_of(counts.into_iter())?, verdicts.iter().filter(|good| !**good).count());
        Some(format!(
            "In mode {mode} the median error of all counters is {median:.1} %, and {beyond} of {} are beyond their bounds.",
            verdicts.len()
        ))
    });
    let sums: Vec<String> = sums.collect();
    (!sums.is_empty()).then(|| format!("**Reclaim**: {}", sums.join(" ")))
}

/// The events of reclaim one by one, over the runs where one CPU does everything.
fn event_by_event(judged: &[Judged]) -> Option<String> {
    let all = || judged.iter().flat_map(|of| &of.in_order);
    let mean = |percent: &dyn Fn(&super::EventByEvent) -> f64| all().map(percent).sum::<f64>() / all().count() as f64;
    (all().count() > 0).then(|| {
        format!(
            "**Reclaim event by event**, on one CPU: of the kernel's first 1000 events {:.1} % are the twin's in the same order, \
             and {:.1} % those of the kernel's own run with the next seed.",
            mean(&|of| of.twin.percent()),
            mean(&|of| of.own.percent())
        )
    })
}

fn how_to_read() -> String {
    let paragraphs = [
        "A quantity is a counter of the machine or of a node from the first sample to the last, a size or watermark of a \
         zone, where the pages of regions were at the end of each phase, or a number of events. It is **inside** if the \
         median of the twin's runs lies within the range of the kernel's runs; *within 5 %* is an error of at most 5 % of \
         their median. What the kernel counts in an idle second (scenario `background`) is taken off what accumulates. A \
         curve says *when* a counter grew; it is inside if it is no farther from the median of the kernel's curves than a \
         run of the kernel itself (Kolmogorov and Smirnov's distance).",
        "*Judged* are the counters of NUMA balancing, and of reclaim where there was any, that exceed 1000 on the kernel; \
         *beyond* are those of them that are off by more than 30 %, and not inside the kernel's range where that is wider. \
         *Settled* is when 90 % of the pages are on the nodes where they are at the end.",
        "The twin ran when this page was made (`make fidelity`). It begins with what the kernel's zones held at the start of \
         the recording, at that time. Mode exact comes out again byte by byte but for a rare race of the emulator \
         ([lab.md](reference/lab.md#two-modes)). Mode smp does not: five runs are a sample, and how fast its guest is depends on the \
         host; where a phase lasts a time and not a count (`statistics`), counts follow that speed. The examples' guests ran \
         before 28 November 2026, when think time was shorter than the scenario says where several processes begin (by 1.7 us an \
         access with two), and when busy CPUs of mode exact were not equally fast \
         ([notebook](model/notebook.md#cpus-of-the-labs-guest-were-not-equal)). The two sets above ran after it; the families of \
         their scenarios ran between the two.",
        "Every figure is in [fidelity/](fidelity/): `cells.csv` (the tables below, and more), `quantities.csv`, `curves.csv`, \
         `numa-balancing.csv`, `reclaim.csv`, `reclaim-events.csv`, `pages.csv`, `changes.csv`. How to add a scenario or \
         record one again: [lab.md](howto/lab.md#add-a-scenario-to-the-fidelity-page).",
    ];
    let mut text = String::from("\n## How to read the examples\n");
    for paragraph in paragraphs {
        text.push('\n');
        text.push_str(&wrapped(paragraph));
    }
    text
}

/// The cells in full, quantity by quantity.
pub fn details(judged: &[Judged]) -> String {
    let mut text = String::new();
    for Judged { cell, title, fidelity, .. } in judged {
        let _ = writeln!(text, "\n## {} on {}, mode {}\n", cell.name, cell.kernel, cell.mode);
        match fidelity {
            Some(fidelity) if cell.name == BACKGROUND => background(&mut text, title, fidelity),
            Some(fidelity) => scenario(&mut text, title, fidelity),
            None => text.push_str(&wrapped(title)),
        }
    }
    text
}

fn background(text: &mut String, title: &str, fidelity: &Fidelity) {
    let what = "What the kernel and the agent do by themselves, of the counters that the twin has";
    text.push_str(&wrapped(&format!("{title}. {what}; the twin's are 0.")));
    let mut table = fidelity.table();
    if let Body::List { rows, .. } = &mut table.body {
        let keep = |row: &Vec<Value>| !matches!(&row[0], Value::Text(name) if name.starts_with("zone "));
        rows.retain(keep);
        rows.iter_mut().for_each(|row| row.truncate(OF_KERNEL));
    }
    rows(text, &QUANTITIES[..OF_KERNEL], &table);
}

fn scenario(text: &mut String, title: &str, fidelity: &Fidelity) {
    let summary = sentence(&fidelity.summary());
    text.push_str(&wrapped(&format!("{title}. {summary}.")));
    let (zones, shown): (Vec<_>, Vec<_>) = fidelity.rows.iter().cloned().partition(|row| row.is_zone_as_it_is());
    if !zones.is_empty() {
        let _ = writeln!(text, "{} sizes and marks of zones are the same in all runs of both sides.", zones.len());
    }
    rows(text, &QUANTITIES, &Fidelity { rows: shown, ..Fidelity::default() }.table());
    if !fidelity.curves.is_empty() {
        rows(text, &["when counters grew", "twin, %", "kernel, %"], &fidelity.curve_table());
    }
}

/// A table of the report as one of the page.
fn rows(text: &mut String, labels: &[&str], table: &Table) {
    let Body::List { rows, .. } = &table.body else { return };
    let _ = writeln!(text, "\n| {} |\n|{}", labels.join(" | "), "---|".repeat(labels.len()));
    for row in rows {
        let cells: Vec<String> = row.iter().enumerate().map(|(at, cell)| shown(at, cell)).collect();
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
}

fn shown(at: usize, cell: &Value) -> String {
    match cell {
        Value::Text(text) => text.clone(),
        other => match other.number() {
            Some(number) if at == ERROR => format!("{number:+.1} %"),
            Some(number) => format!("{number}"),
            None if at == ERROR => "n/a".into(),
            None => "".into(),
        },
    }
}

fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// Text in lines, as an item of a list.
fn wrapped_item(text: &str) -> String {
    wrapped(text)
        .lines()
        .enumerate()
        .map(|(at, line)| format!("{}{line}\n", if at == 0 { "- " } else { "  " }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::how_to_read;
    use crate::text::WIDTH;

    #[test]
    fn its_text_is_in_lines() {
        assert!(how_to_read().lines().all(|line| line.chars().count() <= WIDTH));
    }
}
