//! The rows of one table as record batches.

use super::table::Table;
use super::{Collector, Target};
use crate::Error;
use crate::format::Formats;
use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, Schema};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;

/// Takes a stream, and gives the rows of one of its tables as record batches; those of the others are counted.
pub type BatchSink<'a> = Collector<Batches<'a>>;

/// The table, and who takes its rows.
pub struct Batches<'a> {
    table: &'a str,
    take: &'a mut dyn FnMut(RecordBatch),
}

impl<'a> Collector<Batches<'a>> {
    /// A sink for the table `table`, named as the file that [`ParquetWriter`](super::ParquetWriter) would write for it,
    /// without the ending. `formats` are those of the source, if it is binary. The schema of the batches has the
    /// metadata of that file.
    pub fn new(table: &'a str, formats: Option<Arc<Formats>>, take: &'a mut dyn FnMut(RecordBatch)) -> BatchSink<'a> {
        Collector::to(Batches { table, take }, formats)
    }

    /// Gives what is left. Returns all tables with their rows, by name.
    ///
    /// # Errors
    /// If rows are no record batch.
    pub fn close(mut self) -> Result<Vec<(String, u64)>, Error> {
        self.flush()
    }
}

impl Target for Batches<'_> {
    fn wants(&self, table: &str) -> bool {
        table == self.table
    }

    fn take(&mut self, _: usize, table: &Table, rows: &RecordBatch) -> Result<(), Error> {
        let notes: HashMap<String, String> = table.notes.iter().cloned().collect();
        let schema = Schema::new_with_metadata(rows.schema().fields().clone(), notes);
        let failed = |error: ArrowError| Error::io(&table.name, io::Error::other(error));
        (self.take)(rows.clone().with_schema(Arc::new(schema)).map_err(failed)?);
        Ok(())
    }
}
