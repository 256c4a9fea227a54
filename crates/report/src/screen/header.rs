//! Where, what, how long, how much of it was seen.

use super::{Line, Subject, at_most, time};
use crate::format::grid::Tone;
use crate::units;

/// Most lines of the part that says what is missing, of the machine, of the command, and of what was read.
const MOST: [usize; 4] = [2, 3, 2, 2];

/// Missing parts of the input that are named.
const PARTS: usize = 2;

pub(super) fn lines(subject: &Subject<'_>, width: usize) -> Vec<Line> {
    let filter = subject.report.input.filter.clone().unwrap_or_default();
    let texts = [incomplete(subject), machine(subject, width), recorded(subject), filter];
    let tones = [Tone::Bad, Tone::Strong, Tone::Plain, Tone::Strong];
    let lines = texts.iter().zip(tones).zip(MOST);
    lines
        .flat_map(|((text, tone), most)| at_most(text, width, most).into_iter().map(move |l| Line::new(tone, l)))
        .collect()
}

/// What is missing; empty if nothing is.
fn incomplete(subject: &Subject<'_>) -> String {
    let parts = &subject.report.input.incomplete;
    let named = parts.iter().take(PARTS).cloned().collect::<Vec<_>>().join("; ");
    match parts.len() {
        0 => String::new(),
        n if n > PARTS => format!("incomplete: {named}; and {} more: sums are too small", n - PARTS),
        _ => format!("incomplete: {named}: sums are too small"),
    }
}

/// What ran the kernel.
pub(crate) fn arm(arm: &str) -> &str {
    match arm {
        "twin" => "simulated by the twin",
        "lab" => "recorded in the lab",
        "host" => "recorded on a host",
        "import" => "imported trace",
        other => other,
    }
}

fn machine(subject: &Subject<'_>, width: usize) -> String {
    let (input, source) = (&subject.report.input, &subject.analysis.source);
    let short = (!subject.is_short(width)).then(|| format!("{} below", subject.name(width)));
    let asides: Vec<String> = subject.chosen.map(str::to_owned).into_iter().chain(short).collect();
    let asides = if asides.is_empty() { String::new() } else { format!(" ({})", asides.join(", ")) };
    let mut facts = vec![arm(&input.arm).to_owned()];
    facts.extend(input.kernel.as_ref().map(|kernel| format!("Linux {kernel}")));
    facts.extend((source.cpus > 0).then(|| units::counted(source.cpus.into(), "CPU")));
    facts.extend((source.nodes > 0).then(|| units::counted(source.nodes.into(), "node")));
    facts.extend(subject.about.memory.map(|kib| units::bytes(kib as f64 * 1024.0)));
    facts.retain(|fact| !fact.is_empty());
    format!("{}{asides}: {}", input.name, facts.join(", "))
}

fn recorded(subject: &Subject<'_>) -> String {
    let input = &subject.report.input;
    let mut facts = Vec::new();
    if !subject.about.command.is_empty() {
        facts.push(subject.about.command.join(" "));
    }
    facts.extend(time::elapsed(subject).map(|ns| format!("{} elapsed", units::time(ns))));
    facts.extend(subject.analysis.source.times.filter(|times| times.user + times.system > 0.0).map(|times| {
        format!(
            "{} of CPU ({} in the kernel)",
            units::time((times.user + times.system) * 1e9),
            units::time(times.system * 1e9)
        )
    }));
    if input.counters_only {
        facts.push("counters only".into());
    } else {
        facts.push(units::counted(input.events, "event"));
        facts.push(match input.lost_events {
            Some(0) => "none lost".into(),
            Some(lost) => format!("{} LOST", units::count(lost as f64)),
            None if input.lost_at_least > 0 => format!("at least {} LOST", units::count(input.lost_at_least as f64)),
            None => "losses unknown".into(),
        });
    }
    facts.join(", ")
}
