//! What drives a sweep: knows which runs are missing, keeps each finished one in the journal, and writes all of them to
//! the output at the end. [`run`](super::run) gives it the runs of this machine's threads; others may come from anywhere.

use super::journal::{self, Journal};
use super::row::Ran;
use super::{Error, Plan, table};
use mmtwin_report::sweep::{Quantity, Row, Status, Sweep};
use mmtwin_trace::output::FileOutput;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

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

/// A sweep that has begun. Dropped before [`Driver::finish`], its journal stays, and the same sweep continues.
pub struct Driver {
    plan: Plan,
    output: PathBuf,
    journal: Journal,
    /// Quantities in the order of the journal; its rows are in `rows`.
    sweep: Sweep,
    rows: Rows,
    kept: usize,
}

impl Driver {
    /// Begins or continues a sweep. `force`: begins again where there is an output.
    ///
    /// # Errors
    /// If the output or its journal cannot be read or written, or is of another sweep.
    pub fn begin(plan: Plan, output: &Path, force: bool) -> Result<Driver, Error> {
        FileOutput::check(output, true)?;
        let is_there = output.exists();
        if is_there && !output.is_file() || output == Path::new("-") {
            let source = std::io::Error::other("the output of a sweep is a regular file");
            return Err(Error::Io { path: output.into(), source });
        }
        let mut before = Sweep::default();
        if is_there && !force {
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
        let mut rows = Rows::new(&plan);
        // Before there is a journal that nobody continues.
        rows.know(&before).map_err(|message| Error::Other { path: output.into(), message })?;
        let (version, scenario) = (plan.version.clone(), plan.scenario.clone());
        let mut sweep =
            Sweep { version, scenario, keys: plan.keys.clone(), planned: plan.runs.len(), ..Sweep::default() };
        let (mut journal, found) = Journal::open(output, &sweep, force)?;
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
        Ok(Driver { plan, output: output.into(), journal, sweep, rows, kept })
    }

    /// All its runs.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// How many runs are finished.
    pub fn done(&self) -> usize {
        self.rows.done()
    }

    /// Places in the plan of the runs that are not finished.
    pub fn missing(&self) -> Vec<usize> {
        (0..self.plan.runs.len()).filter(|at| self.rows.rows[*at].is_none()).collect()
    }

    /// A finished run; its values are those of [`Driver::quantities`].
    pub fn row(&self, at: usize) -> Option<&Row> {
        self.rows.rows.get(at)?.as_ref()
    }

    /// Quantities of the rows so far.
    pub fn quantities(&self) -> &[Quantity] {
        &self.sweep.quantities
    }

    /// Keeps a finished run, whose place in the plan is `at`. One that is there already stays.
    ///
    /// # Errors
    /// If the journal cannot be written.
    pub fn add(&mut self, at: usize, ran: Ran) -> Result<(), Error> {
        if self.rows.rows[at].is_none() {
            self.rows.rows[at] = Some(self.journal.add(&self.plan.runs[at], ran, &mut self.sweep)?);
        }
        Ok(())
    }

    /// Adds runs of the same keys to the plan, and gives the place of each: runs that it has keep theirs.
    pub fn extend(&mut self, more: Plan) -> Vec<usize> {
        let mut places = Vec::with_capacity(more.runs.len());
        for run in more.runs {
            let next = self.plan.runs.len();
            let place = *self.rows.places.entry(run.id.clone()).or_insert(next);
            if place == next {
                self.plan.runs.push(run);
                self.rows.rows.push(None);
            }
            places.push(place);
        }
        self.sweep.planned = self.plan.runs.len();
        places
    }

    /// Writes the rows to the output, a Parquet file, and removes the journal.
    ///
    /// # Errors
    /// If the output cannot be written; the journal stays.
    pub fn finish(self) -> Result<Done, Error> {
        let Driver { plan, output, journal, mut sweep, rows, kept } = self;
        let stopped = rows.done() < plan.runs.len();
        sweep.rows = rows.rows.into_iter().flatten().collect();
        let sweep = in_order(sweep);
        let file = FileOutput::open(&output, true, 0o666)?;
        let failed =
            |error: parquet::errors::ParquetError| Error::Parquet { path: output.clone(), message: error.to_string() };
        table::write(&sweep, file.file()).map_err(failed)?;
        file.commit()?;
        journal.remove()?;
        Ok(Done { sweep, kept, stopped })
    }
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
