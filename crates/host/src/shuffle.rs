//! An order without a pattern that a processor could follow ahead of the program; the same in every run.

/// The numbers below `count` in such an order: Fisher and Yates' shuffle with SplitMix64, seeded with the count.
pub fn order(count: u32) -> Vec<u32> {
    let mut numbers: Vec<u32> = (0..count).collect();
    let mut state = u64::from(count);
    for last in (1..numbers.len()).rev() {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut random = state;
        random = (random ^ (random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        random = (random ^ (random >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        random ^= random >> 31;
        // The upper half of the product: a number up to `last`, close enough to uniform.
        let pick = (u128::from(random) * (last as u128 + 1)) >> 64;
        numbers.swap(last, pick as usize);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_once_and_not_in_sequence() {
        for count in [0, 1, 2, 1000] {
            let mut numbers = order(count);
            assert_eq!(numbers, order(count));
            numbers.sort_unstable();
            assert!(numbers.into_iter().eq(0..count));
        }
        let next_to_each_other = order(1000).windows(2).filter(|w| w[0].abs_diff(w[1]) == 1).count();
        assert!(next_to_each_other < 20, "{next_to_each_other}");
    }
}
