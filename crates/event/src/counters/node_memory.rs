//! `/proc/mmtwin_nodes`, which the lab's own module shows: what kswapd, reclaim and compaction remember.

use super::{Problem, Row, lines};

/// Rows of `/proc/mmtwin_nodes`, as `crates/lab/module/nodes.c` describes them: key `0` for a node, `0/Normal` for a zone,
/// as those of zoneinfo have them. Numbers with `0x` are hexadecimal.
pub fn node_memory(text: &str, problems: &mut Vec<Problem>) -> Vec<Row> {
    let mut rows = Vec::new();
    for (line, text) in lines(text) {
        let (mut row, mut of) = (Row::default(), [None, None]);
        for (name, value) in text.split_ascii_whitespace().filter_map(|word| word.split_once('=')) {
            match name {
                "node" => of[0] = Some(value),
                "zone" => of[1] = Some(value),
                _ => row.push(name, number(value)),
            }
        }
        match of {
            [Some(node), zone] => {
                row.key = zone.map_or(node.into(), |zone| format!("{node}/{zone}"));
                rows.push(row);
            }
            [None, _] => problems.push(Problem { line, message: "expected data of a node or a zone" }),
        }
    }
    rows
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_and_zones() {
        let text =
            "node=1 kswapd_order=3 flags=0x12\nnode=1 zone=DMA32 watermark_boost=512 compact_order_failed=-1\nx=1\n";
        let mut problems = Vec::new();
        let rows = node_memory(text, &mut problems);
        assert_eq!(rows.iter().map(|row| row.key.as_str()).collect::<Vec<_>>(), ["1", "1/DMA32"]);
        assert_eq!((rows[0].value("kswapd_order"), rows[0].value("flags")), (Some(3), Some(18)));
        assert_eq!((rows[1].value("watermark_boost"), rows[1].value("compact_order_failed")), (Some(512), None));
        assert_eq!(problems.iter().map(|problem| problem.line).collect::<Vec<_>>(), [3]);
    }
}
