use mmtwin_twin::machine::line::HandOff;
use mmtwin_twin::vmalloc::params::*;
fn main() {
    let a: Vec<f64> = std::env::args().skip(1).map(|s| s.parse().unwrap()).collect();
    // cpus line c phi w1 w2 w4 wake
    let (cpus, line, c, phi) = (a[0] as u32, a[1], a[2], a[3]);
    let wake = a.get(4).copied().unwrap_or(1000.0);
    let w = a.get(5).copied().unwrap_or(1.0);
    let loop_us = [0.90*w, 1.04*w, 11.78*w];
    println!("448 {}", HandOff{threads_per_core:2,sibling_ns:8.0,cores:vec![(7,35.0),(104,110.0),(112,200.0)]}.service_ns());
    println!("192 {}", HandOff{threads_per_core:2,sibling_ns:8.0,cores:vec![(47,80.0),(48,135.0)]}.service_ns());
    println!("72 {}", HandOff{threads_per_core:2,sibling_ns:8.1,cores:vec![(35,51.0)]}.service_ns());
    for rules in [Rules::V6_11, Rules::V6_12] {
        let p = Params { machine: Machine { online_cpus: cpus, possible_cpus: cpus, line_ns: line, purge_local_us: c, worker_share: phi, wake_us: wake, slice_us: 3000.0, tlb_flush: TlbFlush::Ipi { base_us: 2.0, per_cpu_us: 0.1 } }, rules, workload: Workload { threads: cpus, tests: 7, loops: 1_000_000, repeats: 1, pages: 1, loop_us } };
        let t = std::time::Instant::now();
        let o = { let seed = std::env::var("SEED").map_or(1, |s| s.parse().unwrap());
            if let Ok(l) = std::env::var("EXACT") { let l: u64 = l.parse().unwrap(); let mut p = p.clone(); p.workload.loops = l; if std::env::var("R").is_ok() { mmtwin_twin::vmalloc::stress_over_rates(&p, seed).unwrap() } else { mmtwin_twin::vmalloc::stress(&p, &mut mmtwin_twin::probe::Probe::off(), seed).unwrap() } } else { mmtwin_twin::vmalloc::stress_over_rates(&p, seed).unwrap() } };
        println!("{:?}: mean {:.0} us calls {} passes {} us/area {:.2} longest {:.2}s top3 {:.2} purged {} freed {} ran {:.0}s wall {:?} nrp {:?}..{:?}", rules.purge_accounting, o.calls.mean_us(), o.calls.calls(), o.passes, o.us_per_area().unwrap_or(0.), o.calls.longest_ns() as f64/1e9, o.calls.top_three_share(), o.purged, o.freed, o.ran_ns as f64/1e9, t.elapsed(), o.nr_purged.iter().min(), o.nr_purged.iter().max());
        println!("  {:?}", o.calls.slots().iter().map(|s| s.calls).collect::<Vec<_>>());
    }
}
