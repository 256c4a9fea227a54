//! Figures and names in few columns.

use mmtwin_report::units;

/// What is not known.
pub const UNKNOWN: &str = "n/a";
/// Heights of a block.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A share in percent: `12.3 %`.
pub fn percent(value: Option<f64>) -> String {
    match value {
        None => UNKNOWN.into(),
        Some(value) if value <= 0.0 => "0 %".into(),
        Some(value) if value < 0.05 => "<0.1 %".into(),
        Some(value) if value < 99.95 => format!("{value:.1} %"),
        Some(value) => format!("{value:.0} %"),
    }
}

/// A number per second, without its unit: `0.5`, `1,234`, `123 k`.
pub fn rate(value: Option<f64>) -> String {
    match value {
        None => UNKNOWN.into(),
        Some(value) if value <= 0.0 => "0".into(),
        Some(value) if value < 0.05 => "<0.1".into(),
        Some(value) if value < 9.95 => format!("{value:.1}"),
        Some(value) => units::count(value),
    }
}

/// Pages per second as bytes: `48.3 MiB`.
pub fn pages(value: Option<f64>) -> String {
    value.map_or(UNKNOWN.into(), |value| if value < 0.05 { "0".into() } else { units::pages(value) })
}

/// A figure with `/s` behind it, if it is known.
pub fn per_second(figure: String) -> String {
    if figure == UNKNOWN { figure } else { figure + "/s" }
}

/// The first parts that fit a width, with a separator between them.
pub fn fitting(parts: impl IntoIterator<Item = String>, separator: &str, width: usize) -> String {
    let mut line = String::new();
    for part in parts {
        let gap = if line.is_empty() { "" } else { separator };
        if line.chars().count() + gap.len() + part.chars().count() > width {
            break;
        }
        line = line + gap + &part;
    }
    line
}

/// A size: `48.3 MiB`.
pub fn bytes(value: Option<u64>) -> String {
    value.map_or(UNKNOWN.into(), |value| units::bytes(value as f64))
}

/// The end of a path that fits, behind an ellipsis.
pub fn tail(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.into();
    }
    let end = text.chars().skip(length + 1 - width.max(1));
    std::iter::once('…').chain(end).collect()
}

/// The height of a full block for values up to `most`, in percent: round, and at least 1.
pub fn full(most: f64) -> f64 {
    [1.0, 2.0, 5.0, 10.0, 20.0, 50.0].into_iter().find(|full| most <= *full).unwrap_or(100.0)
}

/// A value as a block: nothing for 0, a dot where it is not known.
pub fn block(value: Option<f64>, full: f64) -> char {
    match value {
        None => '·',
        Some(value) if value <= 0.0 => ' ',
        Some(value) => {
            let height = (value / full * BLOCKS.len() as f64).ceil() as usize;
            BLOCKS[height.clamp(1, BLOCKS.len()) - 1]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short() {
        assert_eq!(
            [None, Some(0.0), Some(0.01), Some(12.34), Some(250.0)].map(percent),
            ["n/a", "0 %", "<0.1 %", "12.3 %", "250 %"]
        );
        assert_eq!(
            [None, Some(0.0), Some(0.5), Some(1234.4), Some(2e6)].map(rate),
            ["n/a", "0", "0.5", "1,234", "2.00 M"]
        );
        assert_eq!((pages(Some(256.0)), pages(Some(0.0)), bytes(None)), ("1.00 MiB".into(), "0".into(), "n/a".into()));
        assert_eq!(["n/a", "0"].map(|figure| per_second(figure.into())), ["n/a", "0/s"]);
        let parts = || ["one", "two", "three"].map(String::from);
        assert_eq!([8, 7, 2].map(|width| fitting(parts(), ", ", width)), ["one, two", "one", ""]);
        assert_eq!([tail("/a/b", 4), tail("/system.slice/web", 6), tail("/ab", 1)], ["/a/b", "…e/web", "…"]);
    }

    #[test]
    fn blocks_are_as_high_as_their_share() {
        let blocks: String =
            [None, Some(0.0), Some(0.01), Some(2.5), Some(5.0), Some(9.0)].map(|v| block(v, 5.0)).iter().collect();
        assert_eq!(blocks, "· ▁▄██");
        assert_eq!([0.0, 1.5, 100.0].map(full), [1.0, 2.0, 100.0]);
    }
}
