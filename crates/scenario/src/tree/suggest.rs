//! "Did you mean": the nearest of the known words.

use mmtwin_event::words::nearest;

/// The known word nearest to what was written, or one that it begins, if it is near enough to be what was meant.
pub(crate) fn suggest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A word that is longer than all known ones is none of them, and its distances would take long.
    let written: String = written.chars().take(64).collect();
    let known: Vec<&str> = known.into_iter().collect();
    let begins = |word: &&&str| written.len() >= 3 && word.starts_with(&written);
    nearest(&written, known.iter().copied()).or_else(|| known.iter().find(begins).copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_suggested_and_far_ones_are_not() {
        let known = ["threads", "policy", "start_node", "purge_accounting"];
        assert_eq!(suggest("thread", known), Some("threads"));
        assert_eq!(suggest("thredas", known), Some("threads"));
        assert_eq!(suggest("start-node", known), Some("start_node"));
        assert_eq!(suggest("purge", known), Some("purge_accounting"));
        assert_eq!(suggest("banana", known), None);
        assert_eq!(suggest("", known), None);
    }
}
