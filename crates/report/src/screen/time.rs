//! The time that a screen is about.

use super::Subject;

/// A stretch of the trace clock in nanoseconds; it has a length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) start: u64,
    pub(super) end: u64,
}

impl Range {
    /// Nanoseconds.
    pub(super) fn length(self) -> f64 {
        (self.end - self.start) as f64
    }

    /// Begin and end of one of `n` equal parts.
    pub(super) fn part(self, i: usize, n: usize) -> (u64, u64) {
        let at = |i: usize| {
            let offset = u128::from(self.end - self.start) * i as u128 / n.max(1) as u128;
            self.start + offset as u64
        };
        (at(i), at(i + 1))
    }
}

/// Sources whose samples tell the time.
const SAMPLED: [&str; 3] = ["vmstat", "psi", "zoneinfo"];

/// From the first to the last thing that was recorded; `None` if no time passed, or it is not known.
pub(super) fn range(subject: &Subject<'_>) -> Option<Range> {
    let analysis = subject.analysis;
    let mut ends: Vec<(u64, u64)> = analysis.span.first.map(|first| (first, analysis.span.last)).into_iter().collect();
    // Saved counters of another tool have the time of its choice.
    if ends.is_empty() || counters_have_the_clock(subject) {
        ends.extend(SAMPLED.iter().filter_map(|source| {
            let counters = &analysis.counters;
            let sampled = counters.keys(source).into_iter().find_map(|key| {
                counters.seconds(source, key)?;
                counters.sampled(source, key)
            })?;
            Some((sampled.first_at, sampled.last_at))
        }));
    }
    // What a recorder did before and behind is of no command, and no share of a finding counts it.
    if ends.is_empty() {
        ends.extend(subject.about.start.zip(subject.about.end));
    }
    let (start, end) = (ends.iter().map(|(start, _)| *start).min()?, ends.iter().map(|(_, end)| *end).max()?);
    (start < end).then_some(Range { start, end })
}

/// True if counters were sampled with the clock of the events.
pub(crate) fn counters_have_the_clock(subject: &Subject<'_>) -> bool {
    subject.analysis.source.arm != "import" || subject.analysis.span.first.is_none()
}

/// Nanoseconds elapsed: those of the command where they were measured.
pub(super) fn elapsed(subject: &Subject<'_>) -> Option<f64> {
    let measured = subject.analysis.source.times.map(|times| times.elapsed * 1e9).filter(|ns| *ns > 0.0);
    measured.or_else(|| range(subject).map(Range::length))
}
