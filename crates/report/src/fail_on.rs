//! `--fail-on`: conditions on the rows of a comparison, for gates in CI.
//!
//! ```text
//! EXPR      := CLAUSE (("or" | ",") CLAUSE)*
//! CLAUSE    := ROWS OP VALUE               the value itself:              reclaim.efficiency < 80
//!            | ROWS OP SIGN PERCENT        its change from the baseline:  vmscan.direct_reclaims > +10%
//!            | ROWS ["significant"] ("worse" | "better" | "changed") [">" PERCENT]
//! ROWS      := "any" | [TABLE "."] KEY     `*` stands for any characters, dots included, `?` for one
//! OP        := "<" | "<=" | ">" | ">=" | "=" | "!="
//! ```
//!
//! A change is (new - old) / old, whatever gain a table prints; from 0 it is infinite. It is tested in every column but
//! the baseline. So is a value, unless there is only the baseline. `worse` and `better` follow the direction that a row
//! prefers, `changed` needs none. Keys are those of [`quantities`](crate::quantities).
//!
//! `significant` asks for the test over several runs at 5 %. p is adjusted by Holm for the rows that the clause names; for
//! `any` for the rows of each table, as it is printed. Where there are too few runs for any of them to be significant, the
//! expression is refused with the number of runs that it needs: a gate that cannot close is none.
//!
//! A row that is n/a decides nothing. Where a clause names one row, this is reported ([`Outcome::undecided`]), so that a
//! gate does not pass only because an event was not recorded.

use crate::compare::{Comparison, JoinedBody, Row, Value};
use crate::gain::Verdict;
use crate::suggest::near;
use crate::{quantities, renamed, statistics};
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
    /// `KEY` or `TABLE.KEY`, with wildcards.
    Named(String),
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
        let named: Vec<(&str, &Row)> =
            rows(comparison).filter(|(table, row)| clause.rows.contains(table, &row.key)).collect();
        if named.is_empty() {
            return Err(error(clause.rows.unknown(comparison)));
        }
        let significant = matches!(clause.condition, Condition::Direction { significant: true, .. });
        for column in usize::from(columns > 1)..columns {
            let sure = significant.then(|| sure(&clause.rows, comparison, &named, column)).transpose();
            let sure = sure.map_err(&error)?;
            for (i, (table, row)) in named.iter().enumerate() {
                let (Some(base), Some(value)) = (row.values.first(), row.values.get(column)) else { continue };
                let place = format!("{table}.{} in {}", row.key, comparison.columns[column]);
                match clause.condition.holds(value, sure.as_ref().is_none_or(|sure| sure[i])) {
                    Some(true) if columns > 1 => out.matched.push(format!("{place}: {}", described(base, value))),
                    Some(true) => out.matched.push(format!("{place}: {}", number(value))),
                    Some(false) => {}
                    None if clause.rows.is_one() => out.undecided.push(format!("{place}: {}", described(base, value))),
                    None => {}
                }
            }
        }
        Ok(())
    }

    fn error(&self, at: usize, message: String) -> FailOnError {
        FailOnError { text: self.text.clone(), column: at + 1, message }
    }
}

/// Which of the rows differ significantly in a column, or why none can.
fn sure(rows: &Rows, comparison: &Comparison, named: &[(&str, &Row)], column: usize) -> Result<Vec<bool>, String> {
    let runs = |column: usize| comparison.inputs.iter().filter(|input| input.column == column).count();
    let (first, second) = (runs(0), runs(column));
    // Rows that are tested together: all that are named, or those of each table.
    let tested = |row: &Row| row.values.get(column).is_some_and(|value| value.test.is_some());
    let of = |table: &str| match rows {
        Rows::Any => named.iter().filter(|(other, row)| *other == table && tested(row)).count(),
        Rows::Named(_) => named.iter().filter(|(_, row)| tested(row)).count(),
    };
    let least = named.iter().filter(|(_, row)| tested(row)).map(|(table, _)| of(table)).min();
    let family = least.unwrap_or(1).max(1);
    let reached = statistics::smallest_p(first, second) * family as f64 <= 1.0 - statistics::LEVEL;
    // Runs that are all equal are no test, and need no more of them.
    let single = first.min(second) < 2;
    if single || (least.is_some() && !reached) {
        let how = match (single, family) {
            (true, _) => "one run on a side is no test".to_owned(),
            (false, 1) => format!(
                "{first} and {second} runs can show no difference: p is at least {:.2}",
                statistics::smallest_p(first, second)
            ),
            (false, n) => format!("{first} and {second} runs can show no difference among {n} rows"),
        };
        let needed = statistics::runs_needed(family);
        return Err(format!("{how}; significance needs {needed} runs of each (NAME=RUN,RUN,...)"));
    }
    let tests = || named.iter().map(|(_, row)| row.values.get(column).and_then(|value| value.test));
    Ok(match rows {
        Rows::Any => tests().map(|test| test.is_some_and(|test| test.significant())).collect(),
        Rows::Named(_) => {
            let p: Vec<f64> = tests().flatten().map(|test| test.p).collect();
            let mut adjusted = statistics::holm(&p).into_iter();
            let below = |p: f64| p < 1.0 - statistics::LEVEL;
            tests().map(|test| test.is_some() && adjusted.next().is_some_and(below)).collect()
        }
    })
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

/// Names that a message suggests.
const SUGGESTED: usize = 3;

impl Rows {
    fn contains(&self, in_table: &str, row: &str) -> bool {
        match self {
            Rows::Any => true,
            Rows::Named(name) => glob(name, row) || glob(name, &quantities::key(in_table, row)),
        }
    }

    fn is_one(&self) -> bool {
        matches!(self, Rows::Named(name) if !name.contains(['*', '?']))
    }

    /// Why nothing matched, with the nearest names.
    fn unknown(&self, comparison: &Comparison) -> String {
        let Rows::Named(wanted) = self else { return "the comparison has no rows".to_owned() };
        let (table, key) = wanted.rsplit_once('.').map_or((None, wanted.as_str()), |(table, key)| (Some(table), key));
        if let Some(new) = renamed::row(table, key) {
            return format!("row '{wanted}' is now '{new}'");
        }
        let full: Vec<String> = rows(comparison).map(|(table, row)| quantities::key(table, &row.key)).collect();
        let whole = || full.iter().map(String::as_str);
        // Without a table a key is compared with keys.
        let keys = || rows(comparison).map(|(_, row)| row.key.as_str());
        let mut found = if table.is_some() { near(wanted, whole()) } else { near(wanted, keys()) };
        if found.is_empty() {
            found = whole().filter(|key| shares_a_part(wanted, key)).collect();
        }
        found.dedup();
        let quoted: Vec<String> = found.iter().take(SUGGESTED).map(|name| format!("'{name}'")).collect();
        match quoted.as_slice() {
            [] => format!("unknown row '{wanted}'; `mmtwin report INPUT --keys` lists all"),
            [one] => format!("unknown row '{wanted}', did you mean {one}?"),
            [first @ .., last] => format!("unknown row '{wanted}', did you mean {} or {last}?", first.join(", ")),
        }
    }
}

/// True if the last part of a name, behind its last dot, is that of a key, or the first with another one.
fn shares_a_part(wanted: &str, key: &str) -> bool {
    let parts = |name: &str| name.split(['.', '_']).map(str::to_owned).collect::<Vec<_>>();
    let (wanted, key) = (parts(wanted), parts(key));
    wanted.iter().filter(|part| part.len() > 2 && key.contains(part)).count() * 2 > wanted.len()
}

impl Condition {
    /// Whether it holds, where the difference is as sure as the clause wants it; `None` if it cannot be told.
    fn holds(self, value: &Value, sure: bool) -> Option<bool> {
        match self {
            Condition::Value { operator, limit } => Some(operator.holds(value.cell.number()?, limit)),
            Condition::Change { operator, percent } => Some(operator.holds(value.change?, percent)),
            Condition::Direction { direction, beyond, .. } => {
                let percent = value.change?;
                let wanted = match direction {
                    Direction::Changed => percent != 0.0,
                    Direction::Worse => value.verdict == Some(Verdict::Worse),
                    Direction::Better => value.verdict == Some(Verdict::Better),
                };
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
        assert!(error.message.contains("no test; significance needs 4 runs of each"), "{error}");
    }

    /// 3 and 3 runs cannot go below p = 0.1: the gate would never close.
    #[test]
    fn too_few_runs_are_refused_with_the_number_that_is_needed() {
        let runs = |from: i128, n: i128| (0..n).map(|i| report(from + i, from as f64 + i as f64, None)).collect();
        let comparison = |n| compare(vec![("old".into(), runs(100, n)), ("new".into(), runs(200, n))]);
        let evaluate = |text: &str, n| FailOn::parse(text).unwrap().evaluate(&comparison(n));
        let error = evaluate("vmscan.direct_reclaims significant worse", 3).unwrap_err();
        let message = "3 and 3 runs can show no difference: p is at least 0.10; significance needs 4 runs of each";
        assert!(error.message.starts_with(message), "{}", error.message);
        assert_eq!(evaluate("vmscan.direct_reclaims significant worse", 4).unwrap().matched.len(), 1);
        // Two rows that are named together need more than one.
        let error = evaluate("*e* significant changed", 4).unwrap_err();
        assert!(error.message.contains("among 2 rows; significance needs 5 runs of each"), "{}", error.message);
        assert_eq!(evaluate("*e* significant changed", 5).unwrap().matched.len(), 2);
    }

    #[test]
    fn names_may_have_dots_and_unknown_ones_suggest_several() {
        let row = |key: &str| {
            let mut rows = match report(1, 1.0, None).tables.remove(1).body {
                Body::Metric(rows) => rows,
                body => panic!("{body:?}"),
            };
            rows[0].key = key.into();
            rows.remove(0)
        };
        let rows = ["memory.some", "memory.full", "io.some"].map(row).into();
        let table = Table { name: "psi".into(), title: "".into(), note: "".into(), body: Body::Metric(rows) };
        let one = crate::compare::single(Report { tables: vec![table], ..Report::default() });
        let evaluate = |text: &str| FailOn::parse(text).unwrap().evaluate(&one);
        assert_eq!(evaluate("psi.memory.* > 0").unwrap().matched.len(), 2);
        assert_eq!(evaluate("psi.*.some > 0").unwrap().matched.len(), 2);
        assert_eq!(evaluate("memory.full > 0").unwrap().matched.len(), 1);
        let error = evaluate("psi.memory.soem > 0").unwrap_err();
        assert!(error.message.ends_with("did you mean 'psi.memory.some' or 'psi.memory.full'?"), "{}", error.message);
        let error = evaluate("memory.sull > 0").unwrap_err();
        assert!(error.message.ends_with("did you mean 'psi.memory.full'?"), "{}", error.message);
        let error = evaluate("nothing.of_this > 0").unwrap_err();
        assert!(error.message.ends_with("`mmtwin report INPUT --keys` lists all"), "{}", error.message);
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
            ("x(y < 5", 2, "expected a row, found 'x(y'"),
        ] {
            let error = FailOn::parse(text).unwrap_err();
            assert_eq!(error.column, column, "{text}: {}", error.message);
            assert!(error.message.contains(message), "{text}: {}", error.message);
        }
        let error = FailOn::parse("any worse or vmscan.direct_reclaim > 5").unwrap().evaluate(&two()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "--fail-on, column 14: unknown row 'vmscan.direct_reclaim', did you mean 'vmscan.direct_reclaims'?\n\
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
