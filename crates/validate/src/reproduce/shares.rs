//! Share of a change by cause, from runs with and without it.

use super::Reproduction;
use mmtwin_report::model::{Cell, Na, Table};

impl Reproduction {
    /// The parts that are reported.
    pub(super) fn shares(&self) -> Option<Table> {
        let line = |share: &mmtwin_scenario::published::Shared| {
            let value = |key: &String| {
                let row = self.rows.iter().find(|row| row.row.key == *key)?;
                row.found.values.get(share.metric.as_str()).copied()
            };
            let all = [&share.from, &share.to, &share.without].map(value);
            let number =
                |value: Option<f64>| value.map_or(Cell::Na(Na::NotRecorded), |n| Cell::Text(format!("{n:.0}")));
            let part = match all {
                [Some(from), Some(to), Some(without)] => part(from, to, without),
                _ => None,
            };
            let part = part.map_or(Cell::Na(Na::NotRecorded), |part| Cell::Text(format!("{:.0} %", 100.0 * part)));
            let [from, to, without] = all.map(number);
            vec![Cell::Text(share.label.clone()), from, to, without, part]
        };
        let rows = self.published.shares.iter().map(line).collect();
        let columns = ["change", "before", "after", "after, without it", "its part"];
        self.list("shares", "Share of a change by cause", columns, rows)
    }
}

/// Part of a change that is taken back without something; `None` if there is no change.
fn part(from: f64, to: f64, without: f64) -> Option<f64> {
    (from != to).then(|| (without - to) / (from - to))
}

#[cfg(test)]
mod tests {
    use super::part;

    #[test]
    fn parts_of_a_change() {
        assert_eq!(part(81.0, 28.0, 28.0), Some(0.0));
        assert_eq!(part(80.0, 30.0, 70.0), Some(0.8));
        assert_eq!(part(30.0, 30.0, 70.0), None);
    }
}
