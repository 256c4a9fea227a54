//! Reads the grammar of `--fail-on`. Every error points at its column and says what was expected there.

use super::{Clause, Condition, Direction, FailOnError, Operator, Rows};
use crate::quantities::is_part;
use crate::suggest::nearest;

#[derive(Clone, Copy)]
struct Word<'a> {
    text: &'a str,
    /// Characters before it.
    at: usize,
}

/// Splits at blanks, commas and operators.
fn words(text: &str) -> Vec<Word<'_>> {
    #[derive(PartialEq)]
    enum Class {
        Blank,
        Comma,
        Operator,
        Other,
    }
    let class = |c: char| match c {
        c if c.is_whitespace() => Class::Blank,
        ',' => Class::Comma,
        '<' | '>' | '=' | '!' => Class::Operator,
        _ => Class::Other,
    };
    let chars: Vec<(usize, char)> = text.char_indices().collect();
    let mut words = Vec::new();
    let mut at = 0;
    for run in chars.chunk_by(|a, b| class(a.1) == class(b.1) && class(a.1) != Class::Comma) {
        if let (Some(first), Some(last)) = (run.first(), run.last())
            && class(first.1) != Class::Blank
        {
            let end = last.0 + last.1.len_utf8();
            words.extend(text.get(first.0..end).map(|text| Word { text, at }));
        }
        at += run.len();
    }
    words
}

/// Reads the clauses of an expression.
pub(super) fn clauses(text: &str) -> Result<Vec<Clause>, FailOnError> {
    let mut parser = Parser { text, words: words(text), next: 0 };
    let mut clauses = vec![parser.clause()?];
    while let Some(word) = parser.take() {
        if word.text != "or" && word.text != "," {
            return Err(parser.error(word.at, format!("expected 'or' or the end, found '{}'", word.text)));
        }
        clauses.push(parser.clause()?);
    }
    Ok(clauses)
}

struct Parser<'a> {
    text: &'a str,
    words: Vec<Word<'a>>,
    next: usize,
}

const DIRECTIONS: [&str; 4] = ["significant", "worse", "better", "changed"];

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<Word<'a>> {
        self.words.get(self.next).copied()
    }

    fn take(&mut self) -> Option<Word<'a>> {
        let word = self.peek();
        self.next += 1;
        word
    }

    fn expect(&mut self, what: &str) -> Result<Word<'a>, FailOnError> {
        let end = self.text.chars().count();
        self.take().ok_or_else(|| self.error(end, format!("expected {what}, found the end")))
    }

    fn error(&self, at: usize, message: String) -> FailOnError {
        FailOnError { text: self.text.to_owned(), column: at + 1, message }
    }

    fn clause(&mut self) -> Result<Clause, FailOnError> {
        let word = self.expect("a row such as vmscan.direct_reclaims, or 'any'")?;
        let name = |c: char| is_part(c) || "*?".contains(c);
        if let Some(bad) = word.text.chars().position(|c| !name(c)) {
            return Err(self.error(word.at + bad, format!("expected a row, found '{}'", word.text)));
        }
        let rows = if word.text == "any" { Rows::Any } else { Rows::Named(word.text.to_owned()) };
        Ok(Clause { rows, condition: self.condition()?, at: word.at })
    }

    fn condition(&mut self) -> Result<Condition, FailOnError> {
        let word = self.expect("a comparison such as '> +10%', or 'worse'")?;
        if let Some(operator) = Operator::of(word.text) {
            return self.comparison(operator);
        }
        let significant = word.text == "significant";
        let word = if significant { self.expect("'worse', 'better' or 'changed'")? } else { word };
        let direction = match word.text {
            "worse" => Direction::Worse,
            "better" => Direction::Better,
            "changed" => Direction::Changed,
            other => {
                let near = nearest(other, DIRECTIONS.into_iter());
                let hint = near.map_or(String::new(), |near| format!(", did you mean '{near}'?"));
                let expected = "expected <, <=, >, >=, =, !=, 'worse', 'better', 'changed' or 'significant'";
                return Err(self.error(word.at, format!("{expected}, found '{other}'{hint}")));
            }
        };
        let mut beyond = 0.0;
        if let Some(word) = self.peek().filter(|word| Operator::of(word.text).is_some()) {
            if word.text != ">" {
                return Err(self.error(word.at, format!("after '{}' only '>' makes sense", direction.word())));
            }
            self.next += 1;
            let limit = self.expect("a percentage such as 5%")?;
            let percent = limit.text.strip_suffix('%').and_then(|n| n.parse().ok()).filter(|p: &f64| *p >= 0.0);
            beyond = percent.ok_or_else(|| {
                self.error(limit.at, format!("expected a percentage such as 5%, found '{}'", limit.text))
            })?;
        }
        Ok(Condition::Direction { significant, direction, beyond })
    }

    fn comparison(&mut self, operator: Operator) -> Result<Condition, FailOnError> {
        let word = self.expect("a number, or a change such as +10%")?;
        let (digits, percent) = word.text.strip_suffix('%').map_or((word.text, false), |digits| (digits, true));
        let finite = digits.parse::<f64>().ok().filter(|number| number.is_finite());
        let Some(number) = finite else {
            let message = format!("expected a number, or a change such as +10%, found '{}'", word.text);
            return Err(self.error(word.at, message));
        };
        match (percent, digits.starts_with(['+', '-'])) {
            (true, true) => Ok(Condition::Change { operator, percent: number }),
            (true, false) => Err(self.error(
                word.at,
                format!("write '+{digits}%' for a change from the baseline, '{digits}' for the value itself"),
            )),
            (false, _) => Ok(Condition::Value { operator, limit: number }),
        }
    }
}
