//! A decimal number with a unit, in exact integer arithmetic.

/// Why a number with a unit cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// There is no number.
    Number,
    /// The unit is none of those known.
    Unit,
    /// More than fits into 64 bits.
    Overflow,
    /// A fraction of the smallest unit.
    Fraction,
}

/// Reads `12`, `1.5` or `-`less digits followed by blanks and a unit; `factor` gives the factor of a unit.
pub(super) fn read(text: &str, factor: impl Fn(&str) -> Option<u64>) -> Result<u64, Wrong> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let number = number.replace('_', "");
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    if whole.is_empty() || fraction.contains('.') || number.ends_with('.') {
        return Err(Wrong::Number);
    }
    let factor = u128::from(factor(unit.trim()).ok_or(Wrong::Unit)?);
    let whole: u64 = whole.parse().map_err(|_| Wrong::Overflow)?;
    // More decimals than any unit has can only be zeros or a fraction of the smallest unit.
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > 18 {
        return Err(Wrong::Fraction);
    }
    let scale = 10u128.pow(fraction.len() as u32);
    let part = if fraction.is_empty() { 0 } else { fraction.parse::<u128>().map_err(|_| Wrong::Number)? } * factor;
    if part % scale != 0 {
        return Err(Wrong::Fraction);
    }
    u64::try_from(u128::from(whole) * factor + part / scale).map_err(|_| Wrong::Overflow)
}

/// The number in the largest of the units, given with their factors from the largest to 1, that is not above it and
/// needs at most three decimals.
pub(super) fn print(value: u64, units: &[(&'static str, u64)]) -> String {
    let thousandths = |worth: u64| u128::from(value) * 1000 / u128::from(worth);
    let exact = |worth: u64| u128::from(value) * 1000 % u128::from(worth) == 0;
    let fits = units.iter().find(|(_, worth)| value >= *worth && exact(*worth));
    let (unit, worth) = fits.or(units.last()).expect("a list of units is not empty");
    let (whole, part) = (thousandths(*worth) / 1000, thousandths(*worth) % 1000);
    let decimals = format!(".{part:03}");
    format!("{whole}{} {unit}", decimals.trim_end_matches('0').trim_end_matches('.'))
}
