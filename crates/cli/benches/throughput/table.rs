//! Figures as a Markdown table, printed and put into the documentation.

use crate::inputs::{Result, fail};
use std::fs;
use std::path::Path;
use std::process::Command;

/// What a figure has to reach.
#[derive(Clone, Copy, Debug)]
pub enum Bar {
    /// This or more.
    AtLeast(f64),
    /// This or less.
    AtMost(f64),
    /// Nothing: it is for comparison.
    None,
}

/// A line of the table.
pub struct Row {
    what: String,
    bar: String,
    figure: String,
    verdict: &'static str,
}

impl Row {
    /// A measured one; `value` is compared with the bar.
    pub fn new(what: &str, bar: Bar, value: f64, figure: String) -> Row {
        let verdict = match bar {
            Bar::AtLeast(least) => Some(value >= least),
            Bar::AtMost(most) => Some(value <= most),
            Bar::None => None,
        };
        let number = |x: f64| if x >= 1e6 { format!("{} M", x / 1e6) } else { x.to_string() };
        let bar = match bar {
            Bar::AtLeast(least) => format!("≥ {}", number(least)),
            Bar::AtMost(most) => format!("≤ {}", number(most)),
            Bar::None => String::new(),
        };
        let verdict = verdict.map_or("", |reached| if reached { "reached" } else { "**missed**" });
        Row { what: what.into(), bar, figure, verdict }
    }

    /// One that could not be measured.
    pub fn skipped(what: &str, why: &str) -> Row {
        Row { what: what.into(), bar: String::new(), figure: why.into(), verdict: "**skipped**" }
    }
}

/// The rows and the machine.
pub fn markdown(rows: &[Row], runs: usize) -> String {
    let mut text = String::from("| what | bar | measured | |\n|---|---|---|---|\n");
    for row in rows {
        text += &format!("| {} | {} | {} | {} |\n", row.what, row.bar, row.figure, row.verdict);
    }
    text + "\n" + &machine() + &format!(" Medians of {runs} runs.\n")
}

/// One sentence about this machine and the programs compared with.
fn machine() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let info = read("/proc/cpuinfo");
    let model = info.lines().find_map(|l| l.strip_prefix("model name")?.split_once(": ")).map_or("?", |(_, m)| m);
    let cores = std::thread::available_parallelism().map_or(0, |n| n.get());
    let kernel = read("/proc/sys/kernel/osrelease");
    let memory = read("/proc/meminfo");
    let kilobytes = memory.lines().next().and_then(|l| l.split_whitespace().nth(1)?.parse::<u64>().ok()).unwrap_or(0);
    let load = read("/proc/loadavg");
    format!(
        "{model}, {cores} CPUs, {} GiB, Linux {}; {}, {}, {}. Load average at the end: {}.",
        kilobytes >> 20,
        kernel.trim(),
        version("trace-cmd", "trace-cmd"),
        version("perl", "perl"),
        version("wc", "wc"),
        load.split(' ').next().unwrap_or("?")
    )
}

/// The first line with a number that `PROGRAM --version` prints.
fn version(program: &str, name: &str) -> String {
    let output = Command::new(program).arg("--version").output().map(|o| o.stdout).unwrap_or_default();
    let text = String::from_utf8_lossy(&output).into_owned();
    let number = |word: &str| {
        let word = word.trim_start_matches(['v', '(']).trim_end_matches([')', ',']);
        (word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.')).then(|| word.to_string())
    };
    let found = text.split_whitespace().find_map(number);
    format!("{name} {}", found.unwrap_or_else(|| "not installed".into()))
}

const BEGIN: &str = "<!-- begin: cargo bench -->\n";
const END: &str = "<!-- end: cargo bench -->";

/// Replaces what stands between the markers of a document.
pub fn write_into(path: &Path, table: &str) -> Result<()> {
    let text = fs::read_to_string(path).map_err(fail(path))?;
    let parts = text.split_once(BEGIN).and_then(|(head, rest)| Some((head, rest.split_once(END)?.1)));
    let (head, tail) = parts.ok_or_else(|| format!("{}: no markers", path.display()))?;
    fs::write(path, format!("{head}{BEGIN}\n{table}\n{END}{tail}")).map_err(fail(path))
}
