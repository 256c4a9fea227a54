//! A fleet as JSON and CSV.
//!
//! JSON: `schema_version` 2, `recordings` and `unreadable` as [`Fleet`] has them, `common` as [`super::Common`]. CSV: a
//! line per recording and finding; a recording without findings has one line with the last fields empty. What is not
//! known is null, in CSV `n/a`.

use super::{Common, Fleet, Found, Summary, Unreadable};
use crate::format::csv::quoted;
use serde::Serialize;
use std::io;

#[derive(Serialize)]
struct Document<'a> {
    schema_version: u32,
    recordings: &'a [Summary],
    common: Vec<Common>,
    unreadable: &'a [Unreadable],
}

/// Writes one JSON document and a line feed.
///
/// # Errors
/// Those of the output.
pub fn write_json(fleet: &Fleet, out: &mut dyn io::Write) -> io::Result<()> {
    let document = Document {
        schema_version: 2,
        recordings: &fleet.recordings,
        common: fleet.common(),
        unreadable: &fleet.unreadable,
    };
    serde_json::to_writer(&mut *out, &document)?;
    out.write_all(b"\n")
}

const HEADER: &str = "recording,arm,kernel,seconds,events,lost_events,finding,severity,waited_ns,share,memory_some,\
                      io_some,cgroup,sentence";

/// Writes a header and the lines.
///
/// # Errors
/// Those of the output.
pub fn write_csv(fleet: &Fleet, out: &mut dyn io::Write) -> io::Result<()> {
    writeln!(out, "{HEADER}")?;
    for summary in &fleet.recordings {
        let begin = [
            quoted(&summary.name),
            quoted(&summary.arm),
            summary.kernel.as_deref().map_or_else(unknown, quoted),
            known(summary.seconds),
            summary.events.to_string(),
            known(summary.lost_events),
        ];
        let begin = begin.join(",");
        if summary.findings.is_empty() {
            writeln!(out, "{begin},,,,,,,,")?;
        }
        for found in &summary.findings {
            writeln!(out, "{begin},{}", fields(found).join(","))?;
        }
    }
    Ok(())
}

fn fields(found: &Found) -> [String; 8] {
    [
        quoted(&found.key),
        found.severity.to_string(),
        known(found.waited_ns),
        known(found.share),
        known(found.memory_some),
        known(found.io_some),
        found.cgroup.as_deref().map_or_else(unknown, quoted),
        quoted(&found.sentence),
    ]
}

fn unknown() -> String {
    "n/a".into()
}

fn known<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(unknown, |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_per_finding_and_unknown_values_are_not_zero() {
        let found =
            Found { key: "oom_kill".into(), severity: 95, sentence: "killed, twice".into(), ..Found::default() };
        let with = Summary { name: "a,b".into(), findings: vec![found], ..Summary::default() };
        let without = Summary { name: "c".into(), seconds: Some(2.5), lost_events: Some(0), ..Summary::default() };
        let mut csv = Vec::new();
        write_csv(&Fleet { recordings: vec![with, without], unreadable: Vec::new() }, &mut csv).unwrap();
        let csv = String::from_utf8(csv).unwrap();
        let lines: Vec<&str> = csv.lines().skip(1).collect();
        assert_eq!(lines[0], "\"a,b\",,n/a,n/a,0,n/a,oom_kill,95,n/a,n/a,n/a,n/a,n/a,\"killed, twice\"");
        assert_eq!(lines[1], "c,,n/a,2.5,0,0,,,,,,,,");
        assert!(lines.iter().all(|line| line.replace("a,b", "").replace("d, t", "").split(',').count() == 14));
    }
}
