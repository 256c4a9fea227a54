//! Workloads that end: a build, writers of logs, scans, readers of mapped files, huge pages, phases, and work of the
//! kernel beside a reader.

use super::draft::{Access, Draft, Pattern, Phase, Process, Region, anon, file, pages};
use super::draw::Draw;
use super::machine::{NUMA, SMALL};
use super::tunables::Focus;
use super::{Archetype, nodes, through, until_done, work};

/// All of them.
pub(super) static ALL: [Archetype; 7] = [
    Archetype { title: "A parallel build", machine: SMALL, focus: Focus::Dirty, workload: build },
    Archetype { title: "Writers of logs", machine: SMALL, focus: Focus::Dirty, workload: logs },
    Archetype { title: "Scans and a hash table", machine: NUMA, focus: Focus::Balancing, workload: nodes::analytics },
    Archetype { title: "Readers of mapped files", machine: SMALL, focus: Focus::Reclaim, workload: mapped },
    Archetype { title: "Heaps with huge pages", machine: SMALL, focus: Focus::Huge, workload: huge },
    Archetype { title: "A process with phases", machine: SMALL, focus: Focus::Reclaim, workload: phases },
    Archetype { title: "Work of the kernel beside a reader", machine: SMALL, focus: Focus::Reclaim, workload: kernel },
];

fn build(draw: &mut Draw, draft: &mut Draft) {
    let sources = Region { file: Some("sources".into()), ..file("sources", draft.part(draw.between(20, 70))) };
    let (step, heap) = (draw.pick(&[0, 200, 1000]), draft.part(draw.between(12, 35)));
    for number in 1..=draw.between(2, 4) {
        let heap = anon("heap", draft.take(heap + draw.between(0, 20)));
        let output = file("output", draw.between(8, 48));
        let read = Access {
            region: "sources",
            pattern: Pattern::Zipf(draw.between(5, 9)),
            syscall: true,
            think_us: 20,
            count: Some(draw.between(6000, 15_000)),
            ..Access::default()
        };
        let compile = Access { region: "heap", write: 50, think_us: 15, ..Access::default() };
        draft.processes.push(Process {
            name: format!("cc{number}"),
            start_ms: (number - 1) * step,
            regions: vec![sources.clone(), heap.clone(), output.clone()],
            phases: vec![
                until_done(vec![read]),
                until_done(vec![through("heap", heap.mib, false, 100)]),
                work(draw, (2, 1), 15, vec![compile]),
                until_done(vec![through("output", output.mib, true, 100)]),
            ],
            ..Process::default()
        });
    }
}

fn logs(draw: &mut Draw, draft: &mut Draft) {
    let writers = draw.between(1, 3);
    for number in 1..=writers {
        let log =
            Region { file: Some(format!("log{number}")), ..file("log", draft.part(draw.between(30, 90) / writers)) };
        let append = Access { think_us: draw.pick(&[0, 10, 60]), ..through("log", log.mib, true, 100) };
        let again = Access {
            region: "log",
            syscall: true,
            write: 70,
            pattern: draw.pick(&[Pattern::Uniform, Pattern::Zipf(8)]),
            think_us: 20,
            ..Access::default()
        };
        let mut phases = vec![until_done(vec![append])];
        if draw.percent(50) {
            phases.push(work(draw, (3, 1), 60, vec![again]));
        }
        draft.processes.push(Process {
            name: format!("writer{number}"),
            start_ms: draw.pick(&[0, 0, 1500]),
            regions: vec![log],
            phases,
            ..Process::default()
        });
    }
    let heap = Region { populate: true, ..anon("heap", draft.anon(draw.between(20, 60))) };
    let of_heap =
        Access { region: "heap", pattern: Pattern::HotCold(30, 80), write: 20, think_us: 30, ..Access::default() };
    draft.processes.push(Process {
        name: "app".into(),
        regions: vec![heap],
        phases: vec![work(draw, (6, 1), 35, vec![of_heap])],
        ..Process::default()
    });
}

fn mapped(draw: &mut Draw, draft: &mut Draft) {
    let data = Region { file: Some("data".into()), ..file("data", draft.part(draw.between(40, 120))) };
    for number in 1..=draw.between(1, 3) {
        let heap = Region { populate: true, ..anon("heap", draft.anon(draw.between(5, 30))) };
        let of_data = Access {
            region: "data",
            pattern: draw.pick(&[Pattern::Zipf(8), Pattern::Zipf(11), Pattern::Uniform, Pattern::Strided(64)]),
            write: draw.pick(&[0, 0, 10]),
            think_us: draw.pick(&[10, 30]),
            ..Access::default()
        };
        let of_heap =
            Access { region: "heap", pattern: Pattern::Zipf(8), write: 30, think_us: 20, ..Access::default() };
        let first = until_done(vec![through("data", data.mib, draw.percent(30), 0)]);
        let mut phases = vec![work(draw, (5, 1), 40, vec![of_data, of_heap])];
        if draw.percent(50) {
            phases.insert(0, first);
        }
        draft.processes.push(Process {
            name: format!("reader{number}"),
            start_ms: draw.pick(&[0, 1000, 3000]),
            regions: vec![data.clone(), heap],
            phases,
            ..Process::default()
        });
    }
}

fn huge(draw: &mut Draw, draft: &mut Draft) {
    for number in 1..=draw.between(1, 2) {
        let size = draft.anon(draw.between(25, 70)) / 2 * 2;
        let heap = Region {
            populate: draw.percent(70),
            huge: draw.pick(&[None, Some("madvise"), Some("madvise"), Some("never")]),
            ..anon("heap", size)
        };
        let of_heap = Access {
            region: "heap",
            pattern: draw.pick(&[Pattern::Uniform, Pattern::Zipf(9), Pattern::Strided(512)]),
            write: 40,
            think_us: draw.pick(&[10, 30]),
            ..Access::default()
        };
        draft.processes.push(Process {
            name: format!("heap{number}"),
            start_ms: (number - 1) * draw.pick(&[0, 2000]),
            regions: vec![heap],
            phases: vec![work(draw, (5, 1), 15, vec![of_heap])],
            ..Process::default()
        });
    }
    let noise = file("noise", draft.part(draw.between(30, 110)));
    let read = match draw.percent(50) {
        true => through("noise", noise.mib, true, 0),
        false => Access {
            region: "noise",
            syscall: true,
            think_us: 10,
            count: Some(pages(noise.mib) * 7 / 10),
            ..Access::default()
        },
    };
    draft.processes.push(Process {
        name: "noise".into(),
        start_ms: draw.pick(&[0, 0, 2000]),
        regions: vec![noise],
        phases: vec![until_done(vec![read])],
        ..Process::default()
    });
}

fn phases(draw: &mut Draw, draft: &mut Draft) {
    let heap = anon("heap", draft.anon(draw.between(30, 80)));
    let data = file("data", draft.part(draw.between(40, 110)));
    let mut all = Vec::new();
    for _ in 0..draw.between(3, 5) {
        all.push(match draw.between(0, 4) {
            0 => until_done(vec![through("heap", heap.mib, false, 100)]),
            1 => until_done(vec![through("data", data.mib, draw.percent(60), 0)]),
            2 => {
                let pattern = draw.pick(&[Pattern::Zipf(9), Pattern::HotCold(10, 90), Pattern::Uniform]);
                work(
                    draw,
                    (3, 1),
                    15,
                    vec![Access { region: "heap", pattern, write: 40, think_us: 15, ..Access::default() }],
                )
            }
            3 => {
                let pattern = draw.pick(&[Pattern::Zipf(7), Pattern::Zipf(11)]);
                let syscall = draw.percent(60);
                let write = draw.pick(&[0, 30]);
                let of = Access { region: "data", pattern, syscall, write, think_us: 20, ..Access::default() };
                work(draw, (3, 1), 60, vec![of])
            }
            _ => Phase { duration_ms: Some(draw.between(500, 2500)), ..Phase::default() },
        });
    }
    draft.processes.push(Process {
        name: "phases".into(),
        threads: 1,
        regions: vec![heap, data],
        phases: all,
        ..Process::default()
    });
    let other = Region { populate: true, ..anon("other", draft.anon(draw.between(10, 40))) };
    let steady = Access { region: "other", pattern: Pattern::Zipf(8), write: 20, think_us: 40, ..Access::default() };
    draft.processes.push(Process {
        name: "steady".into(),
        regions: vec![other],
        phases: vec![Phase {
            duration_ms: Some(draw.between(5, 9) * 1000),
            accesses: vec![steady],
            ..Phase::default()
        }],
        ..Process::default()
    });
}

fn kernel(draw: &mut Draw, draft: &mut Draft) {
    let data = file("data", draft.part(draw.between(60, 120)));
    let size = data.mib;
    let again = Access { region: "data", pattern: Pattern::Zipf(8), syscall: true, think_us: 30, ..Access::default() };
    draft.processes.push(Process {
        name: "reader".into(),
        cpus: Some("0".into()),
        regions: vec![data],
        phases: vec![until_done(vec![through("data", size, true, 0)]), work(draw, (3, 1), 60, vec![again])],
        ..Process::default()
    });
    let text = |word: &str| format!("\"{word}\"");
    let action = match draw.between(0, 3) {
        0 => vec![("kind", text("lookup")), ("count", draw.between(10_000, 60_000).to_string())],
        1 => vec![
            ("kind", text("page-hog")),
            ("count", draw.between(2000, 16_000).to_string()),
            ("rate", text(&format!("{}k pages/s", draw.pick(&[2, 8])))),
        ],
        2 => {
            let order = draw.pick(&[0, 1, 2, 3]);
            let (count, hold) = (draw.between(20_000, 60_000) >> order, draw.pick(&[1, 16, 64]));
            let gfp = draw.pick(&["GFP_KERNEL", "GFP_ATOMIC"]);
            vec![
                ("kind", text("page-loop")),
                ("order", order.to_string()),
                ("gfp", text(gfp)),
                ("count", count.to_string()),
                ("hold", hold.to_string()),
            ]
        }
        _ => vec![
            ("kind", text("vmalloc-test")),
            ("tests", "[\"fix_size_alloc_test\"]".into()),
            ("loops", draw.between(5000, 20_000).to_string()),
            ("pages", draw.pick(&[1, 4]).to_string()),
        ],
    };
    draft.processes.push(Process {
        name: "kernel".into(),
        cpus: Some("1".into()),
        start_ms: draw.pick(&[0, 1500, 3000]),
        phases: vec![Phase { actions: vec![action], ..Phase::default() }],
        ..Process::default()
    });
}
