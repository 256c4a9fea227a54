//! The nearest of the known words, for error messages.

/// The known word nearest to `word` by edit distance, if it is near enough to be what was meant: at most a third of
/// the longer word may differ.
pub(crate) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = word.to_lowercase();
    let near = known.filter_map(|candidate| {
        let away = distance(&wanted, &candidate.to_lowercase());
        (away * 3 <= wanted.chars().count().max(candidate.chars().count())).then_some((away, candidate))
    });
    near.min_by_key(|(away, _)| *away).map(|(_, candidate)| candidate)
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
}
