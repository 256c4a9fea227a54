//! The part of a series' page that `mmtwin reproduce --write-docs` writes: what each patch changes, and the score. It stands
//! between two comments; all other text of the page is its author's.

use super::{Reproduction, by_patch};
use crate::text::wrapped;
use mmtwin_report::model::{Body, Cell};
use std::fmt::Write;

/// Columns, as those of the table `by-patch` without the study and its seeds.
const COLUMNS: [&str; 6] = ["patch", "test", "decisions changed", "published sign", "opposite sign", "none in both"];
/// Their places there.
const PLACES: [usize; 6] = [1, 2, 4, 5, 6, 7];

/// The written part.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    /// Name of the study.
    study: String,
    /// Seeds of the rows that patches compare.
    seeds: String,
    /// Of the twin, as git says it.
    commit: String,
    date: String,
    rows: Vec<[String; 6]>,
    score: String,
}

impl Part {
    fn text(&self) -> String {
        let Part { study, seeds, commit, date, rows, score } = self;
        let mut text = wrapped(&format!("By `mmtwin reproduce {study}`, {seeds}; twin of commit {commit}, {date}."));
        let _ = writeln!(text, "\n| {} |\n|{}", COLUMNS.join(" | "), "---|".repeat(COLUMNS.len()));
        rows.iter().for_each(|row| _ = writeln!(text, "| {} |", row.join(" | ")));
        text + "\n" + &wrapped(&format!("Score: {score}."))
    }
}

impl Reproduction {
    /// A page of its series with today's figures; `None`: it has no place for them. `commit` and `date` are the twin's.
    pub fn rewritten(&self, page: &str, commit: &str, date: &str) -> Option<String> {
        let table = by_patch(std::slice::from_ref(self));
        let rows = table.and_then(|table| if let Body::List { rows, .. } = table.body { Some(rows) } else { None });
        let cells =
            |row: Vec<Cell>| PLACES.map(|at| if let Cell::Text(text) = &row[at] { text.clone() } else { "-".into() });
        let seeds: Vec<usize> = self.steps().iter().map(|step| step.runs).collect();
        let part = Part {
            study: self.name.into(),
            seeds: said(&seeds),
            commit: commit.into(),
            date: date.into(),
            rows: rows.unwrap_or_default().into_iter().map(cells).collect(),
            score: self.scores().last()?.1.line(),
        };
        let (before, _, after) = parts(page, self.name)?;
        Some(format!("{before}\n{}\n{after}", part.text()))
    }
}

/// A page up to the written part, that, and the rest; the comments are not of the part.
fn parts<'a>(page: &'a str, study: &str) -> Option<(&'a str, &'a str, &'a str)> {
    let comment = |what: &str| format!("<!-- {what}: mmtwin reproduce {study} -->\n");
    let (begin, end) = (comment("begin"), comment("end"));
    let from = page.find(&begin)? + begin.len();
    let to = from + page[from..].find(&end)?;
    Some((&page[..from], &page[from..to], &page[to..]))
}

/// Numbers of seeds for people.
fn said(seeds: &[usize]) -> String {
    match (seeds.iter().min(), seeds.iter().max()) {
        (Some(1) | None, Some(1) | None) => "one seed".into(),
        (Some(least), Some(most)) if least < most => format!("{least} to {most} seeds"),
        (least, _) => format!("{} seeds", least.unwrap_or(&0)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::ALL;
    use super::*;
    use mmtwin_scenario::published::Published;
    use std::path::Path;

    /// Reads what [`Part::text`] writes.
    fn read(text: &str) -> Option<Part> {
        let joined = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let (head, rest) = text.split_once("\n\n")?;
        let (table, score) = rest.split_once("\n\n")?;
        let head = joined(head);
        let (study, head) = head.strip_prefix("By `mmtwin reproduce ")?.split_once("`, ")?;
        let (seeds, head) = head.split_once("; twin of commit ")?;
        let (commit, date) = head.strip_suffix('.')?.rsplit_once(", ")?;
        let rows = table.lines().skip(2).map(|line| {
            let cells: Vec<String> =
                line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").map(String::from).collect();
            cells.try_into().ok()
        });
        Some(Part {
            study: study.into(),
            seeds: seeds.into(),
            commit: commit.into(),
            date: date.into(),
            rows: rows.collect::<Option<_>>()?,
            score: joined(score).strip_prefix("Score: ")?.strip_suffix('.')?.into(),
        })
    }

    /// No run is made: patches and tests are those of the study, the rest has the form that is written.
    #[test]
    fn pages_have_what_is_written() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for study in &ALL {
            let Some(file) = study.page else { continue };
            let page = std::fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
            let (_, text, _) =
                parts(&page, study.name).unwrap_or_else(|| panic!("{file}: no place for {}", study.name));
            let part =
                read(text.trim_matches('\n')).unwrap_or_else(|| panic!("{file}: `mmtwin reproduce --write-docs`"));
            assert_eq!((text, part.study.as_str()), (format!("\n{}\n", part.text()).as_str(), study.name));
            let published = Published::parse(study.name, study.published).unwrap_or_else(|e| panic!("{e}"));
            let test = |row: &str| published.test_of(row).map_or(String::new(), |test| test.label.clone());
            let steps = published.patches.iter().flat_map(|patch| patch.steps.iter().map(move |step| (patch, step)));
            let steps: Vec<_> = steps.map(|(patch, [_, after])| [patch.name.clone(), test(after)]).collect();
            let rows: Vec<_> = part.rows.iter().map(|[patch, test, ..]| [patch.clone(), test.clone()]).collect();
            assert_eq!(rows, steps, "{file}");
            assert!(part.score.contains(" cells, median error "), "{file}");
        }
    }

    #[test]
    fn text_around_the_part_stays() {
        let page = "# A\n<!-- begin: mmtwin reproduce a -->\nold\n<!-- end: mmtwin reproduce a -->\nrest\n";
        let (before, part, after) = parts(page, "a").expect("a part");
        assert_eq!((part, format!("{before}{part}{after}").as_str()), ("old\n", page));
        assert!(before.starts_with("# A\n<!--") && after.ends_with("-->\nrest\n") && parts(page, "b").is_none());
        assert_eq!([&[1, 1][..], &[3, 10], &[5], &[]].map(said), ["one seed", "3 to 10 seeds", "5 seeds", "one seed"]);
    }
}
