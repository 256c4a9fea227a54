//! Words as users write them: wildcards, the nearest of the known names for error messages, and time spans.

use std::time::Duration;

/// True if `text` matches `pattern`, in which `*` matches any characters and `?` one.
pub fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    // Where to continue after a mismatch: behind the last star, one character further in the text.
    let mut retry = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                retry = Some((p + 1, t + 1));
                p += 1;
            }
            Some(&c) if c == '?' || c == text[t] => (p, t) = (p + 1, t + 1),
            _ => match retry {
                Some((after, next)) => {
                    (p, t) = (after, next);
                    retry = Some((after, next + 1));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
}

/// A time span with a unit: `80ns`, `250us`, `100ms`, `1s`, `2m`; a bare number means seconds.
///
/// # Errors
/// What was expected, in words.
pub fn time_span(text: &str) -> Result<Duration, String> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let nanoseconds = match unit {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" | "" => 1e9,
        "m" => 60e9,
        _ => return Err(format!("unknown unit of time `{unit}`; use ns, us, ms, s or m")),
    };
    let number: f64 = number.parse().map_err(|_| "expected a number with a unit, such as 100ms".to_string())?;
    Ok(Duration::from_nanos((number * nanoseconds) as u64))
}

/// The known word nearest to `word` by edit distance, if it is near enough to be what was meant: at most a third of
/// the longer word may differ.
pub fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    near(word, known).into_iter().next()
}

/// Farther than the nearest by so much, a word is not what was meant.
const FARTHER: usize = 2;

/// The words that are near enough, the nearest first.
pub fn near<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = word.to_lowercase();
    let near = known.filter_map(|candidate| {
        let away = distance(&wanted, &candidate.to_lowercase());
        (away * 3 <= wanted.chars().count().max(candidate.chars().count())).then_some((away, candidate))
    });
    let mut near: Vec<(usize, &str)> = near.collect();
    near.sort_by_key(|(away, _)| *away);
    let least = near.first().map_or(0, |(away, _)| *away);
    near.retain(|(away, _)| *away <= least + FARTHER);
    near.into_iter().map(|(_, candidate)| candidate).collect()
}

/// Insertions, deletions and substitutions that turn one word into the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, to) in row.iter_mut().skip(1).zip(&b) {
            let best = (diagonal + usize::from(from != *to)).min(left + 1).min(*cell + 1);
            diagonal = std::mem::replace(cell, best);
            left = best;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, away) in
            [("kitten", "sitting", 3), ("", "abc", 3), ("abc", "", 3), ("same", "same", 0), ("ab", "ba", 2)]
        {
            assert_eq!(distance(a, b), away, "{a} {b}");
        }
    }

    #[test]
    fn near_enough() {
        let known = ["vmscan", "vmstat", "compaction"];
        assert_eq!(nearest("vmscn", known.into_iter()), Some("vmscan"));
        assert_eq!(nearest("Compaktion", known.into_iter()), Some("compaction"));
        assert_eq!(nearest("numa", known.into_iter()), None);
    }

    #[test]
    fn wildcards() {
        for (pattern, text) in
            [("*", ""), ("*", "a:b"), ("vmscan:*", "vmscan:x"), ("*_end", "a_end_end"), ("a?c*", "abcd"), ("", "")]
        {
            assert!(glob(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("vmscan:*", "compaction:x"), ("a?", "a"), ("*_end", "end"), ("", "a"), ("a", "")] {
            assert!(!glob(pattern, text), "{pattern} {text}");
        }
    }
}
