//! Workloads that serve: a database, a cache, containers, a service beside a batch job, a server on several nodes,
//! shared memory, workers that are started one after the other.

use super::draft::{Access, Cgroup, Draft, Pattern, Phase, Process, Region, anon, file, pages};
use super::draw::Draw;
use super::machine::{NUMA, SMALL};
use super::tunables::Focus;
use super::{Archetype, nodes, work};

/// All of them.
pub(super) static ALL: [Archetype; 7] = [
    Archetype { title: "A database and its backup", machine: SMALL, focus: Focus::Reclaim, workload: database },
    Archetype { title: "A cache in memory", machine: SMALL, focus: Focus::Reclaim, workload: cache },
    Archetype { title: "Containers at their limits", machine: SMALL, focus: Focus::Reclaim, workload: containers },
    Archetype { title: "A batch job beside a service", machine: SMALL, focus: Focus::Reclaim, workload: batch },
    Archetype { title: "A server on several nodes", machine: NUMA, focus: Focus::Balancing, workload: nodes::server },
    Archetype { title: "Processes that share memory", machine: SMALL, focus: Focus::Reclaim, workload: shared },
    Archetype { title: "Workers that come and go", machine: SMALL, focus: Focus::Reclaim, workload: workers },
];

fn database(draw: &mut Draw, draft: &mut Draft) {
    let threads = draw.between(1, 3);
    let heap = Region { populate: true, ..anon("heap", draft.anon(draw.between(10, 45))) };
    let tables = file("tables", draft.part(draw.between(40, 120)));
    let syscall = draw.percent(70);
    let of_tables = Access {
        region: "tables",
        pattern: Pattern::Zipf(draw.between(4, 12)),
        syscall,
        write: draw.pick(&[0, 0, 5, 20]),
        think_us: draw.pick(&[5, 20, 60]),
        ..Access::default()
    };
    let of_heap = Access {
        region: "heap",
        pattern: draw.pick(&[Pattern::Zipf(9), Pattern::Uniform, Pattern::HotCold(20, 80)]),
        write: draw.pick(&[10, 30, 50]),
        think_us: draw.pick(&[5, 20]),
        ..Access::default()
    };
    draft.processes.push(Process {
        name: "database".into(),
        threads,
        regions: vec![heap, tables],
        phases: vec![work(draw, (7, threads), 60, vec![of_tables, of_heap])],
        ..Process::default()
    });
    let archive = file("archive", draft.part(draw.between(50, 110)));
    let cgroup = draw.percent(30).then(|| {
        let limit = draw.pick(&["memory.max", "memory.high"]);
        draft.cgroups.push(Cgroup { name: "/backup".into(), limits: vec![(limit, draw.pick(&[24, 48, 96]))] });
        "/backup".to_string()
    });
    let count = pages(archive.mib);
    let read = Access {
        region: "archive",
        pattern: Pattern::Sequential,
        syscall: true,
        count: Some(count),
        ..Access::default()
    };
    draft.processes.push(Process {
        name: "backup".into(),
        start_ms: draw.pick(&[0, 1000, 2500, 4000]),
        cgroup,
        regions: vec![archive],
        phases: vec![Phase { accesses: vec![read], ..Phase::default() }],
        ..Process::default()
    });
}

fn cache(draw: &mut Draw, draft: &mut Draft) {
    let threads = draw.between(1, 4);
    let heap = Region { populate: draw.percent(80), ..anon("heap", draft.anon(draw.between(50, 115))) };
    let hit = Access {
        region: "heap",
        pattern: draw.pick(&[Pattern::HotCold(20, 95), Pattern::HotCold(10, 80), Pattern::Zipf(8), Pattern::Zipf(11)]),
        write: draw.pick(&[5, 10, 30]),
        think_us: draw.pick(&[5, 10, 40]),
        ..Access::default()
    };
    draft.processes.push(Process {
        name: "cache".into(),
        threads,
        regions: vec![heap],
        phases: vec![work(draw, (8, threads), 20, vec![hit])],
        ..Process::default()
    });
    if draw.percent(60) {
        let dump = file("dump", draft.part(draw.between(20, 60)));
        let write = Access {
            region: "dump",
            pattern: Pattern::Sequential,
            syscall: true,
            write: draw.pick(&[0, 100]),
            count: Some(pages(dump.mib)),
            ..Access::default()
        };
        draft.processes.push(Process {
            name: "snapshot".into(),
            start_ms: draw.between(1, 5) * 1000,
            regions: vec![dump],
            phases: vec![Phase { accesses: vec![write], ..Phase::default() }],
            ..Process::default()
        });
    }
}

fn containers(draw: &mut Draw, draft: &mut Draft) {
    let has_swap = draft.machine.swap_mib() > 0;
    for number in 1..=draw.between(2, 4) {
        let name = format!("/c{number}");
        let (max, threads) = (draw.pick(&[32, 48, 64, 96]), draw.between(1, 2));
        let mut limits = vec![("memory.max", max)];
        match draw.between(0, 9) {
            0 | 1 => limits.push(("memory.high", max * 3 / 4)),
            2 => limits.push(("memory.low", max / 2)),
            3 => limits = vec![("memory.high", max)],
            4 if has_swap => limits.push(("memory.swap.max", max / 2)),
            _ => {}
        }
        // Without swap the heap must fit beside what the process itself needs.
        let share = if has_swap { draw.between(40, 130) } else { draw.between(20, 75) };
        let heap = Region { populate: draw.percent(50), ..anon("heap", draft.take(max * share / 100)) };
        let data = file("data", max * draw.between(60, 250) / 100);
        let of_heap = Access {
            region: "heap",
            pattern: draw.pick(&[Pattern::Uniform, Pattern::HotCold(20, 90), Pattern::Zipf(9)]),
            write: 30,
            think_us: draw.pick(&[20, 50, 100]),
            ..Access::default()
        };
        let of_data = Access {
            region: "data",
            pattern: draw.pick(&[Pattern::Zipf(8), Pattern::Sequential, Pattern::Uniform]),
            syscall: draw.percent(75),
            write: draw.pick(&[0, 0, 20]),
            think_us: draw.pick(&[20, 50, 100]),
            ..Access::default()
        };
        draft.cgroups.push(Cgroup { name: name.clone(), limits });
        draft.processes.push(Process {
            name: format!("box{number}"),
            threads,
            start_ms: draw.pick(&[0, 0, 1000, 3000]),
            cgroup: Some(name),
            regions: vec![heap, data],
            phases: vec![work(draw, (3, threads), 50, vec![of_heap, of_data])],
            ..Process::default()
        });
    }
}

fn batch(draw: &mut Draw, draft: &mut Draft) {
    let cpus = draft.machine.cpus();
    let heap = Region { populate: true, ..anon("heap", draft.anon(draw.between(20, 50))) };
    let request = Access {
        region: "heap",
        pattern: Pattern::HotCold(20, 90),
        write: 20,
        think_us: draw.pick(&[20, 50]),
        sleep_us: draw.pick(&[0, 200, 1000]),
        ..Access::default()
    };
    draft.processes.push(Process {
        name: "service".into(),
        threads: draw.between(1, 2),
        cpus: draw.percent(50).then(|| "0".to_string()),
        regions: vec![heap],
        phases: vec![Phase {
            duration_ms: Some(draw.between(7, 11) * 1000),
            accesses: vec![request],
            ..Phase::default()
        }],
        ..Process::default()
    });
    let data = anon("data", draft.anon(draw.between(30, 100)));
    let fill = Access {
        region: "data",
        pattern: Pattern::Sequential,
        write: 100,
        count: Some(pages(data.mib)),
        ..Access::default()
    };
    let compute = Access { region: "data", write: 50, think_us: draw.pick(&[10, 40]), ..Access::default() };
    draft.processes.push(Process {
        name: "batch".into(),
        cpus: (cpus > 1 && draw.percent(50)).then(|| "1".to_string()),
        start_ms: draw.between(1, 4) * 1000,
        regions: vec![data],
        phases: vec![Phase { accesses: vec![fill], ..Phase::default() }, work(draw, (3, 1), 15, vec![compute])],
        ..Process::default()
    });
}

fn shared(draw: &mut Draw, draft: &mut Draft) {
    let size = draft.anon(draw.between(20, 80));
    let segment = Region {
        kind: Some("shmem"),
        file: Some("segment".into()),
        populate: draw.percent(60),
        ..anon("segment", size)
    };
    for number in 1..=draw.between(2, 3) {
        let own = Region { populate: true, ..anon("own", draft.take(draw.between(4, 40))) };
        let of_segment = Access {
            region: "segment",
            pattern: draw.pick(&[Pattern::Zipf(9), Pattern::Uniform, Pattern::HotCold(25, 80)]),
            write: draw.pick(&[10, 40]),
            think_us: draw.pick(&[10, 30]),
            ..Access::default()
        };
        let of_own = Access { region: "own", write: 30, think_us: 30, ..Access::default() };
        draft.processes.push(Process {
            name: format!("backend{number}"),
            start_ms: draw.pick(&[0, 500, 2000]),
            regions: vec![segment.clone(), own],
            phases: vec![work(draw, (4, 1), 15, vec![of_segment, of_own])],
            ..Process::default()
        });
    }
    let stream = file("stream", draft.part(draw.between(30, 90)));
    let count = Some(pages(stream.mib));
    let read = Access { region: "stream", pattern: Pattern::Sequential, syscall: true, count, ..Access::default() };
    draft.processes.push(Process {
        name: "loader".into(),
        start_ms: draw.pick(&[0, 1000, 3000]),
        regions: vec![stream],
        phases: vec![Phase { accesses: vec![read], ..Phase::default() }],
        ..Process::default()
    });
}

fn workers(draw: &mut Draw, draft: &mut Draft) {
    let library = file("library", draft.part(draw.between(15, 60)));
    let library = Region { file: Some("library".into()), exec: draw.percent(50), ..library };
    let (step, heap) = (draw.pick(&[300, 800, 1500]), draft.part(draw.between(5, 30)));
    for number in 0..draw.between(3, 6) {
        let heap = anon("heap", draft.take(heap));
        let load = Access {
            region: "library",
            pattern: Pattern::Zipf(7),
            think_us: 10,
            count: Some(8000),
            ..Access::default()
        };
        let fill = Access {
            region: "heap",
            pattern: Pattern::Sequential,
            write: 100,
            count: Some(pages(heap.mib)),
            ..Access::default()
        };
        let use_it = Access { region: "heap", pattern: Pattern::Zipf(8), write: 30, think_us: 20, ..Access::default() };
        draft.processes.push(Process {
            name: format!("worker{number}"),
            start_ms: number * step,
            regions: vec![library.clone(), heap],
            phases: vec![
                Phase { accesses: vec![load], ..Phase::default() },
                Phase { accesses: vec![fill], ..Phase::default() },
                work(draw, (1, 1), 25, vec![use_it]),
            ],
            ..Process::default()
        });
    }
}
