//! The values of one row over all columns: summary of runs, change, gain and test against the baseline.

use super::{Row, Test, Value};
use crate::gain;
use crate::model::{Cell, Metric, Na};
use crate::statistics::{self, Interval};

pub(super) fn values(row: &Metric, cells: &[Vec<Cell>]) -> Vec<Value> {
    let mut values: Vec<Value> = Vec::new();
    let numbers: Vec<Vec<f64>> = cells
        .iter()
        .map(|runs| {
            let mut numbers: Vec<f64> = runs.iter().filter_map(Cell::number).collect();
            numbers.sort_by(f64::total_cmp);
            numbers
        })
        .collect();
    for (column, (runs, sorted)) in cells.iter().zip(&numbers).enumerate() {
        let cell = summary(runs);
        let finite = |i: &Interval| i.low.is_finite() && i.high.is_finite();
        let against = values.first().and_then(|base| base.cell.number()).zip(cell.number());
        let test = numbers.first().filter(|_| column > 0).and_then(|base| {
            let p = statistics::mann_whitney(base, sorted)?;
            let shift = statistics::shift(base, sorted).filter(|s| finite(&s.interval))?;
            Some(Test { p, adjusted: p, shift })
        });
        values.push(Value {
            runs: if sorted.is_empty() { runs.iter().filter(|c| c.na().is_none()).count() } else { sorted.len() },
            interval: statistics::median_interval(sorted).filter(finite),
            change: against.map(|(base, new)| gain::change(base, new)),
            gain: against.and_then(|(base, new)| row.gain.of(base, new)),
            verdict: against.and_then(|(base, new)| gain::judge(row.better, base, new)),
            cell,
            test,
            published: None,
        });
    }
    values
}

/// One cell for several runs: the median of numbers (exact if they are integers), the words of words, n/a if no run
/// knows it.
fn summary(runs: &[Cell]) -> Cell {
    let known: Vec<&Cell> = runs.iter().filter(|cell| cell.na().is_none()).collect();
    if let [only] = known[..] {
        return only.clone();
    }
    if known.is_empty() {
        return Cell::Na(runs.iter().find_map(Cell::na).unwrap_or(Na::NotRecorded));
    }
    let mut integers: Vec<i128> =
        known.iter().filter_map(|c| if let Cell::Int(i) = c { Some(*i) } else { None }).collect();
    if integers.len() == known.len() {
        integers.sort_unstable();
        let (lower, upper) = (integers[(integers.len() - 1) / 2], integers[integers.len() / 2]);
        if let Some(sum) = lower.checked_add(upper).filter(|sum| sum % 2 == 0) {
            return Cell::Int(sum / 2);
        }
    }
    let mut numbers: Vec<f64> = known.iter().filter_map(|cell| cell.number()).collect();
    if numbers.is_empty() {
        let mut words: Vec<&str> = Vec::new();
        for cell in known {
            if let Cell::Text(word) = cell
                && !words.contains(&word.as_str())
            {
                words.push(word);
            }
        }
        return Cell::Text(words.join(" | "));
    }
    numbers.sort_by(f64::total_cmp);
    Cell::float(statistics::median(&numbers))
}

/// Adjusts the p-values of one column for the number of rows tested.
pub(super) fn adjust(rows: &mut [Row], column: usize) {
    let mut tests: Vec<&mut Test> =
        rows.iter_mut().filter_map(|row| row.values.get_mut(column)?.test.as_mut()).collect();
    let p: Vec<f64> = tests.iter().map(|test| test.p).collect();
    for (test, adjusted) in tests.iter_mut().zip(statistics::holm(&p)) {
        test.adjusted = adjusted;
    }
}

/// Says so if there are too few runs for any row of the table to become significant.
pub(super) fn too_few_runs(rows: &[Row], columns: usize) -> Option<String> {
    let mut tested = 0;
    for column in 1..columns {
        let of_column = || rows.iter().filter(|row| row.values.get(column).is_some_and(|v| v.test.is_some()));
        let family = of_column().count();
        tested += family;
        let runs = |row: &Row| Some((row.values.first()?.runs, row.values.get(column)?.runs));
        let reachable = |row| {
            runs(row).is_some_and(|(n, m)| statistics::smallest_p(n, m) * family as f64 <= 1.0 - statistics::LEVEL)
        };
        if of_column().any(reachable) {
            return None;
        }
    }
    (tested > 0).then(|| "Too few runs for any row to be significant at 5 % in a table of this many rows.".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_stay_exact() {
        let big = i128::from(u64::MAX);
        assert_eq!(summary(&[Cell::Int(big), Cell::Int(big - 2), Cell::Na(Na::Lost)]), Cell::Int(big - 1));
        assert_eq!(summary(&[Cell::Int(1), Cell::Int(2)]), Cell::Float(1.5));
        assert_eq!(summary(&[Cell::Na(Na::Lost), Cell::Na(Na::NotInKernel)]), Cell::Na(Na::Lost));
        assert_eq!(summary(&[Cell::Int(i128::MAX), Cell::Int(i128::MAX)]), Cell::Float(i128::MAX as f64));
        assert_eq!(
            summary(&[Cell::Text("a".into()), Cell::Text("b".into()), Cell::Text("a".into())]),
            Cell::Text("a | b".into())
        );
        assert_eq!(summary(&[Cell::Float(f64::NAN), Cell::Int(3)]), Cell::Int(3));
    }
}
