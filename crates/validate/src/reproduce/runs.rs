//! The runs of a study. None is made twice: a kernel whose rules never decided otherwise has the run of the kernel before
//! ([`mmtwin_twin::engine::run_beside`]), and a scenario that an earlier study ran as well has its run.

use super::jobs::run_all;
use super::{Found, Study};
use mmtwin_scenario::Scenario;
use mmtwin_scenario::published::{Histogram, Published, Row};
use mmtwin_twin::build::are_rivals;
use std::ptr::fn_addr_eq;
use std::sync::{Mutex, MutexGuard};

/// Measures a scenario; with the published histogram of its row, if it has one, and kernels whose run it may be too.
pub(super) type Measure = fn(&Scenario, Option<&Histogram>, &[&Scenario]) -> Result<Found, String>;

/// Runs that were made, of several studies.
#[derive(Debug, Default)]
pub struct Known(Mutex<Vec<(Measure, Scenario, Found)>>);

impl Known {
    fn runs(&self) -> MutexGuard<'_, Vec<(Measure, Scenario, Found)>> {
        // Whoever held the lock only appended.
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn find(&self, measure: Measure, scenario: &Scenario) -> Option<Found> {
        let runs = self.runs();
        // Measures with the same address do the same.
        let is_it = |(by, of, _): &&(Measure, Scenario, Found)| fn_addr_eq(*by, measure) && of == scenario;
        runs.iter().find(is_it).map(|(.., found)| found.clone())
    }
}

/// What each row has found, by seed: for each row as many as it has seeds.
pub(super) fn all(
    study: &Study,
    published: &Published,
    rows: &[(&Row, Scenario)],
    known: &Known,
) -> Vec<Vec<Result<Found, String>>> {
    let most = rows.iter().map(|(row, _)| row.seeds).max().unwrap_or(0);
    let of_seed = |group: &[usize], nth: u32| -> Vec<usize> {
        group.iter().copied().filter(|&i| nth < rows[i].0.seeds).collect()
    };
    let groups = groups(rows);
    let jobs: Vec<(Vec<usize>, u32)> =
        groups.iter().flat_map(|group| (0..most).map(|nth| (of_seed(group, nth), nth))).collect();
    let run = |(group, nth): &(Vec<usize>, u32)| of_group(study, published, rows, (group, *nth), known);
    let mut found: Vec<(usize, u32, Result<Found, String>)> = run_all(&jobs, run).into_iter().flatten().collect();
    found.sort_by_key(|(row, nth, _)| (*row, *nth));
    let mut by_row: Vec<Vec<_>> = rows.iter().map(|_| Vec::new()).collect();
    found.into_iter().for_each(|(row, _, found)| by_row[row].push(found));
    by_row
}

/// Rows whose runs may be one, in their order.
fn groups(rows: &[(&Row, Scenario)]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (i, (_, scenario)) in rows.iter().enumerate() {
        match groups.iter_mut().find(|group| are_rivals(&rows[group[0]].1, scenario)) {
            Some(group) => group.push(i),
            None => groups.push(vec![i]),
        }
    }
    groups
}

/// The runs of a group with one seed.
fn of_group(
    study: &Study,
    published: &Published,
    rows: &[(&Row, Scenario)],
    (group, nth): (&[usize], u32),
    known: &Known,
) -> Vec<(usize, u32, Result<Found, String>)> {
    let mut waiting: Vec<(usize, Scenario)> = group.iter().map(|&i| (i, rows[i].1.clone())).collect();
    waiting.iter_mut().for_each(|(_, scenario)| scenario.run.seed = scenario.run.seed.wrapping_add(nth.into()));
    let mut all = Vec::new();
    while !waiting.is_empty() {
        let (row, scenario) = waiting.remove(0);
        let histogram = published.histograms.iter().find(|histogram| histogram.row == rows[row].0.key);
        let rivals: Vec<&Scenario> = waiting.iter().map(|(_, scenario)| scenario).collect();
        let before = known.find(study.run, &scenario);
        let is_new = before.is_none();
        let found = before.map_or_else(|| (study.run)(&scenario, histogram, &rivals), Ok);
        let alike = found.as_ref().map_or(&[][..], |found| &found.alike).to_vec();
        let mut alike = alike.into_iter();
        let (same, others): (Vec<_>, Vec<_>) = waiting.into_iter().partition(|_| alike.next().unwrap_or(false));
        waiting = others;
        for (row, scenario) in [(row, scenario)].into_iter().chain(same) {
            if let (true, Ok(found)) = (is_new, &found) {
                let found = Found { alike: Vec::new(), ..found.clone() };
                known.runs().push((study.run, scenario, found));
            }
            all.push((row, nth, found.clone()));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::lumpy_2012::{EXPLAINED, STUDY};
    use super::super::{Request, reproduce_as};
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    static RUNS: AtomicUsize = AtomicUsize::new(0);

    /// A run that every rival has too.
    fn shared(_: &Scenario, _: Option<&Histogram>, rivals: &[&Scenario]) -> Result<Found, String> {
        RUNS.fetch_add(1, Ordering::Relaxed);
        Ok(Found { alike: vec![true; rivals.len()], ..Found::default() })
    }

    #[test]
    fn no_run_is_made_twice() {
        let known = Known::default();
        let runs = |study: Study, seeds: Option<u32>| {
            let request = Request { seeds, known: Some(&known), ..Request::default() };
            let before = RUNS.load(Ordering::Relaxed);
            let found = reproduce_as(&Study { run: shared, ..study }, &request).unwrap_or_else(|e| panic!("{e}"));
            (found.rows.len(), RUNS.load(Ordering::Relaxed) - before)
        };
        // Of four kernels in four tests lumpyremove is rc2; two rows of what it left open are the series'.
        assert_eq!([runs(STUDY, None), runs(EXPLAINED, None), runs(STUDY, None)], [(16, 12), (6, 4), (16, 0)]);
        // Of two seeds one is known.
        assert_eq!(runs(STUDY, Some(2)), (16, 12));
    }
}
