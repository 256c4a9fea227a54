//! Faults of cases, each with its place.

use super::{Fault, Request};

/// A case for people: `memory.max=64 MiB, vm.swappiness=10`.
pub(super) fn label(keys: &[String], case: &[String]) -> String {
    keys.iter().zip(case).map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(", ")
}

/// Faults of cases, each once, with the cases that have it.
pub(super) struct Faults<'a> {
    request: &'a Request<'a>,
    keys: &'a [String],
    /// Overrides before those of a case.
    base: usize,
    found: Vec<Found>,
}

struct Found {
    place: String,
    message: String,
    first: String,
    cases: usize,
}

/// Most faults that are listed.
const LISTED: usize = 50;

impl<'a> Faults<'a> {
    pub(super) fn new(request: &'a Request<'a>, keys: &'a [String], base: usize) -> Faults<'a> {
        Faults { request, keys, base, found: Vec::new() }
    }

    /// A fault of a scenario with the values of a case; `line`: its line in the file of cases.
    pub(super) fn of_scenario(&mut self, fault: &mmtwin_scenario::Fault, case: &[String], line: Option<usize>) {
        // Overrides are numbered as they were given: those of the command line first, then those of the file's line.
        let set = fault.file.strip_prefix("--set ").and_then(|number| number.parse::<usize>().ok());
        let help = fault.help.as_ref().map_or(String::new(), |help| format!("; {help}"));
        let of_case = set.map(|number| number.checked_sub(self.base).filter(|number| *number > 0));
        let (place, message) = match of_case {
            Some(Some(number)) => {
                let key = &self.keys[number - 1];
                let place = match (number > self.request.sets.len(), self.request.cases, line) {
                    (true, Some(path), Some(line)) => format!("{}:{line}", path.display()),
                    _ => format!("--set {number}"),
                };
                (place, format!("{key}: {}{help}", fault.message))
            }
            _ => {
                let at = fault.at.map_or(String::new(), |(line, column)| format!(":{line}:{column}"));
                (format!("{}{at}", fault.file), format!("{}{help}", fault.message))
            }
        };
        self.add(place, message, case, line);
    }

    /// Another fault of a case.
    pub(super) fn add(&mut self, place: String, message: String, case: &[String], line: Option<usize>) {
        if let Some(found) = self.found.iter_mut().find(|found| found.place == place && found.message == message) {
            found.cases += 1;
        } else if self.found.len() <= LISTED {
            let line = line.zip(self.request.cases).map(|(line, path)| format!("{}:{line}: ", path.display()));
            let first = format!("{}{}", line.unwrap_or_default(), label(self.keys, case));
            self.found.push(Found { place, message, first, cases: 1 });
        }
    }

    /// All of them; `cases`: how many there are in all.
    pub(super) fn sentences(self, cases: usize) -> Vec<Fault> {
        let sentence = |found: Found| {
            let of = match found.cases {
                all if all == cases => String::new(),
                // A line of the file of cases is one.
                1 if found.first.starts_with(&format!("{}: ", found.place)) => String::new(),
                1 => format!(" ({})", found.first),
                n => format!(" ({}; and {} more)", found.first, n - 1),
            };
            Fault { place: found.place, message: format!("{}{of}", found.message) }
        };
        let more = self.found.len() > LISTED;
        let mut faults: Vec<Fault> = self.found.into_iter().take(LISTED).map(sentence).collect();
        if more {
            faults.push(Fault { place: "sweep".into(), message: format!("only the first {LISTED} faults are listed") });
        }
        faults
    }
}
