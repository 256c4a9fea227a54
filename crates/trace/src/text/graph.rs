//! function_graph text: calls with their durations, and events printed as comments between them.
//!
//! A line is ` CPU)  MARK DURATION us |  BODY`, with optional columns for the absolute time, the task and the
//! flags. A body is `name();` (a call without inner calls), `name() {` and later `}` (which carries the duration),
//! or a comment `/* event: payload */`. Which name a `}` closes follows from the indentation within its task; a task
//! change is announced by `CPU)  OLD  =>  NEW`. A `}` whose start was not seen carries its name as a comment.

use super::values::decimal;
use std::collections::BTreeMap;

/// What a line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// A call ended: CPU, nanoseconds, function; `None`: the begin was not seen.
    Call { cpu: u32, nanoseconds: u64, function: Option<String> },
    /// A comment, without `/*` and `*/`.
    Comment { cpu: u32, ts: Option<u64>, task: Option<String>, text: &'a [u8] },
    /// Nothing to report: a start, a task change, a line of dashes.
    Other,
}

/// The calls that are open.
#[derive(Default)]
pub(super) struct Graph {
    /// Task that runs on a CPU, as `comm-pid` (the comm is cut by the kernel).
    tasks: BTreeMap<u32, String>,
    /// Open calls by task: (indentation, function). Before a CPU's first task change the key is `CPU)`.
    open: BTreeMap<String, Vec<(usize, String)>>,
}

/// Tasks whose open calls are remembered; an input with more made them up.
const TASKS: usize = 1 << 16;
/// Kernel stacks are no deeper.
const DEPTH: usize = 512;

impl Graph {
    /// Reads a line; `None`: it is not of this style.
    pub fn read<'a>(&mut self, line: &'a [u8]) -> Option<Line<'a>> {
        let line = line.trim_ascii_end();
        if line.len() >= 10 && line.trim_ascii().iter().all(|b| *b == b'-') {
            return Some(Line::Other);
        }
        let (ts, rest) = absolute_time(line);
        let rest = rest.trim_ascii_start();
        let (cpu, close) = decimal(rest, 0)?;
        let cpu = u32::try_from(cpu).ok()?;
        let rest = rest.get(close..)?.strip_prefix(b")")?;
        if let Some(arrow) = memchr::memmem::find(rest, b" => ")
            && !rest.contains(&b'|')
        {
            self.switch(cpu, &rest[..arrow], &rest[arrow + 4..]);
            return Some(Line::Other);
        }
        let (columns, body) = body(rest)?;
        let indent = body.iter().take_while(|b| **b == b' ').count();
        let body = &body[indent..];
        if let Some(task) = columns.split(|b| *b == b'|').map(<[u8]>::trim_ascii).find(|c| is_task(c)) {
            self.tasks.insert(cpu, String::from_utf8_lossy(task).into());
        }
        if let Some(comment) = body.strip_prefix(b"/*") {
            let text = comment.strip_suffix(b"*/").unwrap_or(comment).trim_ascii();
            return Some(Line::Comment { cpu, ts, task: self.tasks.get(&cpu).cloned(), text });
        }
        let calls = self.calls(cpu)?;
        while calls.last().is_some_and(|(i, _)| *i > indent || (*i == indent && !body.starts_with(b"}"))) {
            calls.pop();
        }
        if let Some(tail) = body.strip_prefix(b"}") {
            let opened = calls.pop_if(|(i, _)| *i == indent).map(|(_, name)| name);
            let Some(nanoseconds) = duration(columns) else { return Some(Line::Other) };
            return Some(Line::Call { cpu, nanoseconds, function: tail_name(tail).or(opened) });
        }
        let name = &body[..memchr::memchr(b'(', body)?];
        let name = String::from_utf8_lossy(name).into_owned();
        if body.ends_with(b"{") {
            if calls.len() < DEPTH {
                calls.push((indent, name));
            }
            return Some(Line::Other);
        }
        let Some(nanoseconds) = duration(columns) else { return Some(Line::Other) };
        Some(Line::Call { cpu, nanoseconds, function: Some(name) })
    }

    /// A task change. What was open on the CPU before its first change belongs to the task that leaves.
    fn switch(&mut self, cpu: u32, from: &[u8], to: &[u8]) {
        let name = |task: &[u8]| String::from_utf8_lossy(task.trim_ascii()).into_owned();
        if !self.tasks.contains_key(&cpu)
            && let Some(calls) = self.open.remove(&format!("{cpu})"))
        {
            self.open.insert(name(from), calls);
        }
        self.tasks.insert(cpu, name(to));
    }

    fn calls(&mut self, cpu: u32) -> Option<&mut Vec<(usize, String)>> {
        let key = self.tasks.get(&cpu).cloned().unwrap_or_else(|| format!("{cpu})"));
        if self.open.len() >= TASKS && !self.open.contains_key(&key) {
            return None;
        }
        Some(self.open.entry(key).or_default())
    }
}

/// `SECONDS.FRACTION |` before the CPU.
fn absolute_time(line: &[u8]) -> (Option<u64>, &[u8]) {
    let read = || {
        let rest = line.trim_ascii_start();
        let (seconds, end) = decimal(rest, 0)?;
        let fraction = rest.get(end..)?.strip_prefix(b".")?;
        let (micros, digits) = decimal(fraction, 0)?;
        let behind = fraction[digits..].trim_ascii_start().strip_prefix(b"|")?;
        let ts = seconds.checked_mul(1_000_000_000)?.checked_add(scaled(micros, digits, 9)?)?;
        Some((Some(ts), behind))
    };
    read().unwrap_or((None, line))
}

/// A fraction of `digits` digits in units of the `places`-th.
fn scaled(value: u64, digits: usize, places: usize) -> Option<u64> {
    value.checked_mul(10u64.checked_pow(u32::try_from(places.checked_sub(digits)?).ok()?)?)
}

/// Splits at the `|` before the body: the first one with a call, a closing brace or a comment behind it.
fn body(rest: &[u8]) -> Option<(&[u8], &[u8])> {
    memchr::memchr_iter(b'|', rest).find_map(|bar| {
        let body = &rest[bar + 1..];
        let text = body.trim_ascii_start();
        let column = text.split(|b| *b == b'|').next().unwrap_or(text);
        let is_body = text.starts_with(b"/*") || text.starts_with(b"}") || column.contains(&b'(');
        is_body.then_some((&rest[..bar], body))
    })
}

/// Nanoseconds of `N.NNN us` in the columns.
fn duration(columns: &[u8]) -> Option<u64> {
    let number = columns.trim_ascii_end().strip_suffix(b"us")?.trim_ascii_end();
    let start = number.iter().rposition(|b| !b.is_ascii_digit() && *b != b'.').map_or(0, |at| at + 1);
    let (micros, end) = decimal(&number[start..], 0)?;
    let nanos = match number[start..].get(end + 1..) {
        Some(fraction) if !fraction.is_empty() => {
            let (value, digits) = decimal(fraction, 0)?;
            scaled(value, digits, 3)?
        }
        _ => 0,
    };
    micros.checked_mul(1000)?.checked_add(nanos)
}

/// `comm-pid`.
fn is_task(column: &[u8]) -> bool {
    let digits = column.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    digits > 0 && column[..column.len() - digits].ends_with(b"-")
}

/// The name in `} /* name */`.
fn tail_name(tail: &[u8]) -> Option<String> {
    let tail = tail.trim_ascii_start();
    let text = tail.strip_prefix(b"/*")?.trim_ascii();
    let word = text.split(|b| *b == b' ').next()?;
    let is_name = word.first().is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_') && !word.contains(&b'=');
    is_name.then(|| String::from_utf8_lossy(word).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<Line<'_>> {
        let mut graph = Graph::default();
        text.lines().filter(|l| !l.is_empty()).map(|l| graph.read(l.as_bytes()).expect(l)).collect()
    }

    fn call(cpu: u32, nanoseconds: u64, function: &str) -> Line<'static> {
        Line::Call { cpu, nanoseconds, function: Some(function.into()) }
    }

    #[test]
    fn calls_nest_by_indentation_and_task() {
        let got = read(concat!(
            " 1)               |  outer() {\n",
            " 1) + 78.895 us   |    leaf();\n",
            " 1)               |    inner() {\n",
            " ------------------------------------------\n",
            " 1)   one-1   =>   two-2  \n",
            " ------------------------------------------\n\n",
            " 1)               |  other() {\n",
            " 1) * 12615.61 us |  }\n",
            " 2)   two-2   =>   one-1  \n",
            " 2)   1.000 us    |    }\n",
            " 2) $ 2000000 us  |  }\n",
        ));
        let calls: Vec<_> = got.into_iter().filter(|l| *l != Line::Other).collect();
        let expected = [
            call(1, 78_895, "leaf"),
            call(1, 12_615_610, "other"),
            call(2, 1000, "inner"),
            call(2, 2_000_000_000, "outer"),
        ];
        assert_eq!(calls, expected);
    }

    #[test]
    fn optional_columns() {
        let got = read(concat!(
            "  1234.567890 |   0)  bash-77  |  d..1. |   1.234 us    |  f(a=1);\n",
            "  1234.567890 |   0)  bash-77  |               |  /* e: flags=A|B */\n",
            " 0)   2.000 us    |  } /* g ret=0x0 */\n",
            " 0)   2.000 us    |  }\n",
        ));
        assert_eq!(got[0], call(0, 1234, "f"));
        let task = Some("bash-77".to_string());
        assert_eq!(got[1], Line::Comment { cpu: 0, ts: Some(1_234_567_890_000), task, text: b"e: flags=A|B" });
        assert_eq!(got[2], call(0, 2000, "g"));
        assert_eq!(got[3], Line::Call { cpu: 0, nanoseconds: 2000, function: None });
    }

    #[test]
    fn other_text_is_refused() {
        for line in ["", "hello", "1)", " 1) |", " 1)  us |  x", "12", " 1) 3 us |", "99999999999)  |  f();", " 0) | )"]
        {
            assert_eq!(Graph::default().read(line.as_bytes()), None, "{line}");
        }
    }
}
