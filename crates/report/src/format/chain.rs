//! An explanation as text: its steps in time order, what was not recorded, and the answer at the end.

use super::Style;
use super::grid::{Tone, wrap};
use mmtwin_analysis::explain::figures::{rule, seconds};
use mmtwin_analysis::explain::{Chain, Step};
use std::fmt::Write;
use std::io;

/// Columns of a step's time.
const TIME: usize = 14;
/// Columns before what a step says.
const INDENT: usize = TIME + 2;

/// Writes an explanation. Errors are those of `out`.
pub fn write(chain: &Chain, style: &Style, out: &mut dyn io::Write) -> io::Result<()> {
    let mut text = String::new();
    let _ = writeln!(text, "{}", Tone::Strong.paint(&chain.title, style));
    for (number, step) in chain.steps.iter().enumerate() {
        if let Some((_, dropped)) = chain.dropped.filter(|(at, _)| *at == number) {
            let _ = writeln!(text, "{:>TIME$}  {dropped} steps are not shown here", "...");
        }
        self::step(step, style, &mut text);
    }
    if chain.steps.is_empty() {
        let _ = writeln!(text, "{:INDENT$}no event of it was recorded", "");
    }
    for (number, gap) in chain.gaps.iter().enumerate() {
        let head = if number == 0 { "n/a" } else { "" };
        let lines = wrap(&format!("{}: {}", gap.what, gap.fix), style.width.saturating_sub(INDENT));
        for (number, line) in lines.iter().enumerate() {
            let head = if number == 0 { head } else { "" };
            let _ = writeln!(text, "{head:>TIME$}  {}", Tone::Faint.paint(line, style));
        }
    }
    text.push('\n');
    for line in wrap(&chain.answer, style.width) {
        let _ = writeln!(text, "{line}");
    }
    out.write_all(text.as_bytes())
}

fn step(step: &Step, style: &Style, text: &mut String) {
    let mut head = step.event.to_string();
    if let Some(by) = step.rule {
        let _ = write!(head, "  {}", rule(by));
    }
    if step.times > 1 {
        let _ = write!(head, "  ({} times until {})", step.times, seconds(step.until));
    }
    let _ = writeln!(text, "{:>TIME$}  {}", seconds(step.at), Tone::Strong.paint(&head, style));
    for line in wrap(&step.what, style.width.saturating_sub(INDENT)) {
        let _ = writeln!(text, "{:INDENT$}{line}", "");
    }
}
