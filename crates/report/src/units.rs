//! Numbers for people: three significant digits, with the unit that fits. Exact values are in the tables and in JSON.

/// Bytes of a page. Kernels with larger pages are not told apart.
pub const PAGE: f64 = 4096.0;

/// Three significant digits, without an exponent; all digits of what is larger.
pub fn three(value: f64) -> String {
    let size = value.abs();
    let decimals = match size {
        _ if size == 0.0 || size >= 99.95 => 0,
        _ if size >= 9.995 => 1,
        _ if size >= 0.9995 => 2,
        _ if size >= 0.09995 => 3,
        _ => 4,
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') && size < 0.9995 { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A value in the largest of its units in which it is at least 1; units ascend by their size.
fn scaled(value: f64, units: &[(f64, &str)]) -> String {
    let at = |(size, _): &&(f64, &str)| value.abs() >= *size * 0.9995;
    let (size, unit) = units.iter().rev().find(at).or(units.first()).copied().unwrap_or((1.0, ""));
    format!("{} {unit}", three(value / size)).trim_end().to_owned()
}

/// Bytes: `48.3 MiB`.
pub fn bytes(value: f64) -> String {
    const K: f64 = 1024.0;
    scaled(value, &[(1.0, "B"), (K, "KiB"), (K * K, "MiB"), (K * K * K, "GiB"), (K * K * K * K, "TiB")])
}

/// Pages as bytes.
pub fn pages(value: f64) -> String {
    bytes(value * PAGE)
}

/// Nanoseconds: `1.23 s`.
pub fn time(ns: f64) -> String {
    scaled(ns, &[(1.0, "ns"), (1e3, "us"), (1e6, "ms"), (1e9, "s")])
}

/// A share in percent.
pub fn percent(value: f64) -> String {
    match value {
        _ if value > 0.0 && value < 0.01 => "< 0.01 %".to_owned(),
        _ if value < 0.9995 => format!("{} %", format!("{value:.2}").trim_end_matches('0').trim_end_matches('.')),
        _ => format!("{} %", three(value)),
    }
}

/// A count or a rate without a unit: exact below 100,000, then in thousands and so on.
pub fn count(value: f64) -> String {
    if value.abs() < 99_999.5 {
        let text = format!("{value:.0}");
        return match text.len() {
            4.. if value >= 0.0 => format!("{},{}", &text[..text.len() - 3], &text[text.len() - 3..]),
            _ => text,
        };
    }
    scaled(value, &[(1e3, "k"), (1e6, "M"), (1e9, "G"), (1e12, "T")])
}

/// A number of things, whose plural is regular.
pub fn counted(n: u64, what: &str) -> String {
    format!("{} {what}{}", count(n as f64), if n == 1 { "" } else { "s" })
}

/// Rounded to three significant digits, as a number.
pub fn rounded(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits() {
        let texts = [0.0, 0.0312, 0.5, 1.0, 9.996, 12.345, 99.96, 123.4, 4567.8].map(three);
        assert_eq!(texts, ["0", "0.0312", "0.5", "1.00", "10.0", "12.3", "100", "123", "4568"]);
    }

    #[test]
    fn units_fit() {
        assert_eq!([0.0, 512.0, 1536.0, 50_647_270.0].map(bytes), ["0 B", "512 B", "1.50 KiB", "48.3 MiB"]);
        assert_eq!([1023.9 * 1024.0, 3.0e13].map(bytes), ["1.00 MiB", "27.3 TiB"]);
        assert_eq!([12.0, 4_500.0, 1.2346e9, 1e12].map(time), ["12.0 ns", "4.50 us", "1.23 s", "1000 s"]);
        assert_eq!([0.0, 0.001, 0.25, 29.31].map(percent), ["0 %", "< 0.01 %", "0.25 %", "29.3 %"]);
        assert_eq!([7.0, 18_410.0, 1_234_567.0].map(count), ["7", "18,410", "1.23 M"]);
        assert_eq!(pages(256.0), "1.00 MiB");
        assert_eq!(rounded(1_234_567.0), 1_230_000.0);
        assert_eq!([counted(1, "reclaim"), counted(2, "reclaim")], ["1 reclaim", "2 reclaims"]);
    }
}
