//! Workloads that nobody would write: everything that a scenario can say, at random.

use super::draft::{Access, Cgroup, Draft, Pattern, Process, Region, anon, file};
use super::draw::Draw;
use super::machine::Wanted;
use super::tunables::Focus;
use super::{Archetype, work};

/// The archetype.
pub(super) static WILD: Archetype = Archetype {
    title: "Everything at random",
    machine: Wanted { nodes: &[1, 2, 2, 3, 4], swap: 50, memory: &[512, 640, 768] },
    focus: Focus::Reclaim,
    workload: wild,
};

fn wild(draw: &mut Draw, draft: &mut Draft) {
    let processes = draw.between(1, 5);
    let nodes = draft.machine.memory_nodes();
    if draw.percent(40) {
        let limit = draw.pick(&["memory.max", "memory.high", "memory.low", "memory.min"]);
        draft.cgroups.push(Cgroup { name: "/wild".into(), limits: vec![(limit, draw.between(40, 160))] });
    }
    for number in 0..processes {
        let (mut regions, mut accesses) = (Vec::new(), Vec::new());
        for name in ["first", "second", "third"].into_iter().take(draw.between(1, 3) as usize) {
            let region = region(draw, draft, name, processes);
            accesses.push(access(draw, name, region.kind.is_some()));
            regions.push(region);
        }
        let threads = draw.between(1, 4);
        let of_policy = draw.pick(&nodes);
        let grouped = !draft.cgroups.is_empty() && draw.percent(40);
        let cpu = draw.between(0, draft.machine.cpus() - 1);
        draft.processes.push(Process {
            name: format!("wild{number}"),
            threads,
            cpus: draw.percent(30).then(|| cpu.to_string()),
            pin: draw.percent(20),
            policy: match draw.between(0, 9) {
                0 => Some("interleave:all".into()),
                1 => Some(format!("preferred:{of_policy}")),
                2 => Some("local".into()),
                _ => None,
            },
            start_ms: draw.pick(&[0, 0, 700, 2000, 4000]),
            cgroup: grouped.then(|| "/wild".into()),
            regions,
            phases: (0..draw.between(1, 2)).map(|_| work(draw, (3, threads), 60, accesses.clone())).collect(),
        });
    }
}

fn region(draw: &mut Draw, draft: &mut Draft, name: &'static str, processes: u64) -> Region {
    let private = draw.percent(30);
    match draw.between(0, 9) {
        0..=4 => {
            let size = draft.anon(draw.between(5, 60) / processes + 2);
            let small = size < 24;
            Region {
                private,
                populate: draw.percent(50),
                huge: draw.pick(&[None, None, None, Some("madvise"), Some("never")]),
                locked: small && draw.percent(15),
                ..anon(name, size)
            }
        }
        5..=7 => {
            let of = file(name, draft.part(draw.between(10, 100) / processes + 2));
            Region { private, exec: draw.percent(10), ..of }
        }
        8 => Region { file: Some("common".into()), exec: draw.percent(10), ..file(name, draft.part(30)) },
        _ => Region { kind: Some("shmem"), ..anon(name, draft.take(draw.between(2, 24))) },
    }
}

fn access(draw: &mut Draw, region: &'static str, has_file: bool) -> Access {
    let pattern = match draw.between(0, 4) {
        0 => Pattern::Uniform,
        1 => Pattern::Sequential,
        2 => Pattern::Strided(draw.pick(&[16, 64, 1024])),
        3 => Pattern::Zipf(draw.between(2, 14)),
        _ => Pattern::HotCold(draw.between(5, 50), draw.between(60, 99)),
    };
    Access {
        region,
        pattern,
        syscall: has_file && draw.percent(60),
        write: draw.pick(&[0, 0, 10, 50, 100]),
        think_us: draw.pick(&[0, 5, 20, 100]),
        sleep_us: draw.pick(&[0, 0, 0, 500]),
        ..Access::default()
    }
}
