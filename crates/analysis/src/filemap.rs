//! Page cache: how long pages of files were away, where it was recorded that they left and came back.
//!
//! `mm_filemap_delete_from_page_cache` and `mm_filemap_add_to_page_cache` come once for each folio. One of [`SAMPLE`]
//! places of files is followed, chosen by its hash, so memory is bounded and the average is not biased. Its refault
//! distance is the number of pages that left in between. A page that is truncated leaves too; if its place is written
//! again soon it looks like a refault, so a file that is rewritten again and again is misjudged.

use mmtwin_event::vocabulary::{MmFilemapAddToPageCache, MmFilemapDeleteFromPageCache};
use mmtwin_event::{Event, Kind};
use rustc_hash::FxHashMap;

/// One of so many places is followed.
const SAMPLE: u64 = 16;
/// Places followed at once; when there are more, new ones are not.
const MAX_PLACES: usize = 1 << 18;

/// What events of the page cache tell.
#[derive(Clone, Debug, Default)]
pub struct Filemap {
    /// Pages that entered.
    pub added: u64,
    /// Pages that left.
    pub deleted: u64,
    /// Followed folios that came back.
    pub returned: u64,
    /// Pages that left while they were away, in total.
    distance: u128,
    /// Nanoseconds that they were away, in total.
    away: u128,
    /// Hash of the place: pages that had left, and when.
    gone: FxHashMap<u64, (u64, u64)>,
}

impl Filemap {
    /// Takes one event of this subject.
    pub fn event(&mut self, ev: &Event<'_>) {
        let pages = |order: Option<u32>| 1u64 << order.unwrap_or(0).min(32);
        if ev.kind == Kind::MmFilemapDeleteFromPageCache {
            let e: MmFilemapDeleteFromPageCache = ev.typed();
            self.deleted = self.deleted.saturating_add(pages(e.order));
            let place = place(e.dev.0, e.ino.0, e.ofs);
            if place.is_multiple_of(SAMPLE) && self.gone.len() < MAX_PLACES {
                self.gone.insert(place, (self.deleted, ev.ts));
            }
        } else {
            let e: MmFilemapAddToPageCache = ev.typed();
            self.added = self.added.saturating_add(pages(e.order));
            let place = place(e.dev.0, e.ino.0, e.ofs);
            let Some((deleted, at)) = place.is_multiple_of(SAMPLE).then(|| self.gone.remove(&place)).flatten() else {
                return;
            };
            self.returned += 1;
            self.distance += u128::from(self.deleted - deleted);
            self.away += u128::from(ev.ts.saturating_sub(at));
        }
    }

    /// Pages that left, and nanoseconds, between a folio's leaving and its return, on average over those that were
    /// followed; `None` if none came back.
    pub fn distance(&self) -> Option<(u64, u64)> {
        let n = u128::from(self.returned);
        (n > 0).then(|| ((self.distance / n) as u64, (self.away / n) as u64))
    }
}

/// A hash of a place whose low bits are as good as the others.
fn place(dev: u64, ino: u64, ofs: u64) -> u64 {
    let mix = |hash: u64, value: u64| {
        let product = (hash ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        product ^ (product >> 32)
    };
    mix(mix(mix(0, dev), ino), ofs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::EventBuilder;

    /// Passes over `pages` pages of which `fit` fit, `rounds` times, a microsecond each.
    fn loops(pages: i64, fit: i64, rounds: i64) -> Filemap {
        let mut filemap = Filemap::default();
        for n in 0..pages * rounds {
            let event = |kind, page: i64| {
                let made = EventBuilder::new(kind).at(n as u64 * 1000).set("i_ino", 7);
                made.set("index", page * 4096)
            };
            filemap.event(&event(Kind::MmFilemapAddToPageCache, n % pages).event());
            if n >= fit {
                filemap.event(&event(Kind::MmFilemapDeleteFromPageCache, (n - fit) % pages).event());
            }
        }
        filemap
    }

    #[test]
    fn a_loop_has_the_distance_of_what_does_not_fit() {
        let filemap = loops(20_000, 5_000, 3);
        let (distance, away) = filemap.distance().unwrap();
        assert!((14_900..=15_100).contains(&distance), "{distance}");
        assert!((14_900_000..=15_100_000).contains(&away), "{away}");
        let followed = filemap.returned * SAMPLE;
        assert!((30_000..=50_000).contains(&followed), "{followed} of 40,000");
    }

    #[test]
    fn pages_that_stay_away_have_none() {
        assert_eq!(loops(20_000, 5_000, 1).distance(), None);
    }
}
