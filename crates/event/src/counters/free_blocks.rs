//! Free blocks and pageblocks by type: the two tables of `/proc/pagetypeinfo`.

use super::{Problem, lines};

/// Free blocks of one type in a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FreeBlocks {
    /// Node.
    pub node: u32,
    /// Zone.
    pub zone: String,
    /// The kernel's name of the type.
    pub of: String,
    /// Blocks by order.
    pub blocks: Vec<u64>,
    /// Pageblocks of the type, free or not; `None`: they are not counted.
    pub pageblocks: Option<u64>,
}

/// Reads both tables. Lines of a node are theirs; others are skipped.
pub fn free_blocks(text: &str, problems: &mut Vec<Problem>) -> Vec<FreeBlocks> {
    let of_nodes = || lines(text).filter(|(_, line)| line.starts_with("Node"));
    let header = text.lines().find_map(|line| line.strip_prefix("Number of blocks type"));
    let types: Vec<&str> = header.unwrap_or("").split_ascii_whitespace().collect();
    let mut all: Vec<FreeBlocks> = Vec::new();
    for (number, text) in of_nodes() {
        match (line(text), pageblocks(text)) {
            (Some(blocks), _) => all.push(blocks),
            (None, Some(_)) => {}
            (None, None) => problems.push(Problem { line: number, message: "expected counts of blocks of a zone" }),
        }
    }
    for (node, zone, counts) in of_nodes().filter_map(|(_, line)| pageblocks(line)) {
        for (of, count) in types.iter().zip(counts) {
            let here = all.iter_mut().find(|at| (at.node, &*at.zone, &*at.of) == (node, zone, *of));
            here.into_iter().for_each(|at| at.pageblocks = Some(count));
        }
    }
    all
}

/// `Node 0, zone    DMA32     24    214     10 ...`
fn pageblocks(text: &str) -> Option<(u32, &str, Vec<u64>)> {
    let (node, rest) = text.strip_prefix("Node")?.split_once(',')?;
    let mut words = rest.trim().strip_prefix("zone")?.split_ascii_whitespace();
    let zone = words.next()?;
    Some((node.trim().parse().ok()?, zone, words.map(|word| word.parse().ok()).collect::<Option<_>>()?))
}

/// `Node    0, zone    DMA32, type    Unmovable      5     14 ...`
fn line(text: &str) -> Option<FreeBlocks> {
    let mut parts = text.splitn(3, ',').map(str::trim);
    let node = parts.next()?.strip_prefix("Node")?.trim().parse().ok()?;
    let zone = parts.next()?.strip_prefix("zone")?.trim().to_string();
    let mut words = parts.next()?.strip_prefix("type")?.split_ascii_whitespace();
    let of = words.next()?.to_string();
    // A count that was cut off at a limit is printed with a sign before it.
    let blocks = words.map(|word| word.trim_start_matches('>').parse().ok()).collect::<Option<_>>()?;
    Some(FreeBlocks { node, zone, of, blocks, pageblocks: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_free_blocks_are_read() {
        let text = "Page block order: 9\nPages per block:  512\n\nFree pages count per migrate type at order       0      1 \n\
                    Node    0, zone      DMA, type    Unmovable      0      3 \n\
                    Node    1, zone    DMA32, type      Movable >100000      1 \n\n\
                    Number of blocks type     Unmovable      Movable \nNode 0, zone      DMA            1            7 \n";
        let mut problems = Vec::new();
        let all = free_blocks(text, &mut problems);
        assert_eq!(problems, []);
        let named = all.iter().map(|of| (of.node, of.zone.as_str(), of.of.as_str(), &of.blocks[..], of.pageblocks));
        let expected =
            [(0, "DMA", "Unmovable", &[0, 3][..], Some(1)), (1, "DMA32", "Movable", &[100_000, 1][..], None)];
        assert_eq!(named.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn counts_that_are_none_have_their_line() {
        let text =
            "Free pages\nNode    0, zone      DMA, type    Unmovable      0     -1\nNode 0, zone DMA x\nNode 0 DMA\n";
        let mut problems = Vec::new();
        assert_eq!(free_blocks(text, &mut problems), []);
        assert_eq!(problems.iter().map(|problem| problem.line).collect::<Vec<_>>(), [2, 3, 4]);
    }
}
