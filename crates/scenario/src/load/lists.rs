//! Lists such as "0-8191" are short to write and long in memory: how many numbers a scenario may list.

use crate::tree::{Fault, Faults, Node, Sources, Value};
use crate::units::List;

/// Numbers of all lists at most.
const MAX: u64 = 1 << 22;

/// A fault if the texts of a tree, read as lists, have more numbers.
pub(super) fn check(sources: &Sources, tree: &Node) -> Result<(), Faults> {
    let mut all = 0;
    add(sources, tree, &mut all)
}

fn add(sources: &Sources, node: &Node, all: &mut u64) -> Result<(), Faults> {
    match &node.value {
        Value::Array(nodes) => nodes.iter().try_for_each(|node| add(sources, node, all)),
        Value::Table(table) => table.values().try_for_each(|(_, node)| add(sources, node, all)),
        Value::Text(text) | Value::Bare(text) => {
            *all = all.saturating_add(numbers(text));
            if *all <= MAX {
                return Ok(());
            }
            let message = format!("with this list there are more than {MAX} numbers in all lists");
            Err(Fault::new(sources, node.place, message).into())
        }
        _ => Ok(()),
    }
}

/// Numbers of a text that may be a list, perhaps behind the name of a policy. None is read further than to the largest
/// number there is.
fn numbers(text: &str) -> u64 {
    let list = text.split_once(':').map_or(text, |(_, list)| list);
    let width = |part: &str| {
        let (first, last) = part.split_once('-')?;
        let (first, last) = (first.trim().parse::<u64>().ok()?, last.trim().parse::<u64>().ok()?);
        Some(last.checked_sub(first)?.saturating_add(1).min(u64::from(List::MAX) + 1))
    };
    list.split(',').filter_map(width).fold(0, |sum: u64, width| sum.saturating_add(width))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn widths() {
        assert_eq!(
            ["0-8191", "bind:0-3", "0-3, 8-9", "3-1", "a-b", "0-99999999999", "0-18446744073709551615"].map(numbers),
            [8192, 4, 6, 0, 0, 8192, 8192]
        );
    }
}
