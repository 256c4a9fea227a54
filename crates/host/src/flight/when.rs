//! `--when`: what makes a flight recorder write a recording.
//!
//! ```text
//! EXPR := "psi." RESOURCE "." KIND ["@" CGROUP] ">" PERCENT ["for" TIME]    psi.memory.full@/web > 10% for 5s
//!       | "oom"                                                           a process killed because memory ran out
//!       | "stall" ">" TIME                                                a task in reclaim or compaction for longer
//! RESOURCE := "memory" | "io" | "cpu"        KIND := "some" | "full"
//! ```
//!
//! Every error names the column and what was expected there.

use mmtwin_event::words::{nearest, time_span};
use std::fmt;
use std::time::Duration;

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub struct When {
    /// As the user wrote it.
    pub text: String,
    /// What it means.
    pub condition: Condition,
}

/// What must happen.
#[derive(Clone, Debug, PartialEq)]
pub enum Condition {
    /// Pressure stall information is above a share of the time.
    Pressure(Pressure),
    /// A process was killed because memory ran out.
    OutOfMemory,
    /// A task was in reclaim or compaction for longer than this.
    Stall(Duration),
}

/// A condition on pressure stall information.
#[derive(Clone, Debug, PartialEq)]
pub struct Pressure {
    /// `memory`, `io` or `cpu`.
    pub resource: &'static str,
    /// `some` or `full`.
    pub kind: &'static str,
    /// Cgroup, as a path below the mount or a directory; `None`: the machine.
    pub cgroup: Option<String>,
    /// Share of the time in percent that it must exceed.
    pub percent: f64,
    /// For how long without a break; 0: between two samples.
    pub lasting: Duration,
}

/// An expression that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct WhenError {
    /// The expression.
    pub text: String,
    /// Column, from 1.
    pub column: usize,
    /// What is wrong there.
    pub message: String,
}

impl fmt::Display for WhenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}', column {}: {}", self.text, self.column, self.message)
    }
}

const RESOURCES: [&str; 3] = ["memory", "io", "cpu"];
const KINDS: [&str; 2] = ["some", "full"];

/// A word and the number of characters before it.
type Word<'a> = (usize, &'a str);

/// Words of an expression; `>` is one of its own.
fn words(text: &str) -> Vec<Word<'_>> {
    let class = |c: char| if c.is_whitespace() { 0 } else { 1 + u8::from(c == '>') };
    let chars: Vec<(usize, char)> = text.char_indices().collect();
    let (mut words, mut at) = (Vec::new(), 0);
    for run in chars.chunk_by(|a, b| class(a.1) == class(b.1)) {
        if let (Some(first), Some(last)) = (run.first(), run.last())
            && class(first.1) > 0
        {
            words.extend(text.get(first.0..last.0 + last.1.len_utf8()).map(|word| (at, word)));
        }
        at += run.len();
    }
    words
}

impl std::str::FromStr for When {
    type Err = WhenError;

    fn from_str(text: &str) -> Result<When, WhenError> {
        let mut parser = Parser { text, words: words(text).into_iter() };
        let expected = "'psi.memory.full > 10%', 'oom' or 'stall > 500ms'";
        let (at, word) = parser.next(expected)?;
        let condition = match word {
            "oom" => Condition::OutOfMemory,
            "stall" => {
                parser.greater()?;
                Condition::Stall(parser.time("a time such as 500ms")?)
            }
            other if other.starts_with("psi.") => Condition::Pressure(parser.pressure((at, other))?),
            other => {
                let hint = nearest(other, ["oom", "stall", "psi.memory.full", "psi.memory.some"].into_iter());
                let hint = hint.map_or(String::new(), |hint| format!(", did you mean '{hint}'?"));
                return Err(parser.error(at, format!("expected {expected}, found '{other}'{hint}")));
            }
        };
        match parser.words.next() {
            None => Ok(When { text: text.to_owned(), condition }),
            Some((at, word)) => Err(parser.error(at, format!("expected the end, found '{word}'"))),
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    words: std::vec::IntoIter<Word<'a>>,
}

impl<'a> Parser<'a> {
    fn error(&self, at: usize, message: String) -> WhenError {
        WhenError { text: self.text.to_owned(), column: at + 1, message }
    }

    fn next(&mut self, expected: &str) -> Result<Word<'a>, WhenError> {
        let end = self.text.chars().count();
        self.words.next().ok_or_else(|| self.error(end, format!("expected {expected}, found the end")))
    }

    fn greater(&mut self) -> Result<(), WhenError> {
        match self.next("'>'")? {
            (_, ">") => Ok(()),
            (at, word) => Err(self.error(at, format!("expected '>', found '{word}'"))),
        }
    }

    fn time(&mut self, expected: &str) -> Result<Duration, WhenError> {
        let (at, word) = self.next(expected)?;
        time_span(word).map_err(|why| self.error(at, format!("{why}; found '{word}'")))
    }

    /// What follows `psi.` and is one of a few words; `at` is where it stands.
    fn one_of(&self, at: usize, word: &str, known: &'static [&'static str]) -> Result<&'static str, WhenError> {
        let found = known.iter().find(|known| **known == word);
        let expected = || known.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" or ");
        found.copied().ok_or_else(|| self.error(at, format!("expected {}, found '{word}'", expected())))
    }

    fn pressure(&mut self, (at, word): Word<'a>) -> Result<Pressure, WhenError> {
        let (name, cgroup) = word.split_once('@').map_or((word, None), |(name, cgroup)| (name, Some(cgroup)));
        let mut parts = name.splitn(3, '.').skip(1);
        let resource = parts.next().unwrap_or_default();
        let kind = parts.next().unwrap_or_default();
        let at_kind = at + "psi.".len() + resource.chars().count() + 1;
        let (resource, kind) =
            (self.one_of(at + "psi.".len(), resource, &RESOURCES)?, self.one_of(at_kind, kind, &KINDS)?);
        if cgroup == Some("") {
            return Err(self.error(at + word.chars().count(), "expected a cgroup such as /web, found nothing".into()));
        }
        self.greater()?;
        let (at, word) = self.next("a percentage such as 10%")?;
        let number = word.strip_suffix('%').and_then(|digits| digits.parse::<f64>().ok());
        let percent = number
            .filter(|percent| (0.0..100.0).contains(percent))
            .ok_or_else(|| self.error(at, format!("expected a percentage from 0% to below 100%, found '{word}'")))?;
        let lasting = match self.words.next() {
            None => Duration::ZERO,
            Some((_, "for")) => self.time("a time such as 5s")?,
            Some((at, word)) => return Err(self.error(at, format!("expected 'for' or the end, found '{word}'"))),
        };
        Ok(Pressure { resource, kind, cgroup: cgroup.map(str::to_owned), percent, lasting })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(text: &str) -> Condition {
        text.parse::<When>().unwrap().condition
    }

    #[test]
    fn expressions_are_read() {
        let pressure = |resource, kind, cgroup: Option<&str>, percent, seconds| {
            let (cgroup, lasting) = (cgroup.map(str::to_owned), Duration::from_secs(seconds));
            Condition::Pressure(Pressure { resource, kind, cgroup, percent, lasting })
        };
        assert_eq!(condition("psi.memory.full > 10% for 5s"), pressure("memory", "full", None, 10.0, 5));
        assert_eq!(condition("psi.io.some@/web.slice>0.5%"), pressure("io", "some", Some("/web.slice"), 0.5, 0));
        assert_eq!(condition(" oom "), Condition::OutOfMemory);
        assert_eq!(condition("stall > 500ms"), Condition::Stall(Duration::from_millis(500)));
    }

    #[test]
    fn errors_name_the_column_and_what_was_expected() {
        let message = |text: &str| text.parse::<When>().unwrap_err().to_string();
        let all = [
            ("", "'', column 1: expected 'psi.memory.full > 10%', 'oom' or 'stall > 500ms', found the end"),
            (
                "psi.memroy.full > 1%",
                "'psi.memroy.full > 1%', column 5: expected 'memory' or 'io' or 'cpu', found 'memroy'",
            ),
            ("psi.memory > 1%", "'psi.memory > 1%', column 12: expected 'some' or 'full', found ''"),
            ("psi.memory.full 1%", "'psi.memory.full 1%', column 17: expected '>', found '1%'"),
            ("psi.memory.full >", "'psi.memory.full >', column 18: expected a percentage such as 10%, found the end"),
            (
                "psi.memory.full > 10",
                "'psi.memory.full > 10', column 19: expected a percentage from 0% to below 100%, found '10'",
            ),
            (
                "psi.memory.full > 1% over 5s",
                "'psi.memory.full > 1% over 5s', column 22: expected 'for' or the end, found 'over'",
            ),
            ("psi.io.full@ > 1%", "'psi.io.full@ > 1%', column 13: expected a cgroup such as /web, found nothing"),
            ("oom > 1", "'oom > 1', column 5: expected the end, found '>'"),
            ("stall > 5h", "'stall > 5h', column 9: unknown unit of time `h`; use ns, us, ms, s or m; found '5h'"),
        ];
        for (text, expected) in all {
            assert_eq!(message(text), expected);
        }
        assert!(message("stal > 1s").ends_with("found 'stal', did you mean 'stall'?"));
    }
}
