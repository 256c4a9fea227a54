//! Where the pages of regions are, from `/proc/PID/numa_maps`.
//!
//! That file counts what page tables map, so it shows pages that are marked for a hinting fault too, which
//! `move_pages(2)` does not. Reading it walks the page tables of the whole process under its `mmap_lock`.

use mmtwin_event::counters::Row;
use std::fs;

/// Bytes of a base page, in kB.
const PAGE_KB: u64 = 4;

/// A region of a process.
#[derive(Clone, Debug)]
pub struct Placed {
    /// Name of the region.
    pub region: String,
    /// First address.
    pub start: u64,
    /// Behind the last address.
    pub end: u64,
}

/// Pages by node of each of a process's regions; `None` if the process is gone or the kernel has no such file.
pub fn of(pid: u32, regions: &[Placed], nodes: usize) -> Option<Vec<Vec<u64>>> {
    let text = fs::read_to_string(format!("/proc/{pid}/numa_maps")).ok()?;
    Some(parse(&text, regions, nodes))
}

/// A line per mapping: its first address, its policy, then words, of which `N0=5` counts pages of the size that
/// `kernelpagesize_kB` says.
fn parse(text: &str, regions: &[Placed], nodes: usize) -> Vec<Vec<u64>> {
    let mut pages = vec![vec![0; nodes]; regions.len()];
    for line in text.lines() {
        let mut words = line.split(' ');
        let Some(address) = words.next().and_then(|word| u64::from_str_radix(word, 16).ok()) else { continue };
        let Some(at) = regions.iter().position(|region| (region.start..region.end).contains(&address)) else {
            continue;
        };
        let value = |name: &str| line.split(' ').find_map(|w| w.strip_prefix(name)?.strip_prefix('=')?.parse().ok());
        let size: u64 = value("kernelpagesize_kB").unwrap_or(PAGE_KB);
        for word in words {
            let count = word.strip_prefix('N').and_then(|word| word.split_once('='));
            if let Some((Ok(node), Ok(count))) = count.map(|(n, c)| (n.parse::<usize>(), c.parse::<u64>()))
                && let Some(pages) = pages[at].get_mut(node)
            {
                *pages += count * (size / PAGE_KB);
            }
        }
    }
    pages
}

/// Rows of the counter source `numa_maps`: key `PROCESS/REGION`, names `N0`, `N1`, ..., pages.
pub fn rows<'a>(process: &str, placed: impl Iterator<Item = (&'a Placed, &'a Vec<u64>)>) -> Vec<Row> {
    placed
        .map(|(region, pages)| {
            let mut row = Row::new(format!("{process}/{}", region.region));
            pages.iter().enumerate().for_each(|(node, &pages)| row.push(format!("N{node}"), Some(pages)));
            row
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "\
00400000 default file=/bin/x mapped=7 N0=7 kernelpagesize_kB=4
7f0000000000 default
7f0000200000 bind:0-1 anon=3 dirty=3 N0=1 N1=2 kernelpagesize_kB=4
7f0000300000 bind:0-1 anon=4 dirty=4 N1=4 kernelpagesize_kB=4
7f0001000000 default file=/anon_hugepage\\040(deleted) huge anon=1 dirty=1 N1=1 kernelpagesize_kB=2048
";

    #[test]
    fn mappings_of_a_region_add_up() {
        let region = |name: &str, start, end| Placed { region: name.into(), start, end };
        let regions = [region("a", 0x7f0000200000, 0x7f0000400000), region("b", 0x7f0001000000, 0x7f0001200000)];
        let pages = parse(MAPS, &regions, 2);
        assert_eq!(pages, [vec![1, 6], vec![0, 512]]);
        let rows = rows("p", regions.iter().zip(&pages));
        assert_eq!((rows[1].key.as_str(), rows[1].value("N1")), ("p/b", Some(512)));
        assert_eq!(parse("nonsense\n7f0000200000 N9=4 N0=x", &regions, 2), [vec![0, 0], vec![0, 0]]);
    }
}
