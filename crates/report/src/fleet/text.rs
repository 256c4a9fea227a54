//! A fleet for people: findings that several have, then a line per recording.

use super::{Fleet, Summary};
use crate::format::grid::clean;
use crate::format::wrap;
use crate::units::{counted, percent, time};

/// Widest name of a recording that has a column of its own.
const WIDEST_NAME: usize = 32;
/// Columns of time waited and pressure, with the gaps around them.
const FIGURES: usize = 23;
/// Columns that findings have at least.
const FINDINGS: usize = 24;

/// The lines of a page, none of which is wider than `width` columns, at least [`crate::screen::NARROWEST`]. Without `all`, recordings without a problem are
/// counted only.
pub fn lines(fleet: &Fleet, width: usize, all: bool) -> Vec<String> {
    let read = fleet.recordings.len();
    let sick = fleet.recordings.iter().filter(|summary| summary.problems().next().is_some()).count();
    let names = fleet.recordings.iter().map(|summary| summary.name.as_str());
    let directory = directory_of_all(names.chain(fleet.unreadable.iter().map(|unreadable| unreadable.name.as_str())));
    let short = |name: &str| clean(name.strip_prefix(directory).unwrap_or(name));
    let mut lines = Vec::new();
    let mut first = format!("{}, {sick} with a problem", counted(read as u64, "recording"));
    if !fleet.unreadable.is_empty() {
        first += &format!("; {} could not be read", fleet.unreadable.len());
    }
    hanging(&first, width, &mut lines);
    if !matches!(directory, "" | "./") {
        hanging(&format!("in {}", clean(directory)), width, &mut lines);
    }
    let common = fleet.common();
    if !common.is_empty() {
        lines.push(String::new());
        for common in &common {
            let mut text = format!("{}: {} of {read}", common.key, common.recordings);
            if let Some(waited) = common.waited_ns {
                text += &format!(", waited {} in total", time(waited as f64));
            }
            text += &format!("; worst in {}: {}", short(&common.worst), clean(&common.sentence));
            hanging(&text, width, &mut lines);
        }
    }
    let shown: Vec<&Summary> =
        fleet.recordings.iter().filter(|summary| all || summary.problems().next().is_some()).collect();
    if !shown.is_empty() {
        lines.push(String::new());
        let names = shown.iter().map(|summary| short(&summary.name).chars().count());
        let column = names.max().unwrap_or(0).max("recording".len());
        let column = column.min(WIDEST_NAME).min(width.saturating_sub(FIGURES + FINDINGS));
        lines.push(format!("{:column$}  {:>7}  {:>10}  findings, worst first", "recording", "waited", "memory PSI"));
        for summary in shown {
            line(summary, short(&summary.name), (column, width), &mut lines);
        }
    }
    let healthy = read - sick;
    if healthy > 0 && !all {
        let text = format!("{} without a problem (--all lists them)", counted(healthy as u64, "recording"));
        hanging(&text, width, &mut lines);
    }
    if !fleet.unreadable.is_empty() {
        lines.push(String::new());
        lines.push("Could not be read:".into());
        for unreadable in &fleet.unreadable {
            // The error names the recording.
            hanging(&short(&unreadable.error), width, &mut lines);
        }
    }
    lines
}

fn line(summary: &Summary, name: String, (column, width): (usize, usize), lines: &mut Vec<String>) {
    let share = |value: Option<f64>| value.map_or("n/a".into(), |share| percent(share * 100.0));
    let pressure = summary.findings.iter().filter_map(|found| found.memory_some).max_by(f64::total_cmp);
    let keys: Vec<&str> = summary.problems().map(|found| found.key.as_str()).collect();
    let keys = if keys.is_empty() { "none".into() } else { keys.join(", ") };
    let (waited, pressure) = (share(summary.share()), share(pressure));
    // A longer name has a line of its own.
    let name = if name.chars().count() > column {
        lines.extend(wrap(&name, width));
        String::new()
    } else {
        name
    };
    let begin = format!("{name:column$}  {waited:>7}  {pressure:>10}  ");
    for (at, part) in wrap(&keys, width.saturating_sub(begin.chars().count())).into_iter().enumerate() {
        lines.push(if at == 0 { format!("{begin}{part}") } else { format!("{:1$}{part}", "", begin.chars().count()) });
    }
}

/// The directory that all names begin with, and the slash after it; empty: none.
fn directory_of_all<'a>(mut names: impl Iterator<Item = &'a str>) -> &'a str {
    let Some(first) = names.next() else { return "" };
    let whole = |end: usize| first[..end].rfind('/').map_or(0, |at| at + 1);
    let shared = |end: usize, name: &str| {
        let same = first[..end].bytes().zip(name.bytes()).take_while(|(a, b)| a == b).count();
        // Of bytes that are equal up to a slash, the slash begins a character.
        first.as_bytes()[..same].iter().rposition(|b| *b == b'/').map_or(0, |at| at + 1)
    };
    &first[..names.fold(whole(first.len()), shared)]
}

/// A paragraph whose further lines are indented.
fn hanging(text: &str, width: usize, lines: &mut Vec<String>) {
    let mut parts = wrap(text, width.saturating_sub(4)).into_iter();
    lines.extend(parts.next());
    lines.extend(parts.map(|part| format!("    {part}")));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::Found;

    #[test]
    fn names_lose_the_directory_that_all_have() {
        let of = |names: &[&'static str]| directory_of_all(names.iter().copied());
        assert_eq!(of(&["/a/b/c.mmt", "/a/b/d.mmt"]), "/a/b/");
        assert_eq!(of(&["/a/bx/c.mmt", "/a/by/d.mmt"]), "/a/");
        assert_eq!(of(&["/a/é/c", "/a/è/c"]), "/a/");
        assert_eq!((of(&["a.mmt", "b.mmt"]), of(&["x/a.mmt"]), of(&[])), ("", "x/", ""));
    }

    #[test]
    fn nothing_is_wider_than_the_page_and_nothing_steers_the_terminal() {
        let name = format!("/d/{}\u{1b}[2J.mmt", "n".repeat(70));
        let keys = ["numa_migration_failures", "writeback_throttling", "refault_thrash"];
        let found = |key: &&str| Found { key: key.to_string(), severity: 50, ..Found::default() };
        let summary = Summary { name, findings: keys.iter().map(found).collect(), ..Summary::default() };
        let fleet = Fleet::new(vec![summary.clone(), Summary { name: "/d/b".into(), ..summary }], Vec::new());
        for width in [60, 80] {
            let lines = lines(&fleet, width, true);
            assert!(lines.iter().all(|line| !line.contains(char::is_control)), "{lines:#?}");
            assert!(lines.iter().all(|line| line.chars().count() <= width), "{lines:#?}");
        }
    }
}
