//! A table as an Arrow IPC file or a Parquet file.
//!
//! The metadata of a file has `mmtwin.schema_version`, by which a directory of such files is known as mmtwin's, and what
//! the table's schema has: `mmtwin.title`, `mmtwin.note`, `mmtwin.input`. The same table gives the same bytes.

use crate::Batch;
use arrow_array::RecordBatch;
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, Schema};
use mmtwin_event::manifest::SCHEMA_VERSION;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;

impl Batch {
    /// Writes it as an Arrow IPC file, which programs can map into memory.
    ///
    /// # Errors
    /// Those of the output.
    pub fn write_arrow(&self, out: impl Write) -> Result<(), ArrowError> {
        let schema = Schema::new_with_metadata(self.rows.schema().fields().clone(), self.metadata());
        let rows = RecordBatch::try_new(Arc::new(schema), self.rows.columns().to_vec())?;
        let mut writer = FileWriter::try_new(out, &rows.schema())?;
        writer.write(&rows)?;
        writer.finish()
    }

    /// Writes it as a Parquet file, compressed with zstd.
    ///
    /// # Errors
    /// Those of the output.
    pub fn write_parquet(&self, out: impl Write + Send) -> Result<(), ParquetError> {
        let notes = self.metadata().into_iter().map(|(key, value)| KeyValue::new(key, value)).collect();
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_key_value_metadata(Some(notes))
            .build();
        let mut writer = ArrowWriter::try_new(out, self.rows.schema(), Some(properties))?;
        writer.write(&self.rows)?;
        writer.close()?;
        Ok(())
    }

    /// What the file says of itself, sorted by key.
    fn metadata(&self) -> BTreeMap<String, String> {
        let version = ("mmtwin.schema_version".to_string(), SCHEMA_VERSION.to_string());
        let schema = self.rows.schema();
        let own = schema.metadata().iter().map(|(key, value)| (format!("mmtwin.{key}"), value.clone()));
        own.filter(|(_, value)| !value.is_empty()).chain([version]).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::batches;
    use arrow_ipc::reader::FileReader;
    use mmtwin_report::compare::single;
    use mmtwin_report::model::{Body, Cell, Column, InputInfo, Na, Report, Table};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use std::io::Write;

    #[test]
    fn both_files_give_the_rows_back_and_say_what_they_are() {
        let column = |key: &str, unit| Column { key: key.into(), label: key.into(), unit };
        let rows =
            vec![vec![Cell::Text("é".into()), Cell::int(u64::MAX)], vec![Cell::Na(Na::Lost), Cell::Na(Na::Lost)]];
        let body = Body::List { columns: vec![column("name", ""), column("size", "pages")], rows };
        let table = Table { name: "t".into(), title: "T".into(), note: String::new(), body };
        let input = InputInfo { name: "a.mmt".into(), ..InputInfo::default() };
        let tables = batches(&single(Report { input, tables: vec![table], ..Report::default() })).unwrap();
        let batch = tables.iter().find(|batch| batch.name == "t").expect("the table");
        let (mut arrow, mut parquet) = (Vec::new(), Vec::new());
        batch.write_arrow(&mut arrow).unwrap();
        batch.write_parquet(&mut parquet).unwrap();
        let mut again = Vec::new();
        batch.write_arrow(&mut again).unwrap();
        assert_eq!(arrow, again);

        let mut read = FileReader::try_new(std::io::Cursor::new(arrow), None).unwrap();
        let schema = read.schema();
        assert_eq!(schema.metadata().get("mmtwin.title").map(String::as_str), Some("T"));
        assert_eq!(schema.metadata().get("mmtwin.input").map(String::as_str), Some("a.mmt"));
        assert!(
            schema.metadata().contains_key("mmtwin.schema_version") && !schema.metadata().contains_key("mmtwin.note")
        );
        assert_eq!(schema.field(2).metadata().get("unit").map(String::as_str), Some("pages"));
        let rows = read.next().expect("rows").unwrap();
        assert_eq!(rows.columns(), batch.rows.columns());

        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&parquet).unwrap();
        let read = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        let notes = read.metadata().file_metadata().key_value_metadata().expect("metadata").clone();
        assert!(notes.iter().any(|note| note.key == "mmtwin.schema_version"));
        let rows = read.build().unwrap().next().expect("rows").unwrap();
        assert_eq!(rows.columns(), batch.rows.columns());
    }
}
