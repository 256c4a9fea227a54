//! Quantities with units on the command line.

pub(super) use mmtwin_event::words::time_span as parse_time;

/// The end of a time span. Once `convert` took the format of its output here.
pub(super) fn parse_end(text: &str) -> Result<std::time::Duration, String> {
    match text {
        "dat" | "text" | "parquet" => Err(format!("expected a time; --format {text} selects the format")),
        text => parse_time(text),
    }
}

/// A time span short enough to run between two readings of the clock.
pub(super) fn parse_work(text: &str) -> Result<std::time::Duration, String> {
    let work = parse_time(text)?;
    if work > std::time::Duration::from_millis(1) { Err("must be at most 1ms".into()) } else { Ok(work) }
}

/// A number of bytes with a unit: `64K`, `4M`, `1G`.
pub(super) fn parse_size(text: &str) -> Result<u64, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor = match unit.trim_end_matches("iB") {
        "" => 1,
        "K" | "k" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return Err(format!("unknown unit of size `{unit}`; use K, M or G")),
    };
    let number: u64 = number.parse().map_err(|_| "expected a number with a unit, such as 4M".to_string())?;
    number.checked_mul(factor).ok_or_else(|| "too large".to_string())
}

/// A way to compress, as the level of zstd: `zstd`, `zstd:9`.
pub(super) fn parse_compression(text: &str) -> Result<i32, String> {
    let bad = || "expected zstd or zstd:LEVEL, with a level from 1 to 22".to_string();
    let level = match text.split_once(':') {
        None if text == "zstd" => 1,
        Some(("zstd", level)) => level.parse().map_err(|_| bad())?,
        _ => return Err(bad()),
    };
    if (1..=22).contains(&level) { Ok(level) } else { Err(bad()) }
}

/// Seconds of the trace clock as text, to nanoseconds without floating point.
pub(super) fn parse_stamp(text: &str) -> Result<u64, String> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let bad = |_| "expected seconds, such as 4856.340441".to_string();
    if fraction.len() > 9 {
        return Err("at most nine decimals: the trace clock has nanoseconds".into());
    }
    let seconds: u64 = seconds.parse().map_err(bad)?;
    let fraction: u64 = format!("{fraction:0<9}").parse().map_err(bad)?;
    seconds.checked_mul(1_000_000_000).and_then(|s| s.checked_add(fraction)).ok_or_else(|| "too large".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_units() {
        assert_eq!(parse_time("250us").unwrap().as_nanos(), 250_000);
        assert_eq!(parse_time("1.5s").unwrap().as_nanos(), 1_500_000_000);
        assert!(parse_time("3 fortnights").is_err());
        assert!(parse_end("text").is_err_and(|e| e.contains("--format text")));
        assert_eq!(parse_work("80ns").unwrap().as_nanos(), 80);
        assert!(parse_work("2ms").is_err());
        assert_eq!(parse_size("4M").unwrap(), 4 << 20);
        assert_eq!(parse_size("4MiB").unwrap(), 4 << 20);
        assert!(parse_size("99999999999G").is_err());
        assert_eq!(parse_stamp("4856.340441").unwrap(), 4_856_340_441_000);
        assert_eq!(parse_stamp("7").unwrap(), 7_000_000_000);
        assert!(parse_stamp("1.0000000001").is_err());
        assert!(parse_stamp("x").is_err());
        assert_eq!((parse_compression("zstd"), parse_compression("zstd:9")), (Ok(1), Ok(9)));
        assert!(["zstd:0", "zstd:23", "gzip", "zstd:"].iter().all(|text| parse_compression(text).is_err()));
    }
}
