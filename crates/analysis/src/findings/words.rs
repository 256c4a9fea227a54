//! Numbers as sentences print them: short, and exact where they are small.

/// A count: exact with separators below 100,000, then in thousands, millions and so on with three digits.
pub fn count(n: u64) -> String {
    if n < 100_000 {
        let digits = n.to_string();
        return match digits.len() {
            4.. => format!("{},{}", &digits[..digits.len() - 3], &digits[digits.len() - 3..]),
            _ => digits,
        };
    }
    scaled(n as f64, &[(1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")])
}

/// A count with what it counts, whose plural ends with `s`, or `es` behind an `s`.
pub fn counted(n: u64, what: &str) -> String {
    let plural = match n {
        1 => "",
        _ if what.ends_with('s') => "es",
        _ => "s",
    };
    format!("{} {what}{plural}", count(n))
}

/// A duration given in nanoseconds.
pub fn time(ns: f64) -> String {
    scaled(ns, &[(1e9, " s"), (1e6, " ms"), (1e3, " us"), (1.0, " ns")])
}

fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    let unit = units.iter().find(|(size, _)| value >= *size).or(units.last());
    let Some((size, name)) = unit else { return value.to_string() };
    let value = value / size;
    let decimals = if value < 9.95 { 1 } else { 0 };
    format!("{value:.decimals$}{name}")
}

/// A size given in bytes.
pub fn size(bytes: u64) -> String {
    let (unit, name) = match bytes {
        0..=0x000f_ffff => (1_024.0, "KiB"),
        0x0010_0000..=0x3fff_ffff => (1_048_576.0, "MiB"),
        _ => (1_073_741_824.0, "GiB"),
    };
    let value = bytes as f64 / unit;
    let decimals = if value < 9.95 && value.fract() >= 0.05 { 1 } else { 0 };
    format!("{value:.decimals$} {name}")
}

/// A size given in pages of 4 KiB.
pub fn pages(n: u64) -> String {
    size(n.saturating_mul(4096))
}

/// A percentage of a part; two digits matter.
pub fn percent(value: f64) -> String {
    if value > 0.0 && value < 9.95 { format!("{value:.1} %") } else { format!("{value:.0} %") }
}

/// `part` as percent of `whole`; `None` if the whole is 0.
pub fn share(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part * 100.0 / whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!([0, 999, 4251, 99_999].map(count), ["0", "999", "4,251", "99,999"]);
        assert_eq!([100_000, 549_400, 1_299_302, 12_000_000].map(count), ["100 k", "549 k", "1.3 M", "12 M"]);
        assert_eq!([counted(1, "time"), counted(2, "time")], ["1 time", "2 times"]);
        assert_eq!([0.0, 900.0, 12_400_000.0, 1_994_974_000.0].map(time), ["0.0 ns", "900 ns", "12 ms", "2.0 s"]);
        assert_eq!([0.04, 9.96, 62.4].map(percent), ["0.0 %", "10 %", "62 %"]);
        assert_eq!(share(1.0, 0.0), None);
        assert_eq!([512, 4096, 64 << 20, 1_600_000_000].map(size), ["0.5 KiB", "4 KiB", "64 MiB", "1.5 GiB"]);
    }
}
