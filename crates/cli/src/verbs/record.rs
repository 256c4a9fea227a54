//! `mmtwin record`.

use crate::args::Record;
use crate::{Failure, say, status};
use mmtwin_host::record::{Begun, Options, Outcome, record};
use mmtwin_report::units;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Where a recording goes that the user does not name.
const DEFAULT_OUTPUT: &str = "mmtwin.mmt";
/// Systems of events that are named when a recording begins.
const SYSTEMS: usize = 4;

/// Nanoseconds below which no share of a CPU is told.
const SHORT: u64 = 1_000_000_000;

/// Runs the verb.
pub fn run(arguments: Record) -> Result<i32, Failure> {
    mmtwin_host::restore::recover(&mut say);
    if let Some(size) = arguments.flight.flight {
        return super::flight::run(arguments, size);
    }
    let options = Options {
        numbered: arguments.output.is_none() && !arguments.force,
        output: arguments.output.unwrap_or_else(|| DEFAULT_OUTPUT.into()),
        events: arguments.events,
        interval: Some(arguments.interval).filter(|i| !i.is_zero()),
        cgroups: arguments.cgroup,
        buffer: arguments.buffer,
        max_size: arguments.max_size,
        max_time: arguments.max_time,
        stacks: arguments.stacks,
        delays: arguments.delays,
        compress: arguments.compress,
        force: arguments.force,
        arguments: arguments.arguments,
        private: arguments.private,
        command: arguments.command,
        begun: (!arguments.quiet).then_some(|begun: &Begun<'_>| began(begun).iter().for_each(|line| say(line))),
    };
    let outcome = record(&options, &mut say)?;
    let lost = outcome.lost();
    if lost > 0 {
        say(&format!("{lost} events were lost; use a larger --buffer or record fewer events"));
    }
    if let Some(why) = &outcome.end.stopped {
        say(&format!("the recording ended early: {why}"));
    }
    if !arguments.quiet {
        say(&ended(&outcome));
        say(&format!("next: mmtwin report {}", outcome.output.display()));
    }
    match outcome.status() {
        0 if outcome.full => Ok(status::FULL),
        0 if arguments.max_lost.is_some_and(|limit| lost > limit) => Ok(status::LOST),
        status => Ok(status),
    }
}

/// Where to, what ends it, and what is recorded.
fn began(begun: &Begun<'_>) -> [String; 2] {
    let end = if begun.until_signal { "; Ctrl-C ends it" } else { "" };
    let what = recorded(begun.events, begun.stacks, begun.interval, begun.cgroups, begun.own_tracefs);
    [format!("recording to {}{end}", Path::display(begun.output)), what]
}

/// What is recorded: events, those with stacks, counters, keys of cgroups, and whether tracefs is the recorder's own.
pub fn recorded(
    events: Option<&[String]>,
    stacks: usize,
    interval: Option<Duration>,
    cgroups: &[String],
    own_tracefs: bool,
) -> String {
    let events = match events {
        None | Some([]) => "no events".to_string(),
        Some(events) => {
            let stacks = match stacks {
                0 => String::new(),
                stacks => format!(", {stacks} with stacks"),
            };
            format!("{} ({}){stacks}", units::counted(events.len() as u64, "event"), systems(events))
        }
    };
    let counters = match interval {
        Some(interval) => format!("counters every {interval:?}"),
        None => "counters at start and end".to_string(),
    };
    let cgroups = match cgroups {
        [] => String::new(),
        [one] => format!(", cgroup {one}"),
        [one, rest @ ..] => format!(", cgroup {one} and {} more", rest.len()),
    };
    let own = if own_tracefs { "; tracefs is mounted for this recording alone" } else { "" };
    format!("{events}, {counters}{cgroups}{own}")
}

/// Systems of events, those with most events first.
fn systems(events: &[String]) -> String {
    let mut counts = BTreeMap::new();
    events.iter().filter_map(|e| e.split_once(':')).for_each(|(system, _)| *counts.entry(system).or_insert(0u64) += 1);
    let mut systems: Vec<_> = counts.into_iter().collect();
    systems.sort_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
    let mut names: Vec<String> = systems.iter().take(SYSTEMS).map(|(name, _)| name.to_string()).collect();
    if systems.len() > SYSTEMS {
        names.push(units::counted((systems.len() - SYSTEMS) as u64, "more system"));
    }
    names.join(", ")
}

/// How it went: events, losses, size, and what recording cost.
fn ended(outcome: &Outcome) -> String {
    let cost = &outcome.end.cost;
    let bytes = cost.page_bytes + cost.counter_bytes + cost.other_bytes;
    let lost = match outcome.lost() {
        0 => "none lost".to_string(),
        lost => format!("{} lost", units::count(lost as f64)),
    };
    let events = match outcome.events {
        None => "counters only".to_string(),
        Some(_) => format!("{}, {lost}", units::counted(outcome.written, "event")),
    };
    let total = units::time(cost.cpu_time as f64);
    // In a short one the start and the end are most of it, whatever it would take for longer.
    let took = if outcome.elapsed < SHORT {
        format!("{total} of CPU time with start and end")
    } else {
        let share = units::percent(100.0 * cost.cpu_time_recording as f64 / outcome.elapsed as f64);
        format!("{share} of one CPU, {total} of CPU time with start and end")
    };
    let (size, elapsed) = (units::bytes(bytes as f64), units::time(outcome.elapsed as f64));
    format!("{}: {events}, {size} in {elapsed}; recording took {took}", outcome.output.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use mmtwin_event::manifest::{Cost, End, Losses};

    #[test]
    fn a_recording_says_what_it_records() {
        let names = ["a:1", "b:1", "b:2", "c:1", "d:1", "e:1"].map(String::from);
        let cgroups = ["/web", "/db"].map(String::from);
        let begun = Begun {
            output: Path::new("r.mmt"),
            events: Some(&names),
            stacks: 2,
            interval: Some(Duration::from_millis(500)),
            cgroups: &cgroups,
            until_signal: true,
            own_tracefs: false,
        };
        assert_eq!(
            began(&begun),
            [
                "recording to r.mmt; Ctrl-C ends it",
                "6 events (b, a, c, d, 1 more system), 2 with stacks, counters every 500ms, cgroup /web and 1 more"
            ]
        );
        let counters = Begun { events: None, interval: None, cgroups: &[], until_signal: false, ..begun };
        assert_eq!(began(&counters), ["recording to r.mmt", "no events, counters at start and end"]);
    }

    #[test]
    fn a_recording_says_how_it_went() {
        let cost =
            Cost { cpu_time: 30_000_000, cpu_time_recording: 20_000_000, page_bytes: 4 << 20, ..Cost::default() };
        let losses = vec![Losses { overrun: 7, ..Losses::default() }];
        let end = End { cost, losses, ..End::default() };
        let outcome = Outcome {
            output: "r.mmt".into(),
            end,
            events: Some(3),
            written: 18_410,
            elapsed: 2_000_000_000,
            ..Outcome::default()
        };
        let short = ended(&Outcome { elapsed: 20_000_000, ..outcome.clone() });
        assert!(short.ends_with("in 20.0 ms; recording took 30.0 ms of CPU time with start and end"), "{short}");
        assert_eq!(
            ended(&outcome),
            "r.mmt: 18,410 events, 7 lost, 4.00 MiB in 2.00 s; recording took 1.00 % of one CPU, 30.0 ms of CPU time with start and end"
        );
    }
}
