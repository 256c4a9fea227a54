//! How and where reports are printed.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// How to print tables.
#[derive(Args, Debug, Clone)]
pub struct Printing {
    /// Print only these tables
    #[arg(short, long = "table", value_name = "NAME", value_delimiter = ',')]
    pub tables: Vec<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
}

/// How to print a report or a comparison.
#[derive(Args, Debug, Clone)]
pub struct ReportPrinting {
    /// Print only these tables
    #[arg(short, long = "table", value_name = "NAME", value_delimiter = ',')]
    pub tables: Vec<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t = ReportFormat::Table)]
    pub format: ReportFormat,
}

impl ReportPrinting {
    /// The same for text; `None`: it is none.
    pub fn text(&self) -> Option<Printing> {
        let format = match self.format {
            ReportFormat::Table => Format::Table,
            ReportFormat::Json => Format::Json,
            ReportFormat::Csv => Format::Csv,
            ReportFormat::Html | ReportFormat::Arrow | ReportFormat::Parquet => return None,
        };
        Some(Printing { tables: self.tables.clone(), format })
    }
}

/// Output formats of a report or a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// Aligned text
    Table,
    /// JSON, schema_version 2
    Json,
    /// CSV, one block per table
    Csv,
    /// One HTML file with charts over time, heat maps and tables: with -o FILE
    Html,
    /// A directory of Arrow IPC files, one per table: with -o DIR
    Arrow,
    /// A directory of Parquet files, one per table: with -o DIR
    Parquet,
}

/// Where the output goes.
#[derive(Args, Debug, Clone)]
pub struct Output {
    /// File, or directory of tables, to write instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace an existing file, or directory of tables
    #[arg(short, long)]
    pub force: bool,
}

/// How much text to print.
#[derive(Args, Debug, Clone, Copy)]
pub struct Amount {
    /// Print all tables, with rows of zeros, exact values and the tables of published reports
    #[arg(long, conflicts_with = "tables")]
    pub all: bool,
    /// Do not page what is longer than the terminal ($MMTWIN_PAGER, $PAGER, less)
    #[arg(long)]
    pub no_pager: bool,
}

/// Output formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Aligned text
    Table,
    /// JSON, schema_version 2
    Json,
    /// CSV, one block per table
    Csv,
}
