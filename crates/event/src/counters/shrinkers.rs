//! `/proc/mmtwin_shrinkers`, which the lab's own module shows: shrinkers of slab caches.

use super::{Problem, lines};

/// A shrinker on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shrinker {
    /// Function that shrinks, as `shrink_slab` events show it.
    pub name: String,
    /// File system of a superblock's shrinker.
    pub of: Option<String>,
    /// The node; the first one for those that do not count by node.
    pub node: u32,
    /// Objects that it would shrink for the root cgroup.
    pub objects: u64,
    /// Deferred objects.
    pub deferred: u64,
    /// Cost to recreate an object (`seeks`); 0: shrunk by half.
    pub seeks: u32,
    /// Objects of a call; 0: the kernel's default of 128.
    pub batch: u64,
    /// Counts by node.
    pub by_node: bool,
    /// Counts by cgroup.
    pub by_cgroup: bool,
}

/// Reads all lines, as `crates/lab/module/shrinkers.c` describes them; the order is that of reclaim.
pub fn shrinkers(text: &str, problems: &mut Vec<Problem>) -> Vec<Shrinker> {
    let mut all = Vec::new();
    for (line, text) in lines(text) {
        match shrinker(text) {
            Some(shrinker) => all.push(shrinker),
            None => problems.push(Problem { line, message: "expected a shrinker" }),
        }
    }
    all
}

fn shrinker(line: &str) -> Option<Shrinker> {
    let mut shrinker = Shrinker::default();
    for word in line.split_ascii_whitespace() {
        let (name, value) = word.split_once('=')?;
        match name {
            "name" => shrinker.name = value.into(),
            "of" => shrinker.of = (value != "-").then(|| value.into()),
            "node" => shrinker.node = value.parse().ok()?,
            "objects" => shrinker.objects = value.parse().ok()?,
            "deferred" => shrinker.deferred = value.parse().ok()?,
            "seeks" => shrinker.seeks = value.parse().ok()?,
            "batch" => shrinker.batch = value.parse().ok()?,
            "flags" => (shrinker.by_node, shrinker.by_cgroup) = (value.contains('n'), value.contains('m')),
            _ => {}
        }
    }
    (!shrinker.name.is_empty()).then_some(shrinker)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shrinkers_in_order() {
        let text = "name=super_cache_scan of=ext4 node=1 objects=63 deferred=7 seeks=2 batch=1024 flags=nm\n\
                    name=mb_cache_scan of=- node=0 objects=0 deferred=0 seeks=2 batch=0 flags=-\n\
                    name=x objects=-1\n";
        let mut problems = Vec::new();
        let all = shrinkers(text, &mut problems);
        let first = Shrinker {
            name: "super_cache_scan".into(),
            of: Some("ext4".into()),
            node: 1,
            objects: 63,
            deferred: 7,
            seeks: 2,
            batch: 1024,
            by_node: true,
            by_cgroup: true,
        };
        assert_eq!(all, [first, Shrinker { name: "mb_cache_scan".into(), seeks: 2, ..Shrinker::default() }]);
        assert_eq!(problems.iter().map(|problem| problem.line).collect::<Vec<_>>(), [3]);
    }
}
