//! Histograms of power-of-two slots in the layout of BPF's latency tools, which users know how to read: bounds, count,
//! and a bar in proportion to the largest count. Bounds beyond 32 bits get wider columns and a shorter bar.

use std::fmt::Write;

const BAR: usize = 40;
/// Characters of a line besides bounds and bar.
const BESIDES: usize = 18;

/// Appends the slots, in `width` columns if they suffice, and the line with average, total and count. Empty slots after
/// the last count are omitted.
pub(super) fn write(
    unit: &str,
    slots: &[(u64, u64, u64)],
    (mean, total): (Option<f64>, u64),
    width: usize,
    out: &mut String,
) {
    let unit = match unit {
        "ns" => "nsecs",
        "us" => "usecs",
        "ms" => "msecs",
        other => other,
    };
    let used = slots.iter().rposition(|(_, _, count)| *count > 0).map_or(0, |last| last + 1);
    let shown = slots.get(..used).unwrap_or_default();
    let largest = shown.iter().map(|(_, _, count)| *count).max().unwrap_or(0);
    let wide = shown.iter().any(|(_, high, _)| *high > u64::from(u32::MAX));
    let (bounds, bar) = if wide { (20, BAR / 2) } else { (10, BAR) };
    let bar = bar.min(width.saturating_sub(2 * bounds + BESIDES)).max(1);
    if !shown.is_empty() {
        let heading = 2 * bounds + 4;
        let indent = heading - if wide { 29 } else { 19 };
        let _ = writeln!(out, "{:indent$}{unit:<width$} : count     distribution", "", width = heading - indent);
    }
    for (low, high, count) in shown {
        let stars = u128::from(*count) * bar as u128 / u128::from(largest.max(1));
        let stars = "*".repeat(usize::try_from(stars).unwrap_or(bar));
        let _ = writeln!(out, "{low:>bounds$} -> {high:<bounds$} : {count:<8} |{stars:<bar$}|");
    }
    let count: u128 = slots.iter().map(|(_, _, count)| u128::from(*count)).sum();
    let average = mean.filter(|mean| mean.is_finite()).map(|mean| format!("avg = {mean:.0} {unit}, "));
    let _ = writeln!(out, "{}total: {total} {unit}, count: {count}", average.unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(slots: &[(u64, u64, u64)], mean: Option<f64>) -> String {
        let mut out = String::new();
        write("ns", slots, (mean, 77), usize::MAX, &mut out);
        out
    }

    #[test]
    fn layout() {
        assert_eq!(
            text(&[(0, 1, 0), (2, 3, 1), (4, 7, 4), (8, 15, 0)], Some(15.4)),
            "     nsecs               : count     distribution\n\
             \x20        0 -> 1          : 0        |                                        |\n\
             \x20        2 -> 3          : 1        |**********                              |\n\
             \x20        4 -> 7          : 4        |****************************************|\n\
             avg = 15 nsecs, total: 77 nsecs, count: 5\n"
        );
    }

    #[test]
    fn wide_bounds() {
        let text = text(&[(1 << 33, (1 << 34) - 1, u64::MAX), (1 << 34, (1 << 35) - 1, u64::MAX)], None);
        assert!(text.starts_with("               nsecs                         : count     distribution\n"), "{text}");
        assert!(
            text.contains("          8589934592 -> 17179869183          : 18446744073709551615 |********************|")
        );
        assert!(text.ends_with("\ntotal: 77 nsecs, count: 36893488147419103230\n"));
    }

    #[test]
    fn nothing_counted() {
        assert_eq!(text(&[(0, 1, 0)], None), "total: 77 nsecs, count: 0\n");
    }
}
