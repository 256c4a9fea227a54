//! What a report is made of: named tables with typed cells, before anything is printed.
//!
//! `report` makes one [`Report`] of one input; `compare` puts several side by side. The shapes are those of
//! the JSON output (schema_version 2): `metric` rows have one value per column, `list` rows one value per field.

pub use mmtwin_analysis::findings::{Cost, Pressure, Waiter};
use std::borrow::Cow;

/// A report on one input.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What it is about.
    pub input: InputInfo,
    /// Sentences of verdict, worst first.
    pub findings: Vec<Finding>,
    /// Event/counter cross-check.
    pub cross_check: Vec<CrossCheck>,
    /// The tables, in the order of the report.
    pub tables: Vec<Table>,
}

/// One input.
#[derive(Clone, Debug, Default)]
pub struct InputInfo {
    /// Name as given.
    pub name: String,
    /// `twin`, `lab`, `host` or `import`.
    pub arm: String,
    /// Kernel release, if known.
    pub kernel: Option<String>,
    /// Events the kernel lost; `None` if the source cannot tell.
    pub lost_events: Option<u64>,
    /// Of the events that were lost those that somebody counted: a lower bound where `lost_events` is unknown.
    pub lost_at_least: u64,
    /// Missing parts of the input, each with its position; empty: none detected.
    pub incomplete: Vec<String>,
    /// Events read.
    pub events: u64,
    /// It has counters, and no events were to be recorded: how many there were is not known.
    pub counters_only: bool,
    /// Hash of the scenario it ran, if it ran one.
    pub scenario: Option<String>,
    /// What part of it was read, in a sentence; `None`: all of it.
    pub filter: Option<String>,
}

/// One verdict.
#[derive(Clone, Debug, Default)]
pub struct Finding {
    /// Stable snake_case name of the rule.
    pub key: String,
    /// How bad, 0..=100; findings are printed worst first.
    pub severity: u8,
    /// One sentence with its numbers.
    pub sentence: String,
    /// What it means or what else was seen; may be empty.
    pub detail: String,
    /// The command that shows more.
    pub command: String,
    /// Time that tasks waited because of it; `None`: the recording does not tell.
    pub cost: Option<Cost>,
    /// Pressure stall information beside it; `None`: not recorded.
    pub pressure: Option<Pressure>,
    /// What would help.
    pub fix: Option<String>,
    /// The command that tells more of the cause, or that records what is missing.
    pub next: Option<String>,
}

/// Two numbers that should be equal.
#[derive(Clone, Debug)]
pub struct CrossCheck {
    /// Stable snake_case name.
    pub key: String,
    /// What is compared, for people.
    pub label: String,
    /// Sum over events.
    pub events: Cell,
    /// Delta of counters.
    pub counters: Cell,
}

impl CrossCheck {
    /// Events minus counters: exact for integers, n/a if either is.
    pub fn difference(&self) -> Cell {
        if let Some(reason) = self.events.na().or(self.counters.na()) {
            return Cell::Na(reason);
        }
        let exact = match (&self.events, &self.counters) {
            (Cell::Int(events), Cell::Int(counters)) => events.checked_sub(*counters),
            _ => None,
        };
        let inexact = || Cell::float(self.events.number().zip(self.counters.number()).map(|(e, c)| e - c));
        exact.map_or_else(inexact, Cell::Int)
    }
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Stable name for `--table`.
    pub name: String,
    /// Title for people.
    pub title: String,
    /// Said under the title (units, conventions); may be empty.
    pub note: String,
    /// Its contents.
    pub body: Body,
}

/// The kinds of tables.
#[derive(Clone, Debug)]
pub enum Body {
    /// One row per quantity, one column per input.
    Metric(Vec<Metric>),
    /// One row per thing, one column per field.
    List {
        /// The columns.
        columns: Vec<Column>,
        /// The rows; each as long as `columns`.
        rows: Vec<Vec<Cell>>,
    },
    /// Counts from one thing to another.
    Matrix {
        /// Row labels.
        rows: Vec<String>,
        /// Column labels.
        columns: Vec<String>,
        /// What rows and columns are, such as `from node` and `to node`.
        axes: (String, String),
        /// Unit of the values.
        unit: &'static str,
        /// `values[row][column]`.
        values: Vec<Vec<Cell>>,
    },
    /// Counts of power-of-two slots.
    Histogram {
        /// Unit of the bounds.
        unit: &'static str,
        /// (lower bound, upper bound, count), ascending, without gaps.
        slots: Vec<(u64, u64, u64)>,
        /// Mean of the values themselves, if known.
        mean: Option<f64>,
        /// Sum of the values themselves.
        total: u64,
    },
    /// Values over time.
    Series {
        /// The columns; the first is the time in seconds.
        columns: Vec<Column>,
        /// The rows.
        rows: Vec<Vec<Cell>>,
    },
}

/// A column of a list or series.
#[derive(Clone, Debug)]
pub struct Column {
    /// Stable snake_case name.
    pub key: String,
    /// Heading.
    pub label: String,
    /// Unit; empty for words and plain counts.
    pub unit: &'static str,
}

/// A row of a metric table.
#[derive(Clone, Debug)]
pub struct Metric {
    /// Stable snake_case name.
    pub key: String,
    /// Label for people.
    pub label: String,
    /// Unit of the values; empty for plain counts.
    pub unit: Cow<'static, str>,
    /// Which direction is good.
    pub better: Better,
    /// How a change is written, and by which rule of gain.
    pub gain: Gain,
    /// How many decimals a printed value has, where the convention fixes it; `None` prints shortest.
    pub decimals: Option<u8>,
    /// Value of this input.
    pub value: Cell,
    /// What was published of it, if the input reproduces a published table.
    pub published: Option<Published>,
}

/// A published figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// Its value, in the unit of the row.
    pub value: f64,
    /// A parameter was fixed on it; otherwise it is predicted.
    pub fitted: bool,
}

impl Published {
    /// How far a value is above it, in percent. Not known of values that are no numbers, or beside 0.
    pub fn error_percent(&self, cell: &Cell) -> Option<f64> {
        let error = 100.0 * (cell.number()? - self.value) / self.value;
        error.is_finite().then_some(error)
    }

    /// The word for people.
    pub fn status(&self) -> &'static str {
        if self.fitted { "fitted" } else { "predicted" }
    }
}

/// Which direction of a value is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Smaller is better.
    Lower,
    /// Larger is better.
    Higher,
    /// Neither.
    Neutral,
}

/// Rules by which a change against the baseline is expressed (report-table conventions of the years).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gain {
    /// No gain column.
    None,
    /// (n - b) * 100 / n: relative to the new value (raw vmstat tables of 2010).
    RelativeToNew,
    /// n * 100 / b - 100 (higher is better, 2012 and later).
    Percent,
    /// 100 - n * 100 / b (lower is better, 2012 and later).
    PercentLower,
    /// n - b, in percentage points.
    Points,
}

impl Better {
    /// The word of the JSON and CSV output.
    pub fn word(self) -> &'static str {
        match self {
            Better::Lower => "lower",
            Better::Higher => "higher",
            Better::Neutral => "neutral",
        }
    }
}

impl Gain {
    /// The word of the JSON output.
    pub fn word(self) -> &'static str {
        match self {
            Gain::None => "none",
            Gain::RelativeToNew => "relative-to-new",
            Gain::Percent => "percent",
            Gain::PercentLower => "percent-lower",
            Gain::Points => "points",
        }
    }
}

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// An exact integer.
    Int(i128),
    /// A measured or derived number.
    Float(f64),
    /// A word.
    Text(String),
    /// Not known, with the reason.
    Na(Na),
}

/// Why a value is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Na {
    /// The event or counter was not recorded.
    NotRecorded,
    /// This kernel does not have it.
    NotInKernel,
    /// It was lost.
    Lost,
    /// There is no such thing: a level has no rate.
    Undefined,
}

impl Na {
    /// The word of the JSON output.
    pub fn word(self) -> &'static str {
        match self {
            Na::NotRecorded => "not-recorded",
            Na::NotInKernel => "not-in-kernel",
            Na::Lost => "lost",
            Na::Undefined => "undefined",
        }
    }

    /// The same for people.
    pub fn phrase(self) -> &'static str {
        match self {
            Na::NotRecorded => "not recorded",
            Na::NotInKernel => "not in this kernel",
            Na::Lost => "lost",
            Na::Undefined => "not defined",
        }
    }
}

impl Cell {
    /// An unsigned integer.
    pub fn int(value: u64) -> Cell {
        Cell::Int(value.into())
    }
    /// A number, or not recorded.
    pub fn recorded(value: Option<u64>) -> Cell {
        value.map_or(Cell::Na(Na::NotRecorded), Cell::int)
    }
    /// A float, or not recorded. A value that is not finite is not known.
    pub fn float(value: Option<f64>) -> Cell {
        value.filter(|v| v.is_finite()).map_or(Cell::Na(Na::NotRecorded), Cell::Float)
    }
    /// Why it is not known, if it is not. A float that is not finite is no measurement either.
    pub fn na(&self) -> Option<Na> {
        match self {
            Cell::Na(reason) => Some(*reason),
            Cell::Float(f) if !f.is_finite() => Some(Na::NotRecorded),
            _ => None,
        }
    }
    /// The number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Cell::Int(i) => Some(*i as f64),
            Cell::Float(f) => Some(*f).filter(|f| f.is_finite()),
            _ => None,
        }
    }
}
