//! Which quantities the error of many scenarios is made of.

use super::compare::Quantity;
use super::figures::Group;
use std::collections::BTreeMap;
use std::fmt::Write;

/// An error counts as this much at most, so that one scenario does not outweigh all others.
const MOST: f64 = 100.0;
/// Rows that are shown.
const SHOWN: usize = 20;

/// A quantity of several scenarios.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sum {
    n: usize,
    error: f64,
    signed: f64,
    beyond: usize,
}

/// The name of a quantity without what only its scenario has.
fn kind(quantity: &Quantity) -> String {
    let name = quantity.name.as_str();
    match quantity.group {
        Group::Workload if name.starts_with("seconds") => "seconds of phases".into(),
        Group::Workload => "accesses/s of phases".into(),
        Group::Placement => match name.strip_prefix("node ").and_then(|rest| rest.split_once(' ')) {
            Some((_, counter)) => format!("{counter} of nodes"),
            None => "pages of regions on nodes".into(),
        },
        _ => name.into(),
    }
}

/// A table of quantities by their share of all errors, largest first.
pub fn ranking<'q>(quantities: impl Iterator<Item = &'q Quantity>) -> String {
    let mut sums: BTreeMap<String, Sum> = BTreeMap::new();
    for quantity in quantities {
        let sum = sums.entry(kind(quantity)).or_default();
        sum.n += 1;
        sum.error += quantity.error.abs().min(MOST);
        sum.signed += quantity.error.clamp(-MOST, MOST);
        sum.beyond += usize::from(quantity.is_beyond());
    }
    let all: f64 = sums.values().map(|sum| sum.error).sum();
    let mut sums: Vec<(String, Sum)> = sums.into_iter().filter(|(_, sum)| sum.error > 0.0).collect();
    sums.sort_by(|a, b| b.1.error.total_cmp(&a.1.error));
    let mut text = String::from("\n| quantity | n | share of all errors | mean error | with its sign | beyond |\n");
    text.push_str("|---|--:|--:|--:|--:|--:|\n");
    for (name, Sum { n, error, signed, beyond }) in sums.into_iter().take(SHOWN) {
        let count = n as f64;
        let (share, mean, signed) = (100.0 * error / all, error / count, signed / count);
        let _ = writeln!(text, "| {name} | {n} | {share:.1} % | {mean:.1} % | {signed:+.1} % | {beyond} |");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_ranked_by_their_share_of_errors() {
        let of = |name: &str, group, error| {
            let (kernel, twin, outside, own) = (1.0, 1.0, true, None);
            Quantity { name: name.into(), group, kernel, twin, error, outside, own }
        };
        let all = [
            of("pageoutrun", Group::Stalls, -10.0),
            of("pageoutrun", Group::Stalls, 20.0),
            of("node 1 numa_hit", Group::Placement, 500.0),
            of("seconds of a/0", Group::Workload, 70.0),
            of("pgactivate", Group::Activated, 0.0),
        ];
        let text = ranking(all.iter());
        let rows: Vec<&str> = text.lines().skip(3).collect();
        assert_eq!(
            rows,
            [
                "| numa_hit of nodes | 1 | 50.0 % | 100.0 % | +100.0 % | 1 |",
                "| seconds of phases | 1 | 35.0 % | 70.0 % | +70.0 % | 1 |",
                "| pageoutrun | 2 | 15.0 % | 15.0 % | +5.0 % | 0 |",
            ]
        );
    }
}
