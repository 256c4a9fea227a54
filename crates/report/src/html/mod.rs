//! One HTML file of a report or of a comparison: verdict, charts over time, heat maps, flame graph and tables.
//!
//! The file needs no network and can load nothing: its Content-Security-Policy allows the one script and the one style
//! that are in it, by their hashes. Data are JSON in elements that are no scripts, with `<` escaped; the script writes
//! them as text, never as markup. The script is made of `web/src` by `make web` and committed, so that building mmtwin
//! needs no Node.

mod chart;
mod charts;
mod events;
mod flame;
mod marks;
mod number;
mod run;

use crate::compare::{Comparison, JoinedBody};
use crate::format::{self, Format, Style};
use crate::model::Body;
use crate::screen::Subject;
use crate::side_by_side::{Differences, differences};
use mmtwin_analysis::series::Series;
use serde::Serialize;
use std::io::{self, Write};

const SCRIPT: &str = include_str!("../../web/dist/page.js");
const STYLE: &str = include_str!("../../web/dist/page.css");
/// `SCRIPT-HASH STYLE-HASH`, as a Content-Security-Policy names them.
const HASHES: &str = include_str!("../../web/dist/hashes.txt");
/// Licences of what is in the script.
const LICENCES: &str = include_str!("../../web/dist/licences.txt");

/// Largest file that is aimed at, in bytes.
pub const LARGEST: usize = 2_000_000;
/// Most of it that tables may have.
const TABLES: usize = 700_000;
/// Most rows of a table, and the fewest to which large tables are cut.
const ROWS: [usize; 4] = [2000, 500, 100, 20];
/// Most blocks of a line, and the fewest.
const BLOCKS: [usize; 8] = [4096, 2048, 1024, 512, 256, 128, 64, 32];

/// What a page shows of one input.
pub struct Run<'a> {
    /// Its name; in a comparison that of its column.
    pub name: &'a str,
    /// Its statistics.
    pub subject: Subject<'a>,
    /// What happened over time.
    pub series: Series,
}

/// What the page is made of beside the report.
#[derive(Serialize)]
struct Page<'a> {
    title: &'a str,
    version: &'static str,
    licences: &'static str,
    runs: Vec<run::RunData>,
    /// Of a comparison.
    differences: Option<Differences>,
}

/// Writes the page of a report, of one run, or of a comparison. Lines are thinned until it has about [`LARGEST`] bytes.
///
/// # Errors
/// Those of `out`.
pub fn write(title: &str, mut runs: Vec<Run<'_>>, comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    let report = tables(comparison)?;
    let room = LARGEST.saturating_sub(SCRIPT.len() + STYLE.len() + report.len());
    let mut page = Vec::new();
    for most in BLOCKS {
        let data = runs.iter_mut().map(|run| run::data(run, most)).collect();
        let (version, differences) = (env!("CARGO_PKG_VERSION"), differences(comparison));
        page = json(&Page { title, version, licences: LICENCES, runs: data, differences })?;
        if page.len() <= room {
            break;
        }
    }
    let (script, style) = HASHES.trim().split_once(' ').unwrap_or_default();
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; script-src '{script}'; style-src '{style}'; base-uri 'none'; form-action \
         'none'\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n<style>",
        escaped(title)
    )?;
    write!(out, "{STYLE}</style>\n</head>\n<body>\n<noscript>\n<h1>{}</h1>\n", escaped(title))?;
    for (_, finding) in comparison.findings.iter().flatten() {
        writeln!(out, "<p>{}</p>", escaped(&finding.sentence))?;
    }
    write!(
        out,
        "<p>Charts and tables need JavaScript.</p>\n</noscript>\n<script type=\"application/json\" id=\"report\">"
    )?;
    out.write_all(&report)?;
    write!(out, "</script>\n<script type=\"application/json\" id=\"page\">")?;
    out.write_all(&page)?;
    write!(out, "</script>\n<script>{SCRIPT}</script>\n</body>\n</html>\n")
}

/// The report as JSON, with as many rows of its tables as there is room for.
fn tables(comparison: &Comparison) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    for most in ROWS {
        text.clear();
        format::write(&cut(comparison, most), Format::Json, &Style::default(), &mut text)?;
        text = without_markup(text);
        if text.len() <= TABLES {
            break;
        }
    }
    Ok(text)
}

/// The same with at most so many rows in each list.
fn cut(comparison: &Comparison, most: usize) -> Comparison {
    let mut comparison = comparison.clone();
    for table in &mut comparison.tables {
        let JoinedBody::Single { body: Body::List { rows, .. } | Body::Series { rows, .. }, .. } = &mut table.body
        else {
            continue;
        };
        if rows.len() > most {
            let name = &table.name;
            let cut = format!("The first {most} of {} rows: --table {name} --format csv has all.", rows.len());
            table.note = if table.note.is_empty() { cut } else { format!("{cut} {}", table.note) };
            rows.truncate(most);
        }
    }
    comparison
}

fn json(value: &impl Serialize) -> io::Result<Vec<u8>> {
    Ok(without_markup(serde_json::to_vec(value)?))
}

/// JSON in which nothing ends the element that holds it: `<` stands only in strings, where it may be escaped.
fn without_markup(json: Vec<u8>) -> Vec<u8> {
    if !json.contains(&b'<') {
        return json;
    }
    let mut escaped = Vec::with_capacity(json.len() + json.len() / 64);
    for byte in json {
        match byte {
            b'<' => escaped.extend_from_slice(b"\\u003c"),
            byte => escaped.push(byte),
        }
    }
    escaped
}

/// Text as HTML, in elements and in attributes.
pub(crate) fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            // Not allowed in HTML.
            character if character.is_control() => html.push(' '),
            character => html.push(character),
        }
    }
    html
}

#[cfg(test)]
mod tests;
