//! Running what is missing of a sweep.

use super::journal::{self, Journal};
use super::row::{self, Ran};
use super::{Error, Plan, Planned, table};
use crate::Request;
use mmtwin_report::sweep::{Quantity, Row, Status, Sweep};
use mmtwin_trace::output::FileOutput;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

/// How a sweep is run.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Runs at the same time, each on a thread; at least 1.
    pub threads: usize,
    /// Start again where there is an output; else it is continued.
    pub force: bool,
    /// Once it is true, the sweep ends with the rows that are finished.
    pub stop: &'a AtomicBool,
}

/// How far a sweep is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Finished runs, those of earlier times among them.
    pub done: usize,
    /// All runs.
    pub of: usize,
}

/// What is there in the end.
#[derive(Debug)]
pub struct Done {
    /// All rows, as the output has them.
    pub sweep: Sweep,
    /// Rows of them that were there before.
    pub kept: usize,
    /// It was stopped before the last run.
    pub stopped: bool,
}

/// Runs what an output and its journal do not have yet, and writes all rows to the output: a Parquet file. Runs that could
/// not be run before are tried again.
///
/// A run that fails is a row with its reason. `progress` is told at the start and after each run.
///
/// # Errors
/// If the output or its journal cannot be read or written, or is of another sweep.
pub fn run(
    plan: &Plan,
    output: &Path,
    options: &Options<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Done, Error> {
    FileOutput::check(output, true)?;
    let is_there = output.exists();
    if is_there && !output.is_file() || output == Path::new("-") {
        let source = std::io::Error::other("the output of a sweep is a regular file");
        return Err(Error::Io { path: output.into(), source });
    }
    let mut before = Sweep::default();
    if is_there && !options.force {
        before = table::read(output)?;
        let other = |message| Error::Other { path: output.into(), message };
        if before.version != plan.version {
            let message = format!("is of {}, and this is {}", before.version, plan.version);
            return Err(other(format!("{message}: rows of two versions do not belong together")));
        }
        if before.keys != plan.keys {
            return Err(other(format!("is a sweep of other keys: {}", before.keys.join(", "))));
        }
    }
    let mut rows = Rows::new(plan);
    // Before there is a journal that nobody continues.
    rows.know(&before).map_err(|message| Error::Other { path: output.into(), message })?;
    let (version, scenario) = (plan.version.clone(), plan.scenario.clone());
    let mut sweep = Sweep { version, scenario, keys: plan.keys.clone(), planned: plan.runs.len(), ..Sweep::default() };
    let (mut journal, found) = Journal::open(output, &sweep, options.force)?;
    // Quantities of the journal keep their numbers.
    sweep.quantities = found.quantities;
    sweep.rows = found.rows;
    rows.know(&sweep).map_err(|message| Error::Other { path: journal::beside(output), message })?;
    std::mem::take(&mut sweep.rows).into_iter().for_each(|row| rows.put(row));
    let numbers = renumbered(&before, &mut sweep, &mut journal)?;
    for mut row in before.rows {
        row.values.iter_mut().for_each(|(at, _)| *at = numbers[*at]);
        rows.put(row);
    }
    let kept = rows.done();
    progress(Progress { done: kept, of: plan.runs.len() });
    let missing: Vec<(usize, &Planned)> =
        plan.runs.iter().enumerate().filter(|(at, _)| rows.rows[*at].is_none()).collect();
    each(&missing, options, &plan.scenario, |at, ran| {
        let row = journal.add(&plan.runs[at], ran, &mut sweep)?;
        rows.rows[at] = Some(row);
        progress(Progress { done: rows.done(), of: plan.runs.len() });
        Ok::<(), Error>(())
    })?;
    let stopped = rows.done() < plan.runs.len();
    sweep.rows = rows.rows.into_iter().flatten().collect();
    let sweep = in_order(sweep);
    let file = FileOutput::open(output, true, 0o666)?;
    let failed =
        |error: parquet::errors::ParquetError| Error::Parquet { path: output.into(), message: error.to_string() };
    table::write(&sweep, file.file()).map_err(failed)?;
    file.commit()?;
    journal.remove()?;
    Ok(Done { sweep, kept, stopped })
}

/// Rows by their place in the plan.
struct Rows {
    places: HashMap<String, usize>,
    rows: Vec<Option<Row>>,
}

impl Rows {
    fn new(plan: &Plan) -> Rows {
        let places = plan.runs.iter().enumerate().map(|(at, run)| (run.id.clone(), at)).collect();
        Rows { places, rows: vec![None; plan.runs.len()] }
    }

    fn done(&self) -> usize {
        self.rows.iter().flatten().count()
    }

    /// Whether all rows of a sweep are of the plan.
    fn know(&self, sweep: &Sweep) -> Result<(), String> {
        match sweep.rows.iter().all(|row| self.places.contains_key(&row.id)) {
            true => Ok(()),
            false => Err("has runs that this sweep does not have: other values, seeds or another scenario".into()),
        }
    }

    /// Keeps a row that was there, unless it is to be run again.
    fn put(&mut self, row: Row) {
        if let Some(place) = self.places.get(&row.id).filter(|_| row.status != Status::Failed) {
            self.rows[*place] = Some(row);
        }
    }
}

/// The numbers in `sweep` of quantities of the output that is there.
fn renumbered(before: &Sweep, sweep: &mut Sweep, journal: &mut Journal) -> Result<Vec<usize>, Error> {
    let places: HashMap<String, usize> =
        sweep.quantities.iter().enumerate().map(|(at, quantity)| (quantity.key.clone(), at)).collect();
    let number = |quantity: &Quantity| match places.get(&quantity.key) {
        Some(place) => Ok(*place),
        None => {
            sweep.quantities.push(quantity.clone());
            journal.knows(quantity)
        }
    };
    before.quantities.iter().map(number).collect()
}

/// Quantities in the order in which the rows have them, so that it does not depend on which run ended first.
fn in_order(sweep: Sweep) -> Sweep {
    let mut places = vec![None; sweep.quantities.len()];
    let (mut quantities, mut rows) = (Vec::new(), sweep.rows);
    for row in &mut rows {
        for (at, _) in &mut row.values {
            let place = *places[*at].get_or_insert_with(|| {
                quantities.push(sweep.quantities[*at].clone());
                quantities.len() - 1
            });
            *at = place;
        }
    }
    Sweep { quantities, rows, ..sweep }
}

/// What unwinds a run that is stopped in its midst.
struct Halt;

/// Runs all of them on several threads, and gives each that ended to `take`, on this one.
fn each<E>(
    runs: &[(usize, &Planned)],
    options: &Options<'_>,
    name: &str,
    mut take: impl FnMut(usize, Ran) -> Result<(), E>,
) -> Result<(), E> {
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let stop = || options.stop.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed);
    let (sender, receiver) = mpsc::channel();
    let work = |sender: mpsc::Sender<(usize, Ran)>| {
        while let Some((at, run)) = runs.get(next.fetch_add(1, Ordering::Relaxed)).filter(|_| !stop()) {
            let Some(ran) = one(run, name, &stop) else { return };
            if sender.send((*at, ran)).is_err() {
                return;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..options.threads.clamp(1, runs.len().max(1)) {
            let (sender, work) = (sender.clone(), &work);
            scope.spawn(move || work(sender));
        }
        drop(sender);
        let taken = receiver.iter().try_for_each(|(at, ran)| take(at, ran));
        failed.store(taken.is_err(), Ordering::Relaxed);
        // Nobody waits for what they send.
        drop(receiver);
        taken
    })
}

/// `None`: it was stopped.
fn one(run: &Planned, name: &str, stop: &dyn Fn() -> bool) -> Option<Ran> {
    let simulate = || {
        let scenario = run.scenario();
        let ran = crate::run(&scenario, Request { name, ..Request::default() }, &mut |_| {
            if stop() {
                // Without the message of a panic.
                resume_unwind(Box::new(Halt));
            }
        });
        ran.map_or_else(|error| row::failed(&error), |ran| row::ran(&ran))
    };
    match catch_unwind(AssertUnwindSafe(simulate)) {
        Ok(ran) => Some(ran),
        Err(why) if why.is::<Halt>() => None,
        Err(why) => {
            let text = why.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| why.downcast_ref::<&str>().copied()).unwrap_or("no message");
            Some(row::nothing(format!("the twin panicked: {text}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::{Request, read};

    const SCENARIO: &str = "[machine]\n[[machine.node]]\ncpus = \"0\"\nmemory = \"64 MiB\"\n[kernel]\nrelease = \"6.1\"\n\
        [[process]]\nname = \"p\"\n[[process.region]]\nname = \"heap\"\nsize = \"1 MiB\"\n[[process.phase]]\n\
        [[process.phase.access]]\nregion = \"heap\"\npattern = \"sequential\"\ncount = 100\n";

    #[test]
    fn another_version_is_refused_but_readable_and_failed_runs_are_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        let (scenario, output) = (folder.path().join("s.toml"), folder.path().join("o.parquet"));
        std::fs::write(&scenario, SCENARIO).unwrap();
        let sets = ["kernel.sysctl.vm.swappiness=10,60".to_owned()];
        let plan = |version| {
            let request = Request { scenario: &scenario, sets: &sets, cases: None, paired: false, seeds: &[], version };
            Plan::new(&request).unwrap_or_else(|faults| panic!("{faults:?}"))
        };
        let stop = AtomicBool::new(false);
        let sweep =
            |version, force| run(&plan(version), &output, &Options { threads: 2, force, stop: &stop }, &mut |_| {});
        let first = sweep("a", false).unwrap();
        assert_eq!((first.kept, first.stopped, first.sweep.rows.len()), (0, false, 2));
        assert_eq!(read(&output).unwrap(), first.sweep);
        let refused = sweep("b", false).unwrap_err().to_string();
        assert!(
            refused.contains("is of a, and this is b: rows of two versions do not belong together; -f"),
            "{refused}"
        );
        assert!(!journal::beside(&output).exists());
        assert_eq!(sweep("b", true).unwrap().kept, 0);
        // As of a run whose thread could not get its memory.
        let mut damaged = read(&output).unwrap();
        damaged.rows[1].status = Status::Failed;
        damaged.rows[1].values.clear();
        table::write(&damaged, std::fs::File::create(&output).unwrap()).unwrap();
        let again = sweep("b", false).unwrap();
        assert_eq!((again.kept, again.sweep.rows[1].status), (1, Status::Completed));
        // Stopped before anything.
        stop.store(true, Ordering::Relaxed);
        let stopped = sweep("c", true).unwrap();
        assert!(stopped.stopped && stopped.sweep.rows.is_empty());
    }
}
