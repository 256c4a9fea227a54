//! Writers: the lines of a kernel's `trace` file and of `trace-cmd report`, Parquet, and traces of Perfetto.

mod columns;
mod fields;
#[cfg(feature = "parquet")]
mod parquet;
mod perfetto;
#[cfg(feature = "parquet")]
pub mod tables;
mod text;

pub use columns::{Columns, Header};
#[cfg(feature = "parquet")]
pub use parquet::{BatchSink, ParquetWriter};
pub use perfetto::PerfettoWriter;
pub use text::{TextStyle, TextWriter};
