//! A table and its rows that nobody has taken yet.

use super::column::{Column, Type};
use crate::Error;
use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use std::io;
use std::sync::Arc;

/// A table.
pub struct Table {
    /// Its name: that of its file without the ending.
    pub(super) name: String,
    /// Columns, in the order of the schema.
    pub(super) columns: Vec<Column>,
    /// Rows in `columns`.
    pub(super) rows: usize,
    /// Bytes of `columns`, about.
    pub(super) bytes: usize,
    /// Rows that were given, or counted only.
    pub(super) given: u64,
    /// Whether anybody wants its rows.
    pub(super) wanted: bool,
    /// Key and value metadata.
    pub(super) notes: Vec<(String, String)>,
    schema: SchemaRef,
}

impl Table {
    /// A table of these columns: name, type, may be absent.
    pub(super) fn new(
        name: &str,
        columns: &[(String, Type, bool)],
        notes: Vec<(String, String)>,
        wanted: bool,
    ) -> Table {
        let fields: Vec<_> = columns.iter().map(|(name, kind, nullable)| kind.field(name, *nullable)).collect();
        let columns = columns.iter().map(|(_, kind, _)| kind.column()).collect();
        let schema = Arc::new(Schema::new(fields));
        Table { name: name.into(), columns, rows: 0, bytes: 0, given: 0, wanted, notes, schema }
    }

    /// Ends a row; `bytes` is what the columns took for it.
    pub(super) fn end_row(&mut self, bytes: usize) {
        self.rows += 1;
        self.bytes += bytes;
    }

    /// Takes the collected rows out; `None`: there are none.
    pub(super) fn take(&mut self) -> Result<Option<RecordBatch>, Error> {
        if self.rows == 0 {
            return Ok(None);
        }
        let arrays = self.columns.iter_mut().map(Column::take).collect::<Result<_, _>>();
        let batch = arrays.and_then(|arrays| RecordBatch::try_new(self.schema.clone(), arrays));
        let batch = batch.map_err(|error| Error::io(&self.name, io::Error::other(error)))?;
        self.given += self.rows as u64;
        (self.rows, self.bytes) = (0, 0);
        Ok(Some(batch))
    }
}
