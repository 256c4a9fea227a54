//! `--fail-on`: conditions on the rows of a comparison, for gates in CI.
//!
//! ```text
//! EXPR      := CLAUSE (("or" | ",") CLAUSE)*
//! CLAUSE    := ROWS OP VALUE               the value itself:              reclaim.efficiency < 80
//!            | ROWS OP SIGN PERCENT        its change from the baseline:  vmscan.direct_reclaims > +10%
//!            | ROWS ["significant"] ("worse" | "better" | "changed") [">" PERCENT]
//! ROWS      := "any" | [TABLE "."] KEY     in either `*` stands for any characters, `?` for one
//! OP        := "<" | "<=" | ">" | ">=" | "=" | "!="
//! ```
//!
//! A change is (new - old) / old, whatever gain a table prints; from 0 it is infinite. It is tested in every column but
//! the baseline. So is a value, unless there is only the baseline. `significant` asks for
//! the test over several runs (p adjusted below 5 %) and is refused where every column is a single run. `worse` and `better`
//! follow the direction that a row prefers, `changed` needs none.
//!
//! A row that is n/a decides nothing. Where a clause names one row, this is reported ([`Outcome::undecided`]), so that a
//! gate does not pass only because an event was not recorded.

use crate::compare::{Comparison, JoinedBody, Row, Value};
use crate::gain::Verdict;
use crate::renamed;
use crate::suggest::nearest;
use mmtwin_event::words::glob;
use std::fmt;

mod parse;

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub struct FailOn {
    text: String,
    clauses: Vec<Clause>,
}

#[derive(Clone, Debug, PartialEq)]
struct Clause {
    rows: Rows,
    condition: Condition,
    /// Where the rows stand in the text, from 0.
    at: usize,
}

#[derive(Clone, Debug, PartialEq)]
enum Rows {
    Any,
    Named { table: Option<String>, key: String },
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Condition {
    Value { operator: Operator, limit: f64 },
    Change { operator: Operator, percent: f64 },
    Direction { significant: bool, direction: Direction, beyond: f64 },
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operator {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Direction {
    Worse,
    Better,
    Changed,
}

/// An expression that cannot be read or does not fit the comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct FailOnError {
    /// The expression.
    pub text: String,
    /// Column of the fault, from 1, in characters.
    pub column: usize,
    /// What is wrong and what is expected.
    pub message: String,
}

impl fmt::Display for FailOnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "--fail-on, column {}: {}", self.column, self.message)?;
        writeln!(f, "  {}", self.text)?;
        write!(f, "  {:>width$}", "^", width = self.column)
    }
}

impl std::error::Error for FailOnError {}

/// What an expression found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// The rows that meet a clause, in words: `vmscan.direct_reclaims in new: 443 -> 1568 (+254.0%)`.
    pub matched: Vec<String>,
    /// Named rows without a value, in words; the expression could not be decided for them.
    pub undecided: Vec<String>,
}

impl FailOn {
    /// Reads an expression.
    pub fn parse(text: &str) -> Result<FailOn, FailOnError> {
        Ok(FailOn { text: text.to_owned(), clauses: parse::clauses(text)? })
    }

    /// Tests every clause. An error if a clause names a row or table that the comparison lacks, or asks for a change
    /// where there is nothing to compare with.
    pub fn evaluate(&self, comparison: &Comparison) -> Result<Outcome, FailOnError> {
        let mut outcome = Outcome::default();
        for clause in &self.clauses {
            self.evaluate_clause(clause, comparison, &mut outcome)?;
        }
        Ok(outcome)
    }

    fn evaluate_clause(&self, clause: &Clause, comparison: &Comparison, out: &mut Outcome) -> Result<(), FailOnError> {
        let columns = comparison.columns.len();
        let error = |message: String| self.error(clause.at, message);
        if columns < 2 && !matches!(clause.condition, Condition::Value { .. }) {
            return Err(error("a change needs a baseline, but there is only one column".to_owned()));
        }
        let significant = matches!(clause.condition, Condition::Direction { significant: true, .. });
        if significant && !rows(comparison).any(|(_, row)| row.values.iter().filter(|v| v.runs > 1).count() > 1) {
            return Err(error("significance needs several runs of both columns (NAME=RUN,RUN,...)".to_owned()));
        }
        let first = usize::from(columns > 1);
        let mut found = false;
        for (table, row) in rows(comparison) {
            if !clause.rows.contains(table, &row.key) {
                continue;
            }
            found = true;
            let Some(base) = row.values.first() else { continue };
            for (value, column) in row.values.iter().zip(&comparison.columns).skip(first) {
                let place = format!("{table}.{} in {column}", row.key);
                match clause.condition.holds(value) {
                    Some(true) if columns > 1 => out.matched.push(format!("{place}: {}", described(base, value))),
                    Some(true) => out.matched.push(format!("{place}: {}", number(value))),
                    Some(false) => {}
                    None if clause.rows.is_one() => out.undecided.push(format!("{place}: {}", described(base, value))),
                    None => {}
                }
            }
        }
        if found { Ok(()) } else { Err(error(clause.rows.unknown(comparison))) }
    }

    fn error(&self, at: usize, message: String) -> FailOnError {
        FailOnError { text: self.text.clone(), column: at + 1, message }
    }
}

fn rows(comparison: &Comparison) -> impl Iterator<Item = (&str, &Row)> {
    comparison.tables.iter().flat_map(|table| {
        let rows = if let JoinedBody::Metric(rows) = &table.body { rows.as_slice() } else { &[] };
        rows.iter().map(|row| (table.name.as_str(), row))
    })
}

fn number(value: &Value) -> String {
    match (value.cell.number(), value.cell.na()) {
        (Some(number), _) => number.to_string(),
        (None, Some(na)) => format!("n/a ({})", na.phrase()),
        (None, None) => "not a number".to_owned(),
    }
}

fn described(base: &Value, value: &Value) -> String {
    let change = match value.change {
        Some(percent) if percent.is_finite() => format!(" ({percent:+.1}%)"),
        Some(_) => " (from 0)".to_owned(),
        None => String::new(),
    };
    format!("{} -> {}{change}", number(base), number(value))
}

impl Rows {
    fn contains(&self, in_table: &str, row: &str) -> bool {
        match self {
            Rows::Any => true,
            Rows::Named { table, key } => table.as_deref().is_none_or(|table| glob(table, in_table)) && glob(key, row),
        }
    }

    fn is_one(&self) -> bool {
        matches!(self, Rows::Named { table, key }
            if !key.contains(['*', '?']) && !table.as_deref().is_some_and(|table| table.contains(['*', '?'])))
    }

    /// Why nothing matched, with the nearest names.
    fn unknown(&self, comparison: &Comparison) -> String {
        let Rows::Named { table, key } = self else { return "the comparison has no rows".to_owned() };
        let (wanted, known): (String, Vec<String>) = match table {
            Some(table) => (
                format!("{table}.{key}"),
                rows(comparison).map(|(table, row)| format!("{table}.{}", row.key)).collect(),
            ),
            None => (key.clone(), rows(comparison).map(|(_, row)| row.key.clone()).collect()),
        };
        if let Some(new) = renamed::row(table.as_deref(), key) {
            return format!("row '{wanted}' is now '{new}'");
        }
        let near = nearest(&wanted, known.iter().map(String::as_str));
        format!("no row '{wanted}'{}", near.map_or(String::new(), |near| format!(", did you mean '{near}'?")))
    }
}

impl Condition {
    /// Whether it holds; `None` if it cannot be told.
    fn holds(self, value: &Value) -> Option<bool> {
        match self {
            Condition::Value { operator, limit } => Some(operator.holds(value.cell.number()?, limit)),
            Condition::Change { operator, percent } => Some(operator.holds(value.change?, percent)),
            Condition::Direction { significant, direction, beyond } => {
                let percent = value.change?;
                let wanted = match direction {
                    Direction::Changed => percent != 0.0,
                    Direction::Worse => value.verdict == Some(Verdict::Worse),
                    Direction::Better => value.verdict == Some(Verdict::Better),
                };
                let sure = !significant || value.test.is_some_and(|test| test.significant());
                Some(wanted && sure && percent.abs() > beyond)
            }
        }
    }
}

impl Operator {
    fn holds(self, a: f64, b: f64) -> bool {
        match self {
            Operator::Less => a < b,
            Operator::LessOrEqual => a <= b,
            Operator::Greater => a > b,
            Operator::GreaterOrEqual => a >= b,
            Operator::Equal => a == b,
            Operator::NotEqual => a != b,
        }
    }

    fn of(word: &str) -> Option<Operator> {
        Some(match word {
            "<" => Operator::Less,
            "<=" => Operator::LessOrEqual,
            ">" => Operator::Greater,
            ">=" => Operator::GreaterOrEqual,
            "=" | "==" => Operator::Equal,
            "!=" => Operator::NotEqual,
            _ => return None,
        })
    }
}

impl Direction {
    fn word(self) -> &'static str {
        match self {
            Direction::Worse => "worse",
            Direction::Better => "better",
            Direction::Changed => "changed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::compare;
    use crate::model::{Better, Body, Cell, Gain, Metric, Na, Report, Table};
    use proptest::prelude::*;

    fn report(direct: i128, efficiency: f64, lost: Option<u64>) -> Report {
        let row = |key: &str, better, value| Metric {
            key: key.into(),
            label: String::new(),
            unit: "".into(),
            better,
            gain: Gain::PercentLower,
            decimals: None,
            value,
            published: None,
        };
        let table = |name: &str, rows| Table {
            name: name.into(),
            title: String::new(),
            note: String::new(),
            body: Body::Metric(rows),
        };
        let vmscan = table(
            "vmscan",
            vec![
                row("direct_reclaims", Better::Lower, Cell::Int(direct)),
                row("lost_thing", Better::Lower, lost.map_or(Cell::Na(Na::NotRecorded), Cell::int)),
            ],
        );
        let reclaim = table("reclaim", vec![row("efficiency", Better::Higher, Cell::Float(efficiency))]);
        Report { tables: vec![vmscan, reclaim], ..Report::default() }
    }

    fn two() -> Comparison {
        compare(vec![("old".into(), vec![report(443, 90.0, None)]), ("new".into(), vec![report(1568, 79.5, None)])])
    }

    fn matched(text: &str) -> Vec<String> {
        FailOn::parse(text).unwrap().evaluate(&two()).unwrap().matched
    }

    #[test]
    fn change_and_value() {
        assert_eq!(matched("vmscan.direct_reclaims > +10%"), ["vmscan.direct_reclaims in new: 443 -> 1568 (+254.0%)"]);
        assert_eq!(matched("direct_reclaims > +254%").len(), 0);
        assert_eq!(matched("direct_reclaims>+253%").len(), 1);
        assert_eq!(matched("reclaim.efficiency < 80"), ["reclaim.efficiency in new: 90 -> 79.5 (-11.7%)"]);
        assert_eq!(matched("reclaim.efficiency < 79.5").len(), 0);
        assert_eq!(matched("reclaim.efficiency <= 79.5").len(), 1);
        assert_eq!(matched("efficiency < -11%").len(), 1);
        assert_eq!(matched("efficiency < -12%, direct_reclaims != 1568 or efficiency = 79.5").len(), 1);
    }

    #[test]
    fn directions() {
        assert_eq!(matched("any worse > 5%").len(), 2);
        assert_eq!(matched("any worse > 12%").len(), 1);
        assert_eq!(matched("*.eff* worse").len(), 1);
        assert_eq!(matched("vmscan.* changed").len(), 1);
        assert_eq!(matched("r?claim.effi?iency worse").len(), 1);
        assert_eq!(matched("any better").len(), 0);
        let error = FailOn::parse("any significant worse").unwrap().evaluate(&two()).unwrap_err();
        assert!(error.message.contains("needs several runs"), "{error}");
    }

    #[test]
    fn significance_over_runs() {
        let runs = |from: i128| (0..6).map(|i| report(from + i, 90.0, None)).collect::<Vec<_>>();
        let comparison = compare(vec![("old".into(), runs(100)), ("new".into(), runs(200))]);
        let outcome = FailOn::parse("any significant worse > 5%").unwrap().evaluate(&comparison).unwrap();
        assert_eq!(outcome.matched, ["vmscan.direct_reclaims in new: 102.5 -> 202.5 (+97.6%)"]);
    }

    #[test]
    fn what_is_not_known_is_told() {
        let outcome = FailOn::parse("vmscan.lost_thing > 5").unwrap().evaluate(&two()).unwrap();
        assert_eq!(outcome.matched.len(), 0);
        let undecided = ["vmscan.lost_thing in new: n/a (not recorded) -> n/a (not recorded)"];
        assert_eq!(outcome.undecided, undecided);
        let from_zero = compare(vec![
            ("old".into(), vec![report(0, 90.0, Some(0))]),
            ("new".into(), vec![report(5, 90.0, Some(0))]),
        ]);
        let outcome = FailOn::parse("vmscan.* > +1000%").unwrap().evaluate(&from_zero).unwrap();
        assert_eq!(outcome.matched, ["vmscan.direct_reclaims in new: 0 -> 5 (from 0)"]);
    }

    #[test]
    fn one_column() {
        let one = crate::compare::single(report(443, 79.0, None));
        let outcome = FailOn::parse("efficiency < 80").unwrap().evaluate(&one).unwrap();
        assert_eq!(outcome.matched, ["reclaim.efficiency in : 79"]);
        let error = FailOn::parse("any worse").unwrap().evaluate(&one).unwrap_err();
        assert!(error.message.contains("only one column"));
    }

    #[test]
    fn errors_point_at_their_place() {
        for (text, column, message) in [
            ("", 1, "expected a row"),
            ("vmscan.x", 9, "expected a comparison"),
            ("vmscan.x > ", 12, "expected a number"),
            ("vmscan.x > ten", 12, "found 'ten'"),
            ("vmscan.x > inf", 12, "expected a number"),
            ("vmscan.x > 10%", 12, "write '+10%' for a change from the baseline, '10' for the value itself"),
            ("any wors > 5%", 5, "did you mean 'worse'?"),
            ("any worse < 5%", 11, "only '>' makes sense"),
            ("any worse > five", 13, "found 'five'"),
            ("x < 5 and y < 6", 7, "expected 'or' or the end, found 'and'"),
            ("x(y) < 5", 2, "expected a row, found 'x(y)'"),
        ] {
            let error = FailOn::parse(text).unwrap_err();
            assert_eq!(error.column, column, "{text}: {}", error.message);
            assert!(error.message.contains(message), "{text}: {}", error.message);
        }
        let error = FailOn::parse("any worse or vmscan.direct_reclaim > 5").unwrap().evaluate(&two()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "--fail-on, column 14: no row 'vmscan.direct_reclaim', did you mean 'vmscan.direct_reclaims'?\n\
             \x20 any worse or vmscan.direct_reclaim > 5\n\
             \x20              ^"
        );
    }

    proptest! {
        #[test]
        fn never_panics(text in "[a-z.*?<>=!+%0-9, éor]{0,40}") {
            if let Ok(expression) = FailOn::parse(&text) {
                let _ = expression.evaluate(&two());
            }
        }
    }
}
