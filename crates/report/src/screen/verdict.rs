//! The findings, worst first, as many as fit.

use super::{Line, Subject, at_most};
use crate::format::grid::Tone;
use crate::model::Finding;

/// Indent of what stands below a sentence.
const INDENT: usize = 4;
/// From this severity on a sentence is shown as bad news.
const BAD: u8 = 80;
/// Most lines of a sentence, and of what stands below it.
const SENTENCE: usize = 4;
const COST: usize = 2;
const DETAIL: usize = 3;
const FIX: usize = 2;
const COMMAND: usize = 2;

/// Finding that the header says instead.
const IN_THE_HEADER: &str = "input_incomplete";

pub(super) fn lines(subject: &Subject<'_>, width: usize, room: usize) -> Vec<Line> {
    let mut findings: Vec<&Finding> =
        subject.report.findings.iter().filter(|finding| finding.key != IN_THE_HEADER).collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    if findings.is_empty() {
        let rules = mmtwin_analysis::findings::RULES.len();
        let text = format!("No finding: none of {rules} rules applies to what was recorded.");
        return at_most(&text, width, room).into_iter().map(|text| Line::new(Tone::Strong, text)).collect();
    }
    let mut lines = Vec::new();
    let mut shown = 0;
    for finding in &findings {
        let block = block(subject, finding, width);
        // The line about the others needs a place too.
        let needed = usize::from(shown + 1 < findings.len());
        if lines.len() + block.len() + needed <= room {
            lines.extend(block);
        } else if lines.is_empty() {
            lines.extend(block.into_iter().take(room.saturating_sub(needed)));
        } else {
            break;
        }
        shown += 1;
    }
    if shown < findings.len() {
        let command = match subject.kept {
            true => format!("mmtwin report {} findings", subject.name(width)),
            false => format!("mmtwin run {} --table findings", subject.name(width)),
        };
        let more = format!("{} more: {command}", findings.len() - shown);
        lines.extend(at_most(&more, width, 1).into_iter().map(|text| Line::new(Tone::Faint, text)));
    }
    lines
}

fn block(subject: &Subject<'_>, finding: &Finding, width: usize) -> Vec<Line> {
    let tone = if finding.severity >= BAD { Tone::Bad } else { Tone::Strong };
    let mut lines: Vec<Line> =
        at_most(&finding.sentence, width, SENTENCE).into_iter().map(|text| Line::new(tone, text)).collect();
    let mut below = |text: &str, tone, most| {
        let folded = at_most(text, width - INDENT, most).into_iter();
        lines.extend(folded.map(|text| Line::new(tone, format!("{:INDENT$}{text}", ""))));
    };
    let cost = finding.cost.as_ref().map(|cost| cost.words());
    let pressure = finding.pressure.as_ref().map(|pressure| pressure.words());
    let cost: Vec<String> = cost.into_iter().chain(pressure).collect();
    below(&cost.join("; "), Tone::Plain, COST);
    below(&finding.detail, Tone::Plain, DETAIL);
    if let Some(fix) = &finding.fix {
        below(&format!("fix: {}", subject.command(fix, width)), Tone::Plain, FIX);
    }
    if let Some(next) = &finding.next {
        below(&format!("why: {}", subject.command(next, width)), Tone::Faint, COMMAND);
    }
    if !finding.command.is_empty() {
        below(&subject.command(&finding.command, width), Tone::Faint, COMMAND);
    }
    lines
}
