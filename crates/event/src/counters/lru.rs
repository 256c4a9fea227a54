//! `/proc/mmtwin_lru`, which the lab's own module shows: the LRU lists in full, and the batches before them.

use super::{Problem, lines};

/// Everything on the LRU lists of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lru {
    /// By cgroup, from the root on, then by node.
    pub lruvecs: Vec<Lruvec>,
    /// Folios that CPUs have not yet put on a list; batches without any are omitted.
    pub batches: Vec<Batch>,
}

/// The lists of a cgroup on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lruvec {
    /// The node.
    pub node: u32,
    /// Path of the cgroup, `/` for the root.
    pub cgroup: String,
    /// Cost of reclaiming anonymous pages, in the kernel's unit.
    pub anon_cost: u64,
    /// Cost of reclaiming pages of files.
    pub file_cost: u64,
    /// Evictions and activations so far, by which refaults are measured.
    pub nonresident_age: u64,
    /// Refaults of anonymous pages at the last reclaim.
    pub refaults_anon: u64,
    /// Refaults of pages of files at the last reclaim.
    pub refaults_file: u64,
    /// `inactive_anon`, `active_anon`, `inactive_file`, `active_file`, each from its tail.
    pub lists: [Vec<Run>; 4],
}

/// A CPU's batch of folios.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// The CPU.
    pub cpu: u32,
    /// The batch they are in: `lru_add`, `deactivate_file`, `deactivate`, `lazyfree`, `activate`.
    pub name: String,
    /// Node and folios, in order of their addition.
    pub runs: Vec<(u32, Run)>,
}

/// Neighbouring folios that are alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Run {
    /// Name of the zone.
    pub zone: String,
    /// Order of each.
    pub order: u32,
    /// Their backing.
    pub backing: Backing,
    /// On an active list, or will be.
    pub active: bool,
    /// Accessed since the last check.
    pub referenced: bool,
    /// Not yet written.
    pub dirty: bool,
    /// Being written.
    pub writeback: bool,
    /// To be reclaimed when it is written.
    pub reclaim: bool,
    /// Was on the active list, or refaulted soon (`PG_workingset`).
    pub workingset: bool,
    /// Has a swap slot.
    pub swapcache: bool,
    /// Has buffers, which reclaim has to release first.
    pub buffers: bool,
    /// In some page table.
    pub mapped: bool,
    /// Cannot be reclaimed.
    pub unevictable: bool,
    /// How many.
    pub folios: u64,
}

/// Backing of a folio.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backing {
    /// Nothing: anonymous memory.
    Anon,
    /// tmpfs.
    Shmem,
    /// A file on a disk.
    #[default]
    File,
    /// A block device itself: metadata of a file system.
    Device,
}

/// Names of the lists.
const LISTS: [&str; 4] = ["inactive_anon", "active_anon", "inactive_file", "active_file"];

/// Reads all lines, as `crates/lab/module/lru.c` describes them.
pub fn lru(text: &str, problems: &mut Vec<Problem>) -> Lru {
    let mut lru = Lru::default();
    for (line, text) in lines(text) {
        if add(text, &mut lru).is_none() {
            problems.push(Problem { line, message: "expected a lruvec, a list behind its lruvec, or a batch" });
        }
    }
    lru
}

fn add(line: &str, lru: &mut Lru) -> Option<()> {
    let (what, rest) = line.split_once(' ')?;
    let value = |name: &str| rest.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let number = |name: &str| value(name)?.parse::<u64>().ok();
    let runs =
        || value("runs")?.split(',').map(str::trim).filter(|run| !run.is_empty()).map(Some).collect::<Option<Vec<_>>>();
    match what {
        "lruvec" => lru.lruvecs.push(Lruvec {
            node: value("node")?.parse().ok()?,
            cgroup: value("cgroup")?.into(),
            anon_cost: number("anon_cost")?,
            file_cost: number("file_cost")?,
            nonresident_age: number("nonresident_age")?,
            refaults_anon: number("refaults_anon")?,
            refaults_file: number("refaults_file")?,
            lists: Default::default(),
        }),
        "list" => {
            let of = lru.lruvecs.last_mut()?;
            let same = value("node")?.parse() == Ok(of.node) && value("cgroup")? == of.cgroup;
            let list = LISTS.iter().position(|name| Some(*name) == value("name")).filter(|_| same)?;
            of.lists[list] = runs()?.into_iter().map(run).collect::<Option<_>>()?;
        }
        "batch" => {
            let with_node = |text: &str| {
                let (node, rest) = text.split_once('/')?;
                Some((node.parse().ok()?, run(rest)?))
            };
            lru.batches.push(Batch {
                cpu: value("cpu")?.parse().ok()?,
                name: value("name")?.into(),
                runs: runs()?.into_iter().map(with_node).collect::<Option<_>>()?,
            });
        }
        _ => return None,
    }
    Some(())
}

/// `ZONE/ORDER/FLAGS*FOLIOS`
fn run(text: &str) -> Option<Run> {
    let (look, folios) = text.split_once('*')?;
    let mut parts = look.split('/');
    let (zone, order, flags) = (parts.next()?.to_string(), parts.next()?.parse().ok()?, parts.next()?);
    let mut run = Run { zone, order, folios: folios.parse().ok()?, ..Run::default() };
    for flag in flags.bytes() {
        match flag {
            b'a' => run.backing = Backing::Anon,
            b's' => run.backing = Backing::Shmem,
            b'b' => run.backing = Backing::Device,
            b'A' => run.active = true,
            b'r' => run.referenced = true,
            b'd' => run.dirty = true,
            b'w' => run.writeback = true,
            b'i' => run.reclaim = true,
            b'k' => run.workingset = true,
            b'c' => run.swapcache = true,
            b'p' => run.buffers = true,
            b'm' => run.mapped = true,
            b'x' => run.unevictable = true,
            _ => return None,
        }
    }
    parts.next().is_none().then_some(run)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "lruvec node=0 cgroup=/ anon_cost=1 file_cost=2 nonresident_age=3 refaults_anon=4 refaults_file=5\n\
        list node=0 cgroup=/ name=inactive_file runs=DMA32/0/*31,DMA32/2/brdp*2,DMA/0/m*1\n\
        lruvec node=0 cgroup=/web anon_cost=0 file_cost=0 nonresident_age=0 refaults_anon=0 refaults_file=0\n\
        batch cpu=3 name=lru_add runs=1/Normal/0/aA*7\n";

    #[test]
    fn lists_and_batches() {
        let mut problems = Vec::new();
        let lru = lru(TEXT, &mut problems);
        assert_eq!(problems, []);
        let of = |zone: &str, folios| Run { zone: zone.into(), folios, ..Run::default() };
        let first = &lru.lruvecs[0];
        assert_eq!((first.anon_cost, first.nonresident_age, first.refaults_file), (1, 3, 5));
        let (device, flags) = (Backing::Device, Run { order: 2, ..of("DMA32", 2) });
        let flags = Run { backing: device, referenced: true, dirty: true, buffers: true, ..flags };
        assert_eq!(first.lists[2], [of("DMA32", 31), flags, Run { mapped: true, ..of("DMA", 1) }]);
        assert_eq!((lru.lruvecs[1].cgroup.as_str(), lru.lruvecs[1].lists[2].len()), ("/web", 0));
        let anon = Run { backing: Backing::Anon, active: true, ..of("Normal", 7) };
        assert_eq!(lru.batches, [Batch { cpu: 3, name: "lru_add".into(), runs: vec![(1, anon)] }]);
    }

    #[test]
    fn unreadable_text_has_its_line() {
        let wrong = [
            "list node=0 cgroup=/ name=inactive_file runs=DMA/0/*1",
            "lruvec node=0 cgroup=/",
            "batch cpu=0 name=x runs=0/DMA/0/?*1",
            "batch cpu=0 name=x runs=0/DMA/0/r",
            "nonsense",
        ];
        let mut problems = Vec::new();
        assert_eq!(lru(&wrong.join("\n"), &mut problems), Lru::default());
        assert_eq!(problems.iter().map(|problem| problem.line).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
        for end in 0..TEXT.len() {
            lru(&TEXT[..end], &mut Vec::new());
        }
    }
}
