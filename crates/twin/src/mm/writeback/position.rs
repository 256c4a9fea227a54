//! Position control of writers: factor on their rate by the distance of the dirty pages from the set point, and length
//! of their pauses: `pos_ratio_polynom`, `wb_position_ratio`, `wb_max_pause`, `wb_min_pause` (3.2 to 6.12).
//!
//! Not modelled: disks with a limit of their own (`strictlimit`). Checked by tests of the curve here.

use super::rate::{ONE, State};

/// Pages between two checks of a fast writer: 128 KiB (`DIRTY_POLL_THRESH`).
const POLL: u64 = 32;

/// The ratio, [`ONE`] at the set point halfway between free run and the limit; 0 at the limit.
pub(super) fn ratio(state: &State, bandwidth: u64) -> u64 {
    let &State { thresholds, dirty, limit, own, of_disk } = state;
    if dirty >= limit {
        return 0;
    }
    let setpoint = (thresholds.freerun() + limit) / 2;
    let mut ratio = polynomial(setpoint, dirty, limit);
    // The disk's own set point is to the other as its part is to the threshold. A threshold that was just lowered may be
    // many times smaller than the limit that follows it.
    let part = of_disk.min(thresholds.hard).max((limit - dirty) / 8);
    let x = (u128::from(part) << 16) / u128::from(thresholds.hard | 1);
    let own_setpoint = (u128::from(setpoint) * x) >> 16;
    let span = (u128::from(thresholds.hard.saturating_sub(part) + 8 * bandwidth) * x) >> 16;
    let (zero, wide) = (own_setpoint + span, u128::from(own));
    ratio = match wide < zero - span / 4 {
        true => (u128::from(ratio) * (zero - wide) / (span | 1)) as u64,
        false => ratio / 4,
    };
    // A disk must not run dry.
    let low = part / 2;
    if own < low {
        ratio = if own > low / 8 { ratio * low / own } else { ratio * 8 };
    }
    ratio
}

/// 1 + ((setpoint - dirty) / (limit - setpoint))^3, within 0 and 2.
fn polynomial(setpoint: u64, dirty: u64, limit: u64) -> u64 {
    // Wide enough for the cube when the limits are far apart and the set point is near the limit of the device.
    let one = i128::from(ONE);
    let x = (i128::from(setpoint) - i128::from(dirty)) * one / (i128::from(limit.saturating_sub(setpoint)) | 1);
    let cube = (((x * x) >> one.ilog2()) * x) >> one.ilog2();
    (cube + one).clamp(0, 2 * one) as u64
}

/// Longest pause in ticks: time of the disk for an eighth of the dirty pages, at most 200 ms.
pub(super) fn longest_pause(dirty: u64, bandwidth: u64, hz: u64) -> u64 {
    let ticks = dirty / (1 + bandwidth / (1 + hz / 8).next_power_of_two());
    (ticks + 1).min((hz / 5).max(1))
}

/// Shortest pause in ticks, and pages that a writer dirties between two checks.
pub(super) fn shortest_pause(longest: u64, (of_task, ratelimit): (u64, u64), bandwidth: u64, hz: u64) -> (u64, u64) {
    let per_tick = hz.next_power_of_two();
    let mut ticks = (hz / 100).max(1);
    // Many tasks pause longer, in steps by powers of two.
    ticks += u64::from(bandwidth.max(1).ilog2().saturating_sub(ratelimit.ilog2())) * 10 * hz / 1024;
    ticks = ticks.min(1 + longest / 2);
    let mut pages = ratelimit * ticks / per_tick;
    if pages < POLL {
        ticks = longest;
        pages = ratelimit * ticks / per_tick;
        if pages > POLL {
            (pages, ticks) = (POLL, hz * POLL / ratelimit);
        }
    }
    if hz * pages / (of_task + 1) > longest {
        ticks = longest;
        pages = of_task * ticks / per_tick;
    }
    (if pages >= POLL { 1 + ticks / 2 } else { ticks }, pages)
}

#[cfg(test)]
mod tests {
    use super::super::Thresholds;
    use super::*;

    #[test]
    fn the_curve_goes_through_the_set_point() {
        let state = |dirty| State {
            thresholds: Thresholds { background: 10_000, hard: 20_000 },
            dirty,
            limit: 20_000,
            own: dirty,
            of_disk: 20_000,
        };
        // Free run ends at 15,000; the set point is 17,500.
        assert_eq!(polynomial(17_500, 17_500, 20_000), ONE);
        assert_eq!((polynomial(17_500, 15_000, 20_000), polynomial(17_500, 20_000, 20_000)), (2 * ONE - 3, 2));
        let ratios: Vec<u64> = (15_000..20_000).step_by(500).map(|dirty| ratio(&state(dirty), 5000)).collect();
        assert!(ratios.is_sorted_by(|a, b| a >= b), "{ratios:?}");
        assert!(ratio(&state(17_500), 5000).abs_diff(ONE) < 2);
        assert_eq!(ratio(&state(20_000), 5000), 0);
        // With few dirty pages the disk must have more to write.
        assert!(ratio(&state(2000), 5000) > 8 * ONE);
    }

    #[test]
    fn pauses_suit_the_disk() {
        // 10,000 pages at 5,000 a second: 200 ms at most; an eighth of 100 pages is less than a tick.
        assert_eq!((longest_pause(10_000, 5000, 250), longest_pause(100, 5000, 250)), (50, 1));
        // One task at the disk's pace: 10 ms hold 40 pages, so half of that is enough to pause for.
        assert_eq!(shortest_pause(50, (5000, 5000), 5000, 250), (2, 39));
        // A slow one checks every 32 pages and pauses when they are due.
        assert_eq!(shortest_pause(50, (500, 500), 5000, 250), (9, 32));
    }
}
