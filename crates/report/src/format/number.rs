//! How numbers are printed in text and CSV. Digits are not grouped: a number can be searched for, pasted and compared
//! with the kernel's own files.

use crate::model::Cell;

/// Decimals of a list's floats, unless smaller values need more.
const DECIMALS: usize = 3;

/// A cell as text, with fixed decimals or as short as it can be.
pub(super) fn printed(cell: &Cell, decimals: Option<u8>) -> String {
    if cell.na().is_some() {
        return "n/a".to_owned();
    }
    match (cell, decimals) {
        (Cell::Text(word), _) => word.clone(),
        (Cell::Int(number), Some(decimals)) if decimals > 0 => {
            format!("{number}.{:0<width$}", "", width = usize::from(decimals))
        }
        (Cell::Int(number), _) => number.to_string(),
        (Cell::Float(number), Some(decimals)) => format!("{number:.width$}", width = usize::from(decimals)),
        (Cell::Float(number), None) => shortest(*number),
        (Cell::Na(_), _) => "n/a".to_owned(),
    }
}

/// A float with at most six decimals, and without those that are zero; very small and very large ones with an
/// exponent.
pub(super) fn shortest(number: f64) -> String {
    let size = number.abs();
    if number == 0.0 {
        return "0".to_owned();
    }
    if !(1e-3..1e15).contains(&size) {
        return format!("{number:.5e}");
    }
    let text = format!("{number:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Cells of one column with decimal points that stand below each other.
pub(super) fn aligned<'a>(cells: impl Iterator<Item = &'a Cell> + Clone) -> Vec<String> {
    let floats = cells.clone().filter_map(|cell| if let Cell::Float(f) = cell { Some(*f) } else { None });
    let floats = floats.filter(|f| f.is_finite() && *f != 0.0);
    let smallest = floats.clone().map(f64::abs).fold(1.0, f64::min);
    let limit = (1.0 - smallest.log10().floor()).clamp(DECIMALS as f64, 9.0) as usize;
    let needed = floats.map(|f| {
        let text = shortest(f);
        text.split_once('.').map_or(0, |(_, decimals)| decimals.len())
    });
    let decimals = needed.max().unwrap_or(0).min(limit);
    let text = cells.map(|cell| match cell {
        Cell::Float(f) if *f != 0.0 && f.abs() < 0.5 * 10f64.powi(-(decimals as i32)) => shortest(*f),
        Cell::Float(f) if f.is_finite() => format!("{f:.decimals$}"),
        other => printed(other, None),
    });
    text.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Na;

    #[test]
    fn conventions() {
        assert_eq!(printed(&Cell::Int(1639), Some(2)), "1639.00");
        assert_eq!(printed(&Cell::Int(1639), Some(0)), "1639");
        assert_eq!(printed(&Cell::Int(i128::MAX), None), i128::MAX.to_string());
        assert_eq!(printed(&Cell::Float(47.685), Some(2)), "47.69");
        assert_eq!(printed(&Cell::Float(f64::NAN), Some(2)), "n/a");
        assert_eq!(printed(&Cell::Na(Na::Lost), None), "n/a");
        // sums of times print as the shortest decimal
        for (sum, text) in [(10.60, "10.6"), (26.90, "26.9"), (3377.50, "3377.5"), (0.1 + 0.2, "0.3"), (12.0, "12")] {
            assert_eq!(shortest(sum), text);
        }
        // nothing becomes a silent zero
        assert_eq!(shortest(1.5e-9), "1.50000e-9");
        assert_eq!(shortest(-2e20), "-2.00000e20");
    }

    #[test]
    fn columns() {
        let column = [Cell::Float(0.912345), Cell::Float(12.5), Cell::Int(3), Cell::Na(Na::Lost), Cell::Float(0.0)];
        assert_eq!(aligned(column.iter()), ["0.912", "12.500", "3", "n/a", "0.000"]);
        let small = [Cell::Float(0.00002), Cell::Float(1.0)];
        assert_eq!(aligned(small.iter()), ["0.000020", "1.000000"]);
        let tiny = [Cell::Float(2e-12), Cell::Float(1.5)];
        assert_eq!(aligned(tiny.iter()), ["2.00000e-12", "1.500000000"]);
        let whole = [Cell::Float(2.0), Cell::Float(10.0)];
        assert_eq!(aligned(whole.iter()), ["2", "10"]);
    }
}
