//! Writers: the lines of a kernel's `trace` file and of `trace-cmd report`, and Parquet.

mod columns;
#[cfg(feature = "parquet")]
mod parquet;
mod text;

pub use columns::{Columns, Header};
#[cfg(feature = "parquet")]
pub use parquet::ParquetWriter;
pub use text::{TextStyle, TextWriter};
