//! `duration`: CPU and elapsed time of the recorded command, in the rows of each generation of reports.

use super::{metrics, row};
use crate::model::Better::Lower;
use crate::model::{Cell, Table};
use mmtwin_event::{Source, Times};

/// Generations of reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// User and system time together, elapsed time.
    Of2010,
    /// System time, both together, elapsed time.
    Of2012,
    /// User, system, elapsed.
    Today,
}

impl Generation {
    /// All of them, the one of today first.
    pub const ALL: [Generation; 3] = [Generation::Today, Generation::Of2012, Generation::Of2010];
}

/// The table; n/a where the input has no times.
pub fn table(source: &Source, generation: Generation) -> Table {
    let user: (_, _, fn(Times) -> f64) = ("user", "User", |t| t.user);
    let system: (_, _, fn(Times) -> f64) = ("system", "System", |t| t.system);
    let both: (_, _, fn(Times) -> f64) = ("user_system", "", |t| t.user + t.system);
    let elapsed: (_, _, fn(Times) -> f64) = ("elapsed", "Total Elapsed Time (seconds)", |t| t.elapsed);
    let (name, rows) = match generation {
        Generation::Of2010 => {
            ("duration-2010", vec![(both.0, "User/Sys Time Running Test (seconds)", both.2), elapsed])
        }
        Generation::Of2012 => (
            "duration-2012",
            vec![
                (system.0, "Sys Time Running Test (seconds)", system.2),
                (both.0, "User+Sys Time Running Test (seconds)", both.2),
                elapsed,
            ],
        ),
        Generation::Today => ("duration", vec![user, system, (elapsed.0, "Elapsed", elapsed.2)]),
    };
    let rows = rows
        .into_iter()
        .map(|(key, label, of)| row(key, label, "s", Lower, Some(2), Cell::float(source.times.map(of))));
    metrics(name, "MMTests Statistics: duration", "", rows.collect())
}
