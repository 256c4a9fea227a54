//! Where exactly pages were reclaimed from: by node, zone where the kernel tells it, priority, flags and reclaimer.

use crate::index::Index;
use crate::tasks::Context;
use mmtwin_event::value::ReclaimFlags;

/// What pages were looked at for, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Node.
    pub nid: i32,
    /// Zone, while LRU lists were per zone (to 4.7).
    pub zid: Option<i32>,
    /// Who reclaimed.
    pub context: Context,
    /// Priority: 12 is the first, gentlest pass.
    pub priority: i32,
    /// Kind of pages and way of writing.
    pub flags: ReclaimFlags,
}

/// What happened at a [`Place`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    /// The place.
    pub place: Place,
    /// Batches of inactive pages.
    pub batches: u64,
    /// Inactive pages scanned.
    pub scanned: u64,
    /// Pages reclaimed.
    pub reclaimed: u64,
    /// Batches of active pages.
    pub active_batches: u64,
    /// Active pages taken.
    pub active_isolated: u64,
    /// Of these, moved to the inactive list.
    pub deactivated: u64,
}

/// Places that are kept separate: far more than the nodes, zones and priorities of any kernel. Those beyond are counted
/// together as priority -1 of node -1.
pub(super) const PLACES: u32 = 1 << 18;

/// All places.
#[derive(Clone, Debug, Default)]
pub struct Places {
    index: Index,
    visits: Vec<Visit>,
}

impl Places {
    /// The sums of a place.
    #[inline]
    pub(crate) fn at(&mut self, place: Place) -> &mut Visit {
        // Eight bits hold every zone, priority and flag a kernel has, so different real places have different keys.
        let low = |value: i32| u64::from(value as u8);
        let key = (place.nid as u32 as u64) << 32
            | low(place.zid.map_or(0, |zid| zid.wrapping_add(1))) << 24
            | low(place.priority) << 16
            | low(place.flags.0 as i32) << 8
            | place.context as u64;
        let (position, new) = self.index.insert_up_to(key, PLACES);
        if new {
            let nowhere = Place { nid: -1, zid: None, priority: -1, flags: ReclaimFlags(0), ..place };
            self.visits.push(Visit {
                place: if self.visits.len() < PLACES as usize { place } else { nowhere },
                batches: 0,
                scanned: 0,
                reclaimed: 0,
                active_batches: 0,
                active_isolated: 0,
                deactivated: 0,
            });
        }
        &mut self.visits[position as usize]
    }

    /// All places with their sums, in order of place.
    pub fn sorted(&self) -> Vec<Visit> {
        let mut visits = self.visits.clone();
        visits.sort_by_key(|visit| visit.place);
        visits
    }
}
