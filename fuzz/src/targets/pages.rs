//! Pages of a ring buffer, with the formats they were written by.

use super::everything::Everything;
use super::format::pages_of;
use crate::Seen;
use crate::samples::{self, Recorded};
use std::cell::OnceCell;

thread_local! {
    static SAMPLE: OnceCell<Recorded> = const { OnceCell::new() };
}

/// Some pages of each CPU of the sample.
pub fn seeds() -> Vec<Vec<u8>> {
    let sample = samples::recorded();
    let some = |pages: &Vec<u8>| pages[..pages.len().min(3 * sample.layout.page_size)].to_vec();
    sample.cpus.iter().map(|(_, pages)| some(pages)).collect()
}

/// Reads every event.
pub fn run(input: &[u8]) -> Seen {
    SAMPLE.with(|sample| {
        let sample = sample.get_or_init(samples::recorded);
        let mut all = Everything::default();
        match pages_of(input, &sample.formats, &sample.layout, &mut all) {
            Ok(outcome) => Seen::accepted(all.digest(&outcome)),
            Err(error) => Seen::refused(error),
        }
    })
}
