//! Values over time as one row of Unicode blocks.

use super::time::Range;

/// From least to most; a value that is not known is a blank.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Samples of a counter: nanoseconds of the trace clock, value.
pub(super) type Points = [(u64, Option<u64>)];

/// A counter's growth per second in each of `n` parts of a range; `None` where it was not sampled, or was reset.
pub(super) fn rates(points: &Points, range: Range, n: usize) -> Vec<Option<f64>> {
    let grown: Vec<(u64, u64, f64)> = points
        .windows(2)
        .filter_map(|pair| {
            let [(from, before), (to, after)] = pair else { return None };
            let grown = (*after)?.checked_sub((*before)?)?;
            (from < to).then(|| (*from, *to, grown as f64 / (to - from) as f64))
        })
        .collect();
    let part = |i| {
        let (start, end) = range.part(i, n);
        let (mut known, mut sum) = (0.0, 0.0);
        for (from, to, rate) in &grown {
            let both = (*to).min(end).saturating_sub((*from).max(start)) as f64;
            known += both;
            sum += rate * both;
        }
        (known > 0.0).then(|| sum / known * 1e9)
    };
    (0..n).map(part).collect()
}

/// Which of several values of a part stands for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pick {
    Least,
    Most,
}

/// A gauge in each of `n` parts of a range: the least or the most of its samples there, else the last one before.
pub(super) fn levels(points: &Points, range: Range, n: usize, pick: Pick) -> Vec<Option<f64>> {
    let mut last = None;
    let last_at = points.last().map_or(0, |(at, _)| *at);
    let part = |i| {
        let (start, end) = range.part(i, n);
        let inside = |at: u64| at >= start && (at < end || (i + 1 == n && at == end));
        let values = points.iter().filter(|(at, _)| inside(*at)).filter_map(|(_, value)| *value);
        let best = match pick {
            Pick::Least => values.min(),
            Pick::Most => values.max(),
        };
        let before = points.iter().rev().find(|(at, _)| *at < end).and_then(|(_, value)| *value);
        let known = best.or(last.filter(|_| start <= last_at));
        last = before.or(last);
        known.map(|value| value as f64)
    };
    (0..n).map(part).collect()
}

/// The largest of the known values.
pub(super) fn most(values: &[Option<f64>]) -> Option<f64> {
    values.iter().flatten().copied().reduce(f64::max)
}

/// Sums part by part; not known only where all are not.
pub(super) fn sum(mut lines: impl Iterator<Item = Vec<Option<f64>>>) -> Vec<Option<f64>> {
    let first = lines.next().unwrap_or_default();
    lines.fold(first, |mut sum, line| {
        for (sum, value) in sum.iter_mut().zip(line) {
            *sum = match (*sum, value) {
                (Some(a), Some(b)) => Some(a + b),
                (a, b) => a.or(b),
            };
        }
        sum
    })
}

/// The row, as high as `full`.
pub(super) fn row(values: &[Option<f64>], full: f64) -> String {
    let block = |value: &Option<f64>| match value {
        None => ' ',
        Some(value) if *value <= 0.0 || full <= 0.0 => BLOCKS[0],
        // Anything above nothing is seen.
        Some(value) => BLOCKS[(1.0 + value / full * 6.999).min(7.0) as usize],
    };
    values.iter().map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const RANGE: Range = Range { start: 0, end: 4 * SECOND };

    #[test]
    fn rates_are_spread_over_the_time_between_samples() {
        let points = [(0, Some(0)), (2 * SECOND, Some(100)), (3 * SECOND, Some(100)), (4 * SECOND, Some(5))];
        assert_eq!(rates(&points, RANGE, 4), [Some(50.0), Some(50.0), Some(0.0), None]);
        assert_eq!(rates(&points, RANGE, 2), [Some(50.0), Some(0.0)]);
        assert_eq!(rates(&points[..1], RANGE, 2), [None, None]);
        let unknown = [(0, Some(0)), (2 * SECOND, None), (4 * SECOND, Some(9))];
        assert_eq!(rates(&unknown, RANGE, 2), [None, None]);
    }

    #[test]
    fn levels_last_until_the_next_sample() {
        let points = [(SECOND, Some(7)), (SECOND + 1, Some(3)), (3 * SECOND, Some(5))];
        assert_eq!(levels(&points, RANGE, 4, Pick::Most), [None, Some(7.0), Some(3.0), Some(5.0)]);
        assert_eq!(levels(&points, RANGE, 4, Pick::Least), [None, Some(3.0), Some(3.0), Some(5.0)]);
        assert_eq!(levels(&[], RANGE, 2, Pick::Most), [None, None]);
    }

    #[test]
    fn zero_is_low_and_unknown_is_blank() {
        assert_eq!(row(&[Some(0.0), None, Some(0.1), Some(50.0), Some(100.0)], 100.0), "▁ ▂▅█");
        assert_eq!(row(&[Some(0.0)], 0.0), "▁");
        assert_eq!(most(&[None, Some(2.0), Some(1.0)]), Some(2.0));
        assert_eq!(sum([vec![Some(1.0), None], vec![Some(2.0), None]].into_iter()), [Some(3.0), None]);
    }
}
