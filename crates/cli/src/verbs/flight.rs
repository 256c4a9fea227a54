//! `mmtwin record --flight`.

use super::record::recorded;
use crate::args::{FLIGHT_DIRECTORY, Record};
use crate::{Failure, say, status};
use mmtwin_host::flight::{Begun, Options, Outcome, fly};
use mmtwin_report::units;
use std::path::Path;

/// Keeps the last `size` bytes.
pub fn run(arguments: Record, size: u64) -> Result<i32, Failure> {
    if arguments.interval.is_zero() {
        return Err(Failure::Usage("--flight needs samples of the counters: -I above 0".into()));
    }
    let flight = arguments.flight;
    let options = Options {
        directory: arguments.output.unwrap_or_else(|| FLIGHT_DIRECTORY.into()),
        size,
        events: arguments.events,
        interval: arguments.interval,
        cgroups: arguments.cgroup,
        buffer: arguments.buffer,
        stacks: arguments.stacks,
        when: flight.when,
        before: flight.before,
        after: flight.after,
        cool_down: flight.cool_down,
        max_dumps: flight.max_dumps,
        max_time: arguments.max_time,
        begun: (!arguments.quiet).then_some(|begun: &Begun<'_>| began(begun).iter().for_each(|line| say(line))),
    };
    let outcome = fly(&options, &mut say)?;
    if !arguments.quiet {
        say(&ended(&options.directory, &outcome));
    }
    Ok(outcome.signal.map_or(0, |signal| status::SIGNAL + signal))
}

fn began(begun: &Begun<'_>) -> [String; 3] {
    let (directory, size) = (begun.directory.display(), units::bytes(begun.size as f64));
    [
        format!("keeping the last {size} in {directory}; Ctrl-C ends it"),
        recorded(begun.events, begun.stacks, Some(begun.interval), begun.cgroups, begun.own_tracefs),
        format!("a recording of now: mmtwin snap {directory}"),
    ]
}

fn ended(directory: &Path, outcome: &Outcome) -> String {
    let lost = match outcome.lost {
        0 => "none lost".to_string(),
        lost => format!("{} lost", units::count(lost as f64)),
    };
    let events = match outcome.events {
        None => "counters only".to_string(),
        Some(events) => format!("{}, {lost}", units::counted(events, "event")),
    };
    let share = units::percent(100.0 * outcome.cpu_time as f64 / outcome.elapsed.max(1) as f64);
    let [elapsed, kept] = [outcome.elapsed, outcome.kept].map(|time| units::time(time as f64));
    let dumps = units::counted(outcome.dumps as u64, "recording");
    let bytes = units::bytes(outcome.bytes as f64);
    let directory = directory.display();
    format!(
        "{directory}: {events} in {elapsed}, the last {kept} kept in {bytes}, {dumps} written; took {share} of one CPU"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flight_says_how_it_went() {
        let outcome = Outcome {
            dumps: 1,
            bytes: 4 << 20,
            kept: 60_000_000_000,
            events: Some(18_410),
            lost: 7,
            elapsed: 100_000_000_000,
            cpu_time: 1_000_000_000,
            ..Outcome::default()
        };
        assert_eq!(
            ended(Path::new("f"), &outcome),
            "f: 18,410 events, 7 lost in 100 s, the last 60.0 s kept in 4.00 MiB, 1 recording written; took 1.00 % of one CPU"
        );
        assert!(ended(Path::new("f"), &Outcome { events: None, ..outcome }).starts_with("f: counters only in 100 s"));
    }
}
