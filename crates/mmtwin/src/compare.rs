//! Traces and runs side by side.

use crate::{Analysed, scenarios};
use mmtwin_report::compare::{Comparison, compare as join};
use mmtwin_report::model::Report;
use std::borrow::Borrow;

/// Puts columns side by side, the first of which is the baseline. A column has a name and one or several inputs; of
/// several, such as runs with different seeds, values are medians with an interval, and differences are tested. Tables are
/// those of [`Analysed::quantities`].
///
/// ```
/// # fn main() -> Result<(), mmtwin::Error> {
/// use mmtwin::{Analysed, Request, Scenario, compare, run};
///
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/examples/numastat-pages.toml");
/// let simulate = |release: &str| -> Result<Vec<Analysed>, mmtwin::Error> {
///     let scenario = Scenario::load(path, &[&format!("kernel.release={release}")])?;
///     Ok(vec![run(&scenario, Request::default(), &mut |_| {})?.analysed])
/// };
/// let comparison = compare(&[("6.1", &simulate("6.1")?), ("6.12", &simulate("6.12")?)]);
/// assert_eq!(comparison.columns, ["6.1", "6.12"]);
/// # Ok(())
/// # }
/// ```
pub fn compare<A: Borrow<Analysed>>(columns: &[(&str, &[A])]) -> Comparison {
    let quantities = |inputs: &[A]| inputs.iter().map(|input| input.borrow().quantities()).collect::<Vec<Report>>();
    let reports = columns.iter().map(|(name, inputs)| (name.to_string(), quantities(inputs)));
    let mut comparison = join(reports.collect());
    if let Some(notes) = scenarios::notes(columns) {
        comparison.notes = notes;
    }
    comparison
}
