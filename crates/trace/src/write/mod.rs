//! Writers of text: the lines of a kernel's `trace` file and of `trace-cmd report`.

mod columns;
mod text;

pub use columns::{Columns, Header};
pub use text::{TextStyle, TextWriter};
