//! docs/fidelity.md: all cells as a page.

use super::{BACKGROUND, EventByEvent, Judged, KERNELS, MODES, SEEDS};
use mmtwin_report::fidelity::balancing::{Balanced, COUNTERS, balanced, median_error};
use mmtwin_report::fidelity::{Count, Fidelity, median_of, reclaim};
use mmtwin_report::model::{Body, Cell as Value, Table};
use std::fmt::Write;

/// Width of text.
const WIDTH: usize = 118;

/// Columns of a scenario's table.
const QUANTITIES: [&str; 8] = ["quantity", "kernel", "least", "greatest", "background", "twin", "error", ""];
/// Place of the error, which is in percent.
const ERROR: usize = 6;
/// Of these, those that are only the kernel's.
const OF_KERNEL: usize = 4;

/// All cells, with what one must know to read them.
pub fn page(judged: &[Judged]) -> String {
    let mut text = header();
    text.push_str(
        "## Overview\n\n| scenario | kernel | mode | runs | quantities | inside | inside or within 5 % | curves inside |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for Judged { cell, fidelity, runs, .. } in judged {
        let shown = match fidelity {
            Some(fidelity) if cell.name != BACKGROUND => {
                let (inside, near, all) = fidelity.counts();
                let known: Vec<_> =
                    fidelity.curves.iter().filter_map(|row| Some((row.distance?, row.spread))).collect();
                let within = known.iter().filter(|(distance, spread)| distance <= spread).count();
                let curves = if known.is_empty() { "n/a".into() } else { format!("{within} of {}", known.len()) };
                format!("{all} | {inside} | {near} | {curves}")
            }
            Some(_) => "taken off | | |".into(),
            None => "not stored | | |".into(),
        };
        let _ = writeln!(text, "| {} | {} | {} | {runs} | {shown} |", cell.name, cell.kernel, cell.mode);
    }
    page_by_page(&mut text, judged);
    numa_balancing(&mut text, judged);
    of_reclaim(&mut text, judged);
    event_by_event(&mut text, judged);
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

/// Where each page was, of the cells that record it.
fn page_by_page(text: &mut String, judged: &[Judged]) {
    let with_pages: Vec<_> = judged.iter().filter_map(|of| Some((&of.cell, of.pages.as_ref()?))).collect();
    if with_pages.is_empty() {
        return;
    }
    text.push_str("\n## Page by page\n\n");
    text.push_str(&wrapped(
        "Every page that the workload's own threads were given, over all seeds. *Elsewhere* are those that are in another \
         zone on the twin: the pages of one thread are compared in the order of their allocation, of several threads only \
         how many are in each zone. *By thread* compares each thread by itself; which of several got the last pages of a \
         zone is chance. The NUMA counters are those of these pages alone, on the nodes that they \
         are on: what every other allocation of the recording counted is taken off. *Off* is the sum of their differences. Watermarks are the \
         minimum, low and high mark of every zone.",
    ));
    text.push_str(
        "\n| scenario | kernel | mode | pages | elsewhere | by thread | NUMA counters | off | watermarks | other |\n\
         |---|---|---|---|---|---|---|---|---|---|\n",
    );
    for (cell, of) in with_pages {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            cell.name,
            cell.kernel,
            cell.mode,
            of.pages,
            of.elsewhere,
            of.by_thread,
            of.counters,
            of.counted_otherwise,
            of.watermarks,
            of.other_watermarks
        );
    }
}

/// The cells with NUMA balancing, by what it is judged by.
fn numa_balancing(text: &mut String, judged: &[Judged]) {
    let with: Vec<_> = judged.iter().filter_map(|of| Some((of, balanced(of.fidelity.as_ref()?)?))).collect();
    if with.is_empty() {
        return;
    }
    text.push_str("\n## NUMA balancing\n\n");
    text.push_str(&wrapped(
        "How far the twin's medians are from the kernel's. **Bold**: a counter by more than 30 %, and not inside the kernel's \
         range where that is wider; *italic*: fewer than 1000, not judged. *Settled* is how much later the twin has 90 % \
         of the pages on the nodes where they are at the end, *elsewhere* the greatest difference of a node's part of a \
         region's pages at the end of a phase, in percentage points. In brackets, how far a run of the kernel is from \
         its other runs by the same measure, in the median.",
    ));
    let names: Vec<&str> = COUNTERS.iter().map(|name| name.trim_start_matches("numa_")).collect();
    let _ = writeln!(text, "\n| scenario | kernel | mode | {} | settled | elsewhere |", names.join(" | "));
    let _ = writeln!(text, "|{}", "---|".repeat(COUNTERS.len() + 5));
    for (Judged { cell, apart, .. }, of) in &with {
        let counts: Vec<String> = of.counts.iter().map(counted).collect();
        let own = |own: Option<f64>| own.map_or("n/a".into(), |own| format!("{own:.0}"));
        let settled = of.settled.map_or("n/a".into(), |percent| format!("{percent:+.0} % ({})", own(apart.0)));
        let elsewhere = of.elsewhere.map_or("n/a".into(), |points| format!("{points:.1} ({})", own(apart.1)));
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {settled} | {elsewhere} |",
            cell.name,
            cell.kernel,
            cell.mode,
            counts.join(" | ")
        );
    }
    let judged: Vec<bool> =
        with.iter().flat_map(|(_, of)| of.counts).flatten().filter_map(|count| count.good).collect();
    let median = median_error(with.iter().map(|(_, of): &(_, Balanced)| of)).unwrap_or(0.0);
    let settled = within(with.iter().map(|(judged, of)| (of.settled, judged.apart.0)), 15.0);
    let elsewhere = within(with.iter().map(|(judged, of)| (of.elsewhere, judged.apart.1)), 5.0);
    text.push('\n');
    text.push_str(&wrapped(&format!(
        "Median error of the counters {median:.1} %, {} of {} beyond their bounds. Settled within 15 %: {settled}. Pages \
         within 5 percentage points: {elsewhere}.",
        judged.iter().filter(|good| !**good).count(),
        judged.len(),
    )));
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
fn of_reclaim<'a>(text: &mut String, judged: &'a [Judged]) {
    let counters = |of: &'a Judged| Some((&of.cell, reclaim::counters(of.fidelity.as_ref()?)));
    let with: Vec<_> = judged.iter().filter_map(counters).filter(|(_, all)| !all.is_empty()).collect();
    if with.is_empty() {
        return;
    }
    text.push_str("\n## Reclaim\n\n");
    text.push_str(&wrapped(
        "Counters of pages scanned, reclaimed, activated, deactivated and refaulted, of stalls, of kswapd's runs and of \
         pages swapped out. Judged are those that exceed 1000 on the kernel; *beyond* are those that the twin's median is \
         farther from than 30 %, and not inside the kernel's range.",
    ));
    text.push_str("\n| scenario | kernel | mode | judged | median error | beyond |\n|---|---|---|---|---|---|\n");
    for (cell, all) in &with {
        let judged = all.iter().filter(|(_, count)| count.good.is_some()).count();
        let beyond = all.iter().filter(|(_, count)| count.good == Some(false));
        let beyond: Vec<String> = beyond.map(|(name, count)| format!("{name} {:+.0} %", count.error)).collect();
        let median = median_of(all.iter().map(|(_, count)| *count));
        let median = median.map_or("n/a".into(), |median| format!("{median:.1} %"));
        let beyond = beyond.join(", ");
        let _ = writeln!(text, "| {} | {} | {} | {judged} | {median} | {beyond} |", cell.name, cell.kernel, cell.mode);
    }
    let sums = MODES.into_iter().filter_map(|mode| {
        let of_mode = with.iter().filter(|(cell, _)| cell.mode == mode);
        let counts: Vec<_> = of_mode.flat_map(|(_, all)| all.iter().map(|(_, count)| *count)).collect();
        let judged: Vec<bool> = counts.iter().filter_map(|count| count.good).collect();
        let (median, beyond) = (median_of(counts.into_iter())?, judged.iter().filter(|good| !**good).count());
        Some(format!(
            "In mode {mode} the median error of all counters is {median:.1} %, and {beyond} of {} are beyond their bounds.",
            judged.len()
        ))
    });
    text.push('\n');
    text.push_str(&wrapped(&sums.collect::<Vec<_>>().join(" ")));
}

/// The events of reclaim one by one, of the cells where one CPU does everything.
fn event_by_event(text: &mut String, judged: &[Judged]) {
    if judged.iter().all(|of| of.in_order.is_empty()) {
        return;
    }
    text.push_str("\n## Reclaim event by event\n\n");
    text.push_str(&wrapped(
        "Events of `vmscan` where everything runs on one CPU: equal in type and all `nr_*` values. *First* are those that are \
         equal before the first that is not, *aligned* the part of the kernel's first 1000 that the longest common \
         subsequence with the twin's first 1000 has. *Own* are the same figures of the kernel's run beside its own run with \
         the next seed.",
    ));
    text.push_str("\n| scenario | kernel | mode | seed | first | aligned | own first | own aligned |\n");
    text.push_str("|---|---|---|---|---|---|---|---|\n");
    for Judged { cell, in_order, .. } in judged {
        for EventByEvent { seed, twin, own } in in_order {
            let cells = [twin, own].map(|of| format!("{} | {:.1} %", of.first, of.percent())).join(" | ");
            let _ = writeln!(text, "| {} | {} | {} | {seed} | {cells} |", cell.name, cell.kernel, cell.mode);
        }
    }
}

fn counted(count: &Option<Count>) -> String {
    match count {
        None => "n/a".into(),
        Some(Count { error, good: Some(true) }) => format!("{error:+.1} %"),
        Some(Count { error, good: Some(false) }) => format!("**{error:+.1} %**"),
        Some(Count { error, good: None }) => format!("*{error:+.1} %*"),
    }
}

fn header() -> String {
    let (first, last) = (SEEDS[0], SEEDS[SEEDS.len() - 1]);
    let paragraphs = [
        format!(
            "The twin beside real kernels. Each scenario of `scenarios/fidelity` ran in the [lab](lab.md) on Debian's \
             kernels {}, in the modes {}, with the seeds {first} to {last}; the recordings are in the repository, below \
             `scenarios/fidelity/recordings`. The twin ran the same files with the same seeds when this page was made \
             (`make fidelity`). It begins with what the kernel's zones had at the begin of the recording: managed and free \
             pages, pages on per-CPU lists, and the time. Between the modes only the machine's speed differs in \
             the twin: preset `lab-4n`, all of whose CPUs share one budget, `lab-4n-6.12` on that kernel, and `lab-4n-smp`.",
            KERNELS.join(" and "),
            MODES.map(|mode| mode.to_string()).join(" and "),
        ),
        String::from("## How to read it"),
        String::from(
            "A table has a row for each quantity that both sides know and at least one of them moved: what counters of the \
             machine and of nodes grew by from the first sample to the last, where the marks of zones are, where the pages \
             of regions were at the end of each phase, and how many events there were. *kernel* is the median of the \
             kernel's runs, *least* and *greatest* their range, *twin* the median of the twin's runs.",
        ),
        String::from(
            "*background* is what the counter grew by in an idle second, the scenario `background`: the kernel's threads, \
             and the agent that starts the workload. The twin does none of that, so it is taken off: *error* is how far \
             the twin is from *kernel* less *background*, and a row is **inside** if *twin* plus *background* lies within \
             the kernel's range over the seeds, else **outside**. Nothing is taken off sizes such as `nr_free_pages`, which \
             do not add up. *Within 5 %* is an error of at most 5 %. A quantity may be outside by one page of 24,000 where \
             the kernel's runs are equal, and inside by chance where they are far apart: read the range too.",
        ),
        String::from(
            "Where both sides have at least five samples during the workload, a second table says *when* counters grew: a \
             curve is the share of the growth that had come by some share of the workload's time, and the distance of two \
             curves is their greatest vertical distance (Kolmogorov and Smirnov's), so 10 % means that a tenth of the \
             growth came earlier or later. *twin* is the distance of the twin's median from the median of the kernel's \
             runs, *kernel* that of the kernel's farthest run; n/a: the twin has too few samples, or grew by less than \
             100. Inside is a distance that is not above the kernel's own.",
        ),
        String::from(
            "Runs in mode exact come out again byte by byte, but for a rare race of the emulator \
             ([lab.md](lab.md#two-modes)). Those in mode smp do not: five of them are a sample, and the \
             page compares distributions. How fast that guest is depends on the host that emulates it, and no machine file \
             says it; where a phase lasts a time and not a count (`statistics`), counts follow that speed and are no \
             judgement of the twin.",
        ),
        String::from(
            "How to add a scenario, or record one anew: [lab.md](lab.md#adding-a-scenario-to-the-fidelity-page). What each \
             mechanism leaves out: [model.md](model.md).",
        ),
    ];
    let mut text = String::from("# Fidelity\n\n");
    for paragraph in paragraphs {
        text.push_str(&wrapped(&paragraph));
        text.push('\n');
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

/// Text in lines.
fn wrapped(text: &str) -> String {
    let (mut lines, mut length) = (String::new(), 0);
    for word in text.split_whitespace() {
        if length > 0 && length + 1 + word.chars().count() > WIDTH {
            lines.push('\n');
            length = 0;
        } else if length > 0 {
            lines.push(' ');
            length += 1;
        }
        lines.push_str(word);
        length += word.chars().count();
    }
    lines.push('\n');
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_comes_in_lines() {
        assert_eq!(wrapped("a  b\nc"), "a b c\n");
        let long = wrapped(&"word ".repeat(100));
        assert!(long.lines().count() == 5 && long.lines().all(|line| line.len() <= WIDTH && !line.ends_with(' ')));
        assert!(header().lines().all(|line| line.chars().count() <= WIDTH));
    }
}
