//! Formats of a comparison: text for people, JSON and CSV for programs.

pub mod chain;
pub(crate) mod csv;
pub(crate) mod grid;
mod histogram;
mod json;
mod number;
#[cfg(test)]
mod samples;
mod text;

use crate::compare::Comparison;
pub use grid::wrap;
use std::io;

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Aligned text.
    Table,
    /// One JSON document, schema_version 2.
    Json,
    /// One block per table, RFC 4180.
    Csv,
}

/// How text looks; the other formats look the same everywhere.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Columns of the terminal. Text is wrapped and wide tables are split to fit; `usize::MAX` does neither.
    pub width: usize,
    /// Whether to add colours. They only repeat what words say.
    pub colour: bool,
    /// Rows printed of a list or series; the rest is counted.
    pub rows: usize,
    /// Omit tables without a known value; they are only named at the end.
    pub brief: bool,
    /// Write each number of a list by itself, with the digits it has; else all of a column with the same decimals.
    pub people: bool,
}

impl Default for Style {
    fn default() -> Style {
        Style { width: 100, colour: false, rows: 20, brief: false, people: false }
    }
}

/// Prints a comparison, or a report as [`crate::compare::single`] makes it. Errors are those of `out`.
pub fn write(comparison: &Comparison, format: Format, style: &Style, out: &mut dyn io::Write) -> io::Result<()> {
    match format {
        Format::Table => text::write(comparison, style, out),
        Format::Json => json::write(comparison, out),
        Format::Csv => csv::write(comparison, out),
    }
}

#[cfg(test)]
mod tests {
    use super::samples::{compared, one, reproduced, runs};
    use super::*;

    fn printed(comparison: &Comparison, format: Format, style: &Style) -> String {
        let mut out = Vec::new();
        write(comparison, format, style, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// Snapshots are named after what they show, not after the module.
    fn assert_printed(name: &str, text: &str) {
        let mut settings = insta::Settings::clone_current();
        settings.set_prepend_module_to_snapshot(false);
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!(name, text));
    }

    #[test]
    fn every_kind_in_every_format() {
        let samples = [("one", one()), ("compared", compared()), ("runs", runs()), ("reproduced", reproduced())];
        for (name, comparison) in samples {
            for (suffix, format) in [("text", Format::Table), ("json", Format::Json), ("csv", Format::Csv)] {
                assert_printed(&format!("{name}_{suffix}"), &printed(&comparison, format, &Style::default()));
            }
        }
    }

    #[test]
    fn narrow_and_coloured() {
        let style = Style { width: 60, colour: true, rows: 2, ..Style::default() };
        assert_printed("compared_narrow", &printed(&compared(), Format::Table, &style));
    }

    #[test]
    fn any_width_prints_every_row() {
        for width in [0, 1, 40, usize::MAX] {
            let text = printed(&compared(), Format::Table, &Style { width, ..Style::default() });
            let longest = text.lines().map(|line| line.chars().count()).max();
            assert!(text.contains("4905237") && text.contains("Direct recla"), "{text}");
            assert!(width != usize::MAX || longest > Some(100), "nothing is wrapped or split: {text}");
        }
    }

    #[test]
    fn colours_only_repeat() {
        let plain = printed(&compared(), Format::Table, &Style::default());
        let coloured = printed(&compared(), Format::Table, &Style { colour: true, ..Style::default() });
        let mut stripped = String::new();
        let mut rest = coloured.as_str();
        while let Some((before, after)) = rest.split_once('\x1b') {
            stripped.push_str(before);
            rest = after.split_once('m').unwrap().1;
        }
        stripped.push_str(rest);
        assert_eq!(stripped, plain);
    }

    #[test]
    fn a_selected_table_is_clean_csv() {
        let mut comparison = compared();
        comparison.select(&["busiest".to_owned()]).unwrap();
        let csv = printed(&comparison, Format::Csv, &Style::default());
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(lines.len(), 1 + 3 + 3, "one header for both inputs: {csv}");
        assert!(lines.iter().skip(1).all(|line| line.starts_with("busiest,")), "{csv}");
    }
}
