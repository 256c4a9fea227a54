//! What all scenarios of a set say together: a row for each group of quantities. A row does not tell one scenario from
//! another.

use super::compare::Quantity;
use super::figures::Group;
use mmtwin_report::statistics::median;
use std::fmt::Write;

/// Errors of many quantities, in percent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    /// Its key in files.
    pub key: String,
    /// Quantities.
    pub n: usize,
    /// Median of the errors without their sign; `None`: there are none.
    pub median: Option<f64>,
    /// Nine of ten errors are at most this.
    pub p90: Option<f64>,
    /// Share of errors of at most 10 %.
    pub within: Option<f64>,
    /// Share of errors above 30 % that are outside the kernel's range too.
    pub beyond: Option<f64>,
    /// Median of the errors with their sign.
    pub bias: Option<f64>,
    /// Median of how far the kernel's runs are from each other.
    pub own_median: Option<f64>,
    /// Nine of ten of these are at most this.
    pub own_p90: Option<f64>,
}

/// Key of the row of all counters.
pub const COUNTERS: &str = "counters";
/// Key of the row of all but compaction.
pub const OTHERS: &str = "counters-without-compaction";
/// Columns of a row in a file.
pub const COLUMNS: &str = "group,n,median_percent,p90_percent,within_10_percent,beyond_percent,median_signed_percent,\
                           kernel_median_percent,kernel_p90_percent";

/// Rows of all counters, of those without compaction, and of each group.
pub fn rows(quantities: &[Quantity]) -> Vec<Row> {
    let row =
        |key: &str, of: &dyn Fn(Group) -> bool| Row::of(key, quantities.iter().filter(|quantity| of(quantity.group)));
    let sums =
        [row(COUNTERS, &Group::is_counter), row(OTHERS, &|group| group.is_counter() && group != Group::Compaction)];
    sums.into_iter().chain(Group::ALL.into_iter().map(|group| row(group.key(), &|other| other == group))).collect()
}

/// The value that a share of ascending values is not above: the nearest rank.
fn percentile(sorted: &[f64], percent: usize) -> Option<f64> {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.checked_sub(1)?).copied()
}

impl Row {
    fn of<'q>(key: &str, quantities: impl Iterator<Item = &'q Quantity>) -> Row {
        let all: Vec<&Quantity> = quantities.collect();
        let sorted = |values: &mut dyn Iterator<Item = f64>| {
            let mut values: Vec<f64> = values.collect();
            values.sort_by(f64::total_cmp);
            values
        };
        let errors = sorted(&mut all.iter().map(|of| of.error.abs()));
        let own = sorted(&mut all.iter().filter_map(|of| of.own));
        let share = |of: &dyn Fn(&Quantity) -> bool| {
            (!all.is_empty()).then(|| 100.0 * all.iter().filter(|q| of(q)).count() as f64 / all.len() as f64)
        };
        Row {
            key: key.into(),
            n: all.len(),
            median: median(&errors),
            p90: percentile(&errors, 90),
            within: share(&|of| of.error.abs() <= 10.0),
            beyond: share(&Quantity::is_beyond),
            bias: median(&sorted(&mut all.iter().map(|of| of.error))),
            own_median: median(&own),
            own_p90: percentile(&own, 90),
        }
    }

    /// In words.
    fn title(&self) -> &str {
        let group = Group::ALL.into_iter().find(|group| group.key() == self.key);
        match (self.key.as_str(), group) {
            (COUNTERS, _) => "**all main counters, nodes, placement**",
            (OTHERS, _) => "**the same without compaction**",
            (_, Some(group)) => group.title(),
            (other, None) => other,
        }
    }

    fn figures(&self) -> [Option<f64>; 7] {
        [self.median, self.p90, self.within, self.beyond, self.bias, self.own_median, self.own_p90]
    }

    /// As a line of a file, in the order of [`COLUMNS`].
    pub fn line(&self) -> String {
        let figures = self.figures().map(|figure| figure.map_or_else(String::new, |figure| format!("{figure:.1}")));
        format!("{},{},{}", self.key, self.n, figures.join(","))
    }

    /// From such a line.
    pub fn read(line: &str) -> Option<Row> {
        let cells: Vec<&str> = line.split(',').collect();
        let [key, n, median, p90, within, beyond, bias, own_median, own_p90] = cells[..] else { return None };
        let figure = |text: &str| if text.is_empty() { Some(None) } else { text.parse().ok().map(Some) };
        Some(Row {
            key: key.into(),
            n: n.parse().ok()?,
            median: figure(median)?,
            p90: figure(p90)?,
            within: figure(within)?,
            beyond: figure(beyond)?,
            bias: figure(bias)?,
            own_median: figure(own_median)?,
            own_p90: figure(own_p90)?,
        })
    }
}

/// Rows as a table of the page.
pub fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| | n | median error | p90 | within 10 % | beyond 30 % and outside the kernel's range | median with its sign | \
         kernel, seed to seed: median | p90 |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for row in rows {
        let [median, p90, within, beyond, bias, own, own_p90] = row.figures();
        let tenths = |figure: Option<f64>| figure.map_or_else(|| "n/a".into(), |figure| format!("{figure:.1} %"));
        let whole = |figure: Option<f64>| figure.map_or_else(|| "n/a".into(), |figure| format!("{figure:.0} %"));
        let bias = bias.map_or_else(|| "n/a".into(), |figure| format!("{figure:+.1} %"));
        let cells = [tenths(median), whole(p90), whole(within), whole(beyond), bias, tenths(own), whole(own_p90)];
        let _ = writeln!(text, "| {} | {} | {} |", row.title(), row.n, cells.join(" | "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quantity(group: Group, error: f64, outside: bool) -> Quantity {
        Quantity { name: "x".into(), group, kernel: 1.0, twin: 1.0, error, outside, own: Some(error.abs() / 2.0) }
    }

    #[test]
    fn rows_sum_errors_up() {
        let errors = [-4.0, 8.0, -40.0, 50.0].map(|error| quantity(Group::Lists, error, error > 0.0));
        let all =
            [&errors[..], &[quantity(Group::Compaction, 100.0, true), quantity(Group::Workload, 1.0, true)]].concat();
        let rows = rows(&all);
        let of = |key: &str| rows.iter().find(|row| row.key == key).expect("a row");
        let lists = of("lists");
        assert_eq!((lists.n, lists.median, lists.p90), (4, Some(24.0), Some(50.0)));
        assert_eq!((lists.within, lists.beyond, lists.bias), (Some(50.0), Some(25.0), Some(2.0)));
        assert_eq!((lists.own_median, lists.own_p90), (Some(12.0), Some(25.0)));
        assert_eq!((of(COUNTERS).n, of(OTHERS).n, of("workload").n, of("stalls").median), (5, 4, 1, None));
        let again: Vec<Row> = rows.iter().map(|row| Row::read(&row.line()).expect("a row")).collect();
        assert_eq!(again, rows);
        assert_eq!(Row::read("lists,4"), None);
        assert!(table(&rows).contains("| kswapd / direct split | 0 | n/a | n/a |"));
    }

    #[test]
    fn percentiles_are_ranks() {
        let values: Vec<f64> = (1..=10).map(f64::from).collect();
        assert_eq!(
            (percentile(&values, 90), percentile(&values, 1), percentile(&[], 90)),
            (Some(9.0), Some(1.0), None)
        );
    }
}
