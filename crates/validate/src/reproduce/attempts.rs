//! Attempts to get blocks: how many succeed, how long they take, and how that changes as the test continues.

use super::{Reproduced, Reproduction};
use mmtwin_event::results::Attempt;
use mmtwin_report::model::{Body, Cell, Column, Na, Table};

/// Parts that the attempts of a phase are reported in.
const PARTS: usize = 10;

impl Reproduction {
    /// Percentiles by row and phase, and means along the attempts of each phase.
    pub(super) fn attempts(&self) -> Vec<Table> {
        let with: Vec<&Reproduced> = self.rows.iter().filter(|row| !row.found.attempts.is_empty()).collect();
        let percentiles = with.iter().flat_map(|row| {
            row.found.attempts.iter().map(|(phase, attempts)| {
                let latencies = sorted(attempts);
                let mut cells = vec![Cell::Text(row.row.label.clone()), Cell::Text(phase.clone())];
                cells.push(Cell::Int(attempts.len() as i128));
                cells.push(Cell::Int(attempts.iter().filter(|attempt| attempt.success).count() as i128));
                cells.extend([50, 90, 99, 100].map(|percent| milliseconds(percentile(&latencies, percent))));
                cells
            })
        });
        let columns = ["kernel", "phase", "attempts", "succeeded", "50 % ms", "90 % ms", "99 % ms", "longest ms"];
        let percentiles =
            self.list("attempts", "Allocation latency of high-order blocks", columns, percentiles.collect());
        percentiles.into_iter().chain(self.over_time(&with)).collect()
    }

    /// Mean latency of each tenth of the attempts, by row.
    fn over_time(&self, with: &[&Reproduced]) -> Option<Table> {
        let mut phases: Vec<&String> =
            with.iter().flat_map(|row| row.found.attempts.iter().map(|(name, _)| name)).collect();
        let mut seen = Vec::new();
        phases.retain(|phase| {
            !seen.contains(phase) && {
                seen.push(*phase);
                true
            }
        });
        let line = |phase: &String, part: usize| {
            let mean_of = |row: &&Reproduced| {
                let attempts = &row.found.attempts.iter().find(|(name, _)| name == phase)?.1;
                let edge = |i: usize| attempts.len() * i / PARTS;
                mean(&attempts[edge(part)..edge(part + 1)])
            };
            let mut cells = vec![Cell::Text(phase.clone()), Cell::Text(format!("{} %", 100 * (part + 1) / PARTS))];
            cells.extend(with.iter().map(|row| milliseconds(mean_of(row))));
            cells
        };
        let rows: Vec<Vec<Cell>> = phases.iter().flat_map(|phase| (0..PARTS).map(|part| line(phase, part))).collect();
        let column =
            |key: &str, label: &str| Column { key: key.replace(['-', ' '], "_"), label: label.into(), unit: "" };
        let mut columns = vec![column("phase", "phase"), column("attempts", "attempts up to")];
        columns.extend(with.iter().map(|row| column(&row.row.key, &row.row.label)));
        (!rows.is_empty()).then(|| Table {
            name: format!("{}-attempts-over-time", self.name),
            title: "Mean latency per tenth of the attempts, in ms".into(),
            note: String::new(),
            body: Body::List { columns, rows },
        })
    }
}

fn sorted(attempts: &[Attempt]) -> Vec<u64> {
    let mut latencies: Vec<u64> = attempts.iter().map(|attempt| attempt.latency).collect();
    latencies.sort_unstable();
    latencies
}

/// The least latency that so many percent of the attempts do not exceed.
fn percentile(latencies: &[u64], percent: usize) -> Option<f64> {
    let rank = (latencies.len() * percent).div_ceil(100).checked_sub(1)?;
    latencies.get(rank).map(|&latency| latency as f64)
}

fn mean(attempts: &[Attempt]) -> Option<f64> {
    let sum: u64 = attempts.iter().map(|attempt| attempt.latency).sum();
    (!attempts.is_empty()).then(|| sum as f64 / attempts.len() as f64)
}

fn milliseconds(ns: Option<f64>) -> Cell {
    ns.map_or(Cell::Na(Na::NotRecorded), |ns| Cell::Text(format!("{:.3}", ns / 1e6)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_have_percentiles_and_means() {
        let attempt = |latency| Attempt { at: 0, latency, success: true };
        let attempts: Vec<Attempt> = (1..=200).rev().map(attempt).collect();
        let latencies = sorted(&attempts);
        assert_eq!([50, 90, 99, 100].map(|p| percentile(&latencies, p)), [100.0, 180.0, 198.0, 200.0].map(Some));
        assert_eq!((mean(&attempts[..3]), mean(&[]), percentile(&[], 50)), (Some(199.0), None, None));
    }
}
