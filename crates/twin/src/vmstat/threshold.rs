//! Limits of a CPU's differential: `calculate_normal_threshold`, `calculate_pressure_threshold` and the drift mark of
//! `refresh_zone_stat_thresholds`, 4.13 to 6.18.
//!
//! A zone that has had a drift mark once keeps it, and on machines of several CPUs every zone has one from 4.12 on: CPUs
//! come online, which sets the thresholds, before there are watermarks. Seen in a guest with 6.1, in which tasks find too
//! few free pages by the shared word when the lists have just been drained (docs/model/notebook.md, "Each process alone").
//! Not modelled: the threshold of a node's own counters (the largest of its zones'), as nothing counts there yet; a change
//! of 2024 that sets thresholds once all CPUs are there. Checked on values that kernels 6.1 and 6.18 print, and on the spread
//! of an 88-CPU machine.

/// Largest threshold: a signed byte with room for the step that leaves it.
const MAX_THRESHOLD: u64 = 125;
/// Zones count in units of 128 MiB: pages >> this.
const UNIT_SHIFT: u32 = 15;

/// Index of the highest bit from 1; 0 for 0.
fn fls(word: u64) -> u64 {
    u64::from(u64::BITS - word.leading_zeros())
}

/// Threshold while kswapd of the zone's node sleeps.
pub fn normal(online: u64, managed: u64) -> u32 {
    MAX_THRESHOLD.min(2 * fls(online) * (1 + fls(managed >> UNIT_SHIFT))) as u32
}

/// Threshold while kswapd of the zone's node is awake, for zones with a drift mark.
pub fn pressure(online: u64, low: u64, min: u64) -> u32 {
    MAX_THRESHOLD.min(1.max(low.saturating_sub(min) / online.max(1))) as u32
}

/// Free pages below which the shared word is too inexact (`percpu_drift_mark`); `None` if the differentials of all CPUs
/// together are smaller than the distance between the marks.
pub fn drift_mark(online: u64, threshold: u32, marks: [u64; 3]) -> Option<u64> {
    let [min, low, high] = marks;
    let hidden = online * u64::from(threshold);
    (hidden > low.saturating_sub(min)).then_some(high + hidden)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_thresholds_of_real_machines() {
        let gib = |n: u64| n << 18;
        assert_eq!([3840, 772_915, 1_802_240].map(|managed| normal(2, managed)), [4, 24, 28]);
        // Kernel 6.1 with 8 CPUs.
        assert_eq!([3840, 116_655, 128_858].map(|managed| normal(8, managed)), [8, 24, 24]);
        assert_eq!([normal(4, gib(8)), normal(8, gib(16))], [48, 72]);
        assert_eq!([normal(16, 3840), normal(31, 3840)], [10, 10]);
        assert_eq!(
            [3840, gib(2), gib(4) - 1, gib(60), gib(63)].map(|managed| normal(88, managed)),
            [14, 84, 84, 125, 125]
        );
    }

    #[test]
    fn pressure_thresholds_of_88_cpus() {
        assert_eq!(pressure(88, 11 + 2, 11), 1);
        assert_eq!(pressure(88, 1000 + 500, 1000), 5);
        assert_eq!(pressure(2, 1000, 0), 125);
        assert_eq!(drift_mark(88, 125, [11_264, 26_992, 42_720]), None);
        assert_eq!(drift_mark(88, 84, [1000, 1500, 2000]), Some(2000 + 88 * 84));
    }
}
