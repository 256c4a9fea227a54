//! The values of a key: a list `a,b,c`, ranges `A..B:N` and `A..B:N:log`, with the units of scenario keys.

use mmtwin_scenario::units::{Bandwidth, Bytes, Frequency, PageRate, Time};

/// Most values of a range.
const MOST: usize = 10_000;

/// A quantity with units: how it is read and printed, and its units from the largest to the smallest.
struct Kind {
    read: fn(&str) -> Option<u64>,
    print: fn(u64) -> String,
    units: &'static [&'static str],
}

macro_rules! kind {
    ($name:ident, $units:expr) => {
        Kind {
            read: |text| text.parse::<$name>().ok().map(|value| value.0),
            print: |value| $name(value).to_string(),
            units: &$units,
        }
    };
}

const KINDS: [Kind; 5] = [
    kind!(Bytes, ["TiB", "GiB", "MiB", "KiB", "B"]),
    kind!(Time, ["h", "min", "s", "ms", "us", "ns"]),
    kind!(PageRate, ["G pages/s", "M pages/s", "k pages/s", "pages/s"]),
    kind!(Bandwidth, ["TB/s", "GB/s", "MB/s", "kB/s", "B/s"]),
    kind!(Frequency, ["GHz", "MHz", "kHz", "Hz"]),
];

/// All values that a text stands for, each as `--set` takes it.
///
/// # Errors
/// What is wrong with it, in words.
pub fn values(text: &str) -> Result<Vec<String>, String> {
    let mut values: Vec<String> = Vec::new();
    for (number, part) in split(text).into_iter().enumerate() {
        match part.trim() {
            "" => return Err(format!("value {} is empty", number + 1)),
            part => match range(part) {
                Some(range) => values.extend(range?),
                None => values.push(part.into()),
            },
        }
    }
    let twice = values.iter().enumerate().find(|(at, value)| values[..*at].contains(value));
    match twice {
        Some((_, value)) => Err(format!("`{value}` is there twice")),
        None => Ok(values),
    }
}

/// A value as a number of the smallest unit (bytes, ns, pages/s, B/s, Hz; of percentages the percentage); `None`: it is a
/// word.
pub fn number(text: &str) -> Option<f64> {
    let text = text.trim().trim_matches(['"', '\'']);
    let known = KINDS.iter().find_map(|kind| (kind.read)(text)).map(|value| value as f64);
    known.or_else(|| plain(text.strip_suffix('%').map_or(text, str::trim_end)))
}

/// Only digits and a point: `f64` would also read words such as `inf`.
fn plain(text: &str) -> Option<f64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let known = digits.starts_with(|c: char| c.is_ascii_digit());
    if known && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.') { text.parse().ok() } else { None }
}

/// Splits at commas that are in no quotes and no brackets.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut quote) = (Vec::new(), 0, 0usize, None);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) => quote = Some(open).filter(|open| *open != c),
            (None, '"' | '\'') => quote = Some(c),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// `None`: it is no range.
fn range(text: &str) -> Option<Result<Vec<String>, String>> {
    let (first, rest) = text.split_once("..")?;
    let begins = |text: &str| text.trim_start().starts_with(|c: char| c.is_ascii_digit());
    (begins(first) && begins(rest)).then(|| spread(text, first.trim(), rest))
}

fn spread(text: &str, first: &str, rest: &str) -> Result<Vec<String>, String> {
    let mut parts = rest.split(':').map(str::trim);
    let last = parts.next().unwrap_or("");
    let steps = parts.next().ok_or(format!("`{text}` does not say how many values: A..B:N, or A..B:N:log"))?;
    let logarithmic = match (parts.next(), parts.next()) {
        (None, _) => false,
        (Some("log"), None) => true,
        _ => return Err(format!("`{text}` is no range: A..B:N, or A..B:N:log")),
    };
    let wanted = steps.parse::<usize>().ok().filter(|wanted| (2..=MOST).contains(wanted));
    let wanted = wanted.ok_or(format!("`{text}`: a range has 2 to {MOST} values, not `{steps}`"))?;
    let made = with_unit(first, last, wanted, logarithmic).or_else(|| without(first, last, wanted, logarithmic));
    let values = made.ok_or(format!("`{text}`: `{first}` and `{last}` are no two numbers of the same unit"))??;
    match values.windows(2).any(|pair| pair[0] == pair[1]) {
        true => Err(format!("`{text}` is too narrow for {wanted} different values")),
        false => Ok(values),
    }
}

/// Both ends have a unit; or the last, and the first is meant to have the same.
fn with_unit(first: &str, last: &str, wanted: usize, logarithmic: bool) -> Option<Result<Vec<String>, String>> {
    let kind = KINDS.iter().find(|kind| (kind.read)(last).is_some())?;
    let unit = last.trim_start_matches(|c: char| c.is_ascii_digit() || "._ ".contains(c));
    let ends = ((kind.read)(first).or_else(|| (kind.read)(&format!("{first} {unit}")))?, (kind.read)(last)?);
    let between = match between(ends.0 as f64, ends.1 as f64, wanted, logarithmic) {
        Ok(between) => between,
        Err(message) => return Some(Err(message)),
    };
    // To the largest unit that moves no value by more than a twentieth of a step.
    let factor = |unit: &&str| (kind.read)(&format!("1 {unit}"));
    let round = kind.units.iter().filter_map(factor).find(|size| narrowest(&between) >= 10.0 * *size as f64);
    let round = round.unwrap_or(1);
    let rounded = |value: &f64| (kind.print)((value / round as f64).round() as u64 * round);
    let mut values: Vec<String> = between.iter().map(rounded).collect();
    (values[0], values[wanted - 1]) = ((kind.print)(ends.0), (kind.print)(ends.1));
    Some(Ok(values))
}

/// Both ends are plain numbers, or percentages.
fn without(first: &str, last: &str, wanted: usize, logarithmic: bool) -> Option<Result<Vec<String>, String>> {
    let (digits, unit) = last.strip_suffix('%').map_or((last, ""), |digits| (digits.trim_end(), " %"));
    let first = first.strip_suffix('%').map_or(first, str::trim_end);
    let between = match between(plain(first)?, plain(digits)?, wanted, logarithmic) {
        Ok(between) => between,
        Err(message) => return Some(Err(message)),
    };
    let whole = !first.contains('.') && !digits.contains('.');
    // Two digits more than the first of a step.
    let mut decimals = 0;
    while !whole && decimals < 15 && narrowest(&between) * libm::pow(10.0, f64::from(decimals)) < 100.0 {
        decimals += 1;
    }
    let print = |value: &f64| {
        let text = format!("{value:.0$}", decimals as usize);
        let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
        format!("{text}{unit}")
    };
    Some(Ok(between.iter().map(print).collect()))
}

fn narrowest(values: &[f64]) -> f64 {
    values.windows(2).map(|pair| (pair[1] - pair[0]).abs()).fold(f64::INFINITY, f64::min)
}

fn between(first: f64, last: f64, wanted: usize, logarithmic: bool) -> Result<Vec<f64>, String> {
    if first == last {
        return Err("the range is empty: its ends are equal".into());
    }
    if logarithmic && (first <= 0.0 || last <= 0.0) {
        return Err("a logarithmic range begins and ends above 0".into());
    }
    let share = |at: usize| at as f64 / (wanted - 1) as f64;
    let value = |at: usize| match (at, logarithmic) {
        (0, _) => first,
        (at, _) if at == wanted - 1 => last,
        // Not the platform's: the values are the same everywhere.
        (at, true) => first * libm::pow(last / first, share(at)),
        (at, false) => first + (last - first) * share(at),
    };
    Ok((0..wanted).map(value).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> String {
        values(text).unwrap_or_else(|message| panic!("{text}: {message}")).join(" | ")
    }

    #[test]
    fn lists_and_ranges() {
        assert_eq!(list("10, 60,100"), "10 | 60 | 100");
        assert_eq!(list(r#""a,b",[1,2],{a=1,b=2}"#), r#""a,b" | [1,2] | {a=1,b=2}"#);
        assert_eq!(list("256MiB..1GiB:4"), "256 MiB | 512 MiB | 768 MiB | 1 GiB");
        assert_eq!(
            list("256MiB..1GiB:8:log"),
            "256 MiB | 312 MiB | 380 MiB | 464 MiB | 565 MiB | 689 MiB | 840 MiB | 1 GiB"
        );
        assert_eq!(list("480..720MiB:3"), "480 MiB | 600 MiB | 720 MiB");
        assert_eq!(list("1 s..10 s:3"), "1 s | 5.5 s | 10 s");
        assert_eq!(list("0..200:5"), "0 | 50 | 100 | 150 | 200");
        assert_eq!(list("0.1..0.9:5"), "0.1 | 0.3 | 0.5 | 0.7 | 0.9");
        assert_eq!(list("10 %..30 %:3"), "10 % | 20 % | 30 %");
        assert_eq!(list("100..1:3:log"), "100 | 10 | 1");
        assert_eq!(list("60,100..200:3"), "60 | 100 | 150 | 200");
        assert_eq!(list("../other.toml"), "../other.toml");
    }

    #[test]
    fn what_is_no_range_is_said() {
        let wrong = |text: &str| values(text).expect_err(text);
        assert_eq!(wrong("1,,2"), "value 2 is empty");
        assert_eq!(wrong("1,2,1"), "`1` is there twice");
        assert_eq!(wrong("1..9"), "`1..9` does not say how many values: A..B:N, or A..B:N:log");
        assert_eq!(wrong("1..9:1"), "`1..9:1`: a range has 2 to 10000 values, not `1`");
        assert_eq!(wrong("1..9:x"), "`1..9:x`: a range has 2 to 10000 values, not `x`");
        assert_eq!(wrong("5..5:3"), "the range is empty: its ends are equal");
        assert_eq!(wrong("1..3:7"), "`1..3:7` is too narrow for 7 different values");
        assert_eq!(wrong("0..8:3:log"), "a logarithmic range begins and ends above 0");
        assert_eq!(wrong("1MiB..3s:2"), "`1MiB..3s:2`: `1MiB` and `3s` are no two numbers of the same unit");
        assert_eq!(wrong("1..9:3:lin"), "`1..9:3:lin` is no range: A..B:N, or A..B:N:log");
    }

    #[test]
    fn numbers_are_of_the_smallest_unit() {
        let numbers = ["64 MiB", "\"2 s\"", "10", "0.5", "30 %", "6.1", "always", "inf", "1.2.3"].map(number);
        let wanted = [Some(67_108_864.0), Some(2e9), Some(10.0), Some(0.5), Some(30.0), Some(6.1), None, None, None];
        assert_eq!(numbers, wanted);
    }
}
