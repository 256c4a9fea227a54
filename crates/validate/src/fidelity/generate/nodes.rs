//! Workloads of machines with several nodes.

use super::draft::{Access, Draft, Pattern, Phase, Process, Region, anon, file, pages};
use super::draw::Draw;
use super::{through, until_done, work};

/// Threads with memory of their own and in common, placed somewhere at first.
pub fn server(draw: &mut Draw, draft: &mut Draft) {
    let nodes = draft.machine.memory_nodes();
    let threads = draw.between(2, draft.machine.cpus().max(2));
    let placed = match draw.between(0, 3) {
        0 => None,
        1 => Some(format!("bind:{}", draw.pick(&nodes))),
        _ => Some("interleave:all".to_string()),
    };
    let own = Region {
        private: true,
        populate: true,
        populate_policy: placed.clone(),
        ..anon("own", draft.take(draw.between(8, 96)))
    };
    let common = Region { populate: true, populate_policy: placed, ..anon("common", draft.take(draw.between(4, 64))) };
    let pattern = draw.pick(&[Pattern::Uniform, Pattern::Zipf(8), Pattern::HotCold(20, 80)]);
    let think_us = draw.pick(&[10, 20, 50]);
    let of_own = Access { region: "own", pattern, write: 30, think_us, ..Access::default() };
    let of_common = Access { region: "common", pattern, write: draw.pick(&[0, 10, 30]), think_us, ..Access::default() };
    draft.processes.push(Process {
        name: "server".into(),
        threads,
        policy: draw.percent(15).then(|| format!("preferred:{}", draw.pick(&nodes))),
        regions: vec![own, common],
        phases: vec![work(draw, (8, threads), 15, vec![of_own, of_common])],
        ..Process::default()
    });
    if draw.percent(50) {
        let logs = file("logs", draft.part(draw.between(10, 50)));
        let count = Some(pages(logs.mib));
        let read = Access { region: "logs", pattern: Pattern::Sequential, syscall: true, count, ..Access::default() };
        let node = draw.pick(&nodes);
        draft.processes.push(Process {
            name: "indexer".into(),
            cpus: draw.percent(60).then(|| draft.machine.cpus_of(node)),
            start_ms: draw.between(0, 3) * 1000,
            regions: vec![logs],
            phases: vec![Phase { accesses: vec![read], ..Phase::default() }],
            ..Process::default()
        });
    }
}

/// Threads that scan a file and update a table in memory.
pub fn analytics(draw: &mut Draw, draft: &mut Draft) {
    let threads = draw.between(2, draft.machine.cpus().max(2));
    let table = Region { private: draw.percent(60), ..file("table", draft.part(draw.between(20, 70))) };
    let hash = anon("hash", draft.anon(draw.between(5, 20)));
    let syscall = draw.percent(50);
    let per_thread = if table.private { table.mib / threads } else { table.mib / 2 };
    let scan = Access { think_us: draw.pick(&[0, 20]), ..through("table", per_thread.max(1), syscall, 0) };
    let probe = Access { region: "hash", write: 50, think_us: draw.pick(&[5, 20]), ..Access::default() };
    let probes = Some(draw.between(10_000, 60_000) / threads);
    draft.processes.push(Process {
        name: "query".into(),
        threads,
        policy: draw.pick(&[None, None, Some("interleave:all")]).map(str::to_string),
        regions: vec![table, hash],
        phases: vec![
            until_done(vec![scan.clone(), Access { count: probes, ..probe.clone() }]),
            work(draw, (4, threads), 15, vec![probe]),
            until_done(vec![scan]),
        ],
        ..Process::default()
    });
}
