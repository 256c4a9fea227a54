//! Memory policies as the kernel takes them: `set_mempolicy(2)` and `mbind(2)`.

use mmtwin_scenario::Machine;
use mmtwin_scenario::workload::{Nodes, Policy};
use std::io;

/// A policy as the system calls take it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemPolicy {
    mode: libc::c_int,
    /// A bit per node.
    nodes: Vec<u64>,
}

/// `MPOL_PREFERRED_MANY`, since Linux 5.15.
const PREFERRED_MANY: libc::c_int = 5;

/// `MPOL_F_NUMA_BALANCING`, since Linux 5.12.
const BALANCING: libc::c_int = 1 << 13;

impl MemPolicy {
    /// A policy of a scenario; `all` are the nodes of its machine that have memory.
    pub fn of(policy: &Policy, machine: &Machine) -> MemPolicy {
        let listed = |nodes: &Nodes| match nodes {
            Nodes::All => (0..).zip(&machine.nodes).filter(|(_, n)| n.memory.0 > 0).map(|(nid, _)| nid).collect(),
            Nodes::These(list) => list.numbers().to_vec(),
        };
        let (mode, nodes) = match policy {
            Policy::Default => (libc::MPOL_DEFAULT, Vec::new()),
            Policy::Local => (libc::MPOL_LOCAL, Vec::new()),
            Policy::Bind(nodes) => (libc::MPOL_BIND, listed(nodes)),
            Policy::BindBalancing(nodes) => (libc::MPOL_BIND | BALANCING, listed(nodes)),
            Policy::Preferred(node) => (libc::MPOL_PREFERRED, vec![*node]),
            Policy::PreferredMany(nodes) => (PREFERRED_MANY, listed(nodes)),
            Policy::Interleave(nodes) => (libc::MPOL_INTERLEAVE, listed(nodes)),
        };
        let mut mask = vec![0; nodes.iter().max().map_or(0, |last| *last as usize / 64 + 1)];
        nodes.iter().for_each(|node| mask[*node as usize / 64] |= 1u64 << (node % 64));
        MemPolicy { mode, nodes: mask }
    }

    /// Makes it the policy of this thread and of those it starts.
    pub fn set_for_thread(&self) -> io::Result<()> {
        let (mask, bits) = self.mask();
        // SAFETY: the kernel reads `bits` - 1 bits at `mask`, which is null or points to that many.
        done(unsafe { libc::syscall(libc::SYS_set_mempolicy, self.mode, mask, bits) })
    }

    /// Makes it the policy of a mapping.
    pub fn set_for_range(&self, start: *mut u8, length: usize) -> io::Result<()> {
        let (mask, bits) = self.mask();
        // SAFETY: as above; of the mapping only its policy changes, whatever is in it.
        done(unsafe { libc::syscall(libc::SYS_mbind, start, length, self.mode, mask, bits, 0) })
    }

    /// The mask, and what the kernel calls `maxnode`: one more than the number of bits.
    fn mask(&self) -> (*const u64, libc::c_ulong) {
        match self.nodes.len() {
            0 => (std::ptr::null(), 0),
            words => (self.nodes.as_ptr(), words as libc::c_ulong * 64 + 1),
        }
    }
}

fn done(result: libc::c_long) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_bits() {
        let text = "[machine]\n[[machine.node]]\ncpus = \"0\"\nmemory = \"1 GiB\"\n[[machine.node]]\ncpus = \"1\"\n\
                    [[machine.node]]\nmemory = \"1 GiB\"\n[kernel]\nrelease = \"6.1\"\n";
        let scenario = mmtwin_scenario::parse("s", text, std::path::Path::new(""), &[]).unwrap();
        let of = |policy: &str| MemPolicy::of(&policy.parse().unwrap(), &scenario.machine);
        assert_eq!(of("interleave:all"), MemPolicy { mode: libc::MPOL_INTERLEAVE, nodes: vec![0b101] });
        assert_eq!(of("bind:1,65"), MemPolicy { mode: libc::MPOL_BIND, nodes: vec![0b10, 0b10] });
        assert_eq!(of("bind-balancing:1"), MemPolicy { mode: libc::MPOL_BIND | 0x2000, nodes: vec![0b10] });
        assert_eq!(of("default").mask(), (std::ptr::null(), 0));
        assert_eq!(of("preferred:2").mask().1, 65);
    }

    #[test]
    fn the_kernel_takes_them() {
        let machine = |text| mmtwin_scenario::parse("s", text, std::path::Path::new(""), &[]).unwrap().machine;
        let machine =
            machine("[machine]\n[[machine.node]]\ncpus = \"0\"\nmemory = \"1 GiB\"\n[kernel]\nrelease = \"6.1\"\n");
        let shown = |policy: &str| {
            // In a thread of its own: the policy ends with it.
            let policy = MemPolicy::of(&policy.parse().unwrap(), &machine);
            let thread = std::thread::spawn(move || {
                policy.set_for_thread().map(|()| std::fs::read_to_string("/proc/thread-self/numa_maps").unwrap())
            });
            thread.join().unwrap()
        };
        match shown("bind:0") {
            Ok(maps) => assert!(maps.lines().any(|line| line.split(' ').nth(1) == Some("bind:0")), "{maps}"),
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::ENOSYS), "{error}"),
        }
        assert!(shown("bind:9").is_err(), "there is no such node");
    }
}
