//! Time to purge 20 million vmap areas on 448 simulated CPUs, on one core. `cargo bench -p mmtwin-twin --bench vmalloc`.

use mmtwin_twin::machine::line::HandOff;
use mmtwin_twin::probe::Probe;
use mmtwin_twin::vmalloc::params::{Machine, Params, Rules, TlbFlush, Workload};
use mmtwin_twin::vmalloc::{Outcome, stress, stress_over_rates};

/// Two sockets of 112 Zen 4c cores; figures and sources are those of tests/data/vmalloc_purge.txt.
fn machine() -> Machine {
    let cores = vec![(7, 35.0), (104, 110.0), (112, 200.0)];
    Machine {
        online_cpus: 448,
        possible_cpus: 448,
        line_ns: HandOff { threads_per_core: 2, sibling_ns: 8.0, cores }.service_ns(),
        purge_local_us: 2.488,
        worker_share: 0.9435,
        slice_us: 3000.0,
        wake_us: 1000.0,
        tlb_flush: TlbFlush::Ipi { base_us: 2.0, per_cpu_us: 0.1 },
    }
}

// A benchmark is about wall time.
#[allow(clippy::disallowed_methods)]
fn time(name: &str, run: impl FnOnce() -> Outcome) {
    let begin = std::time::Instant::now();
    let outcome = run();
    let seconds = begin.elapsed().as_secs_f64();
    println!("{name:<40} {:>13} areas {seconds:>7.2} s", outcome.purged);
}

fn main() {
    let loop_us = [0.901177, 1.039341, 11.775763];
    for (name, rules) in [("per area", Rules::V6_11), ("batched", Rules::V6_12)] {
        let workload = Workload { threads: 448, tests: 1, loops: 44_643, repeats: 1, pages: 1, loop_us };
        let mut params = Params { machine: machine(), rules, workload };
        time(&format!("single events, {name}"), || {
            stress(&params, &mut Probe::off(), 1).expect("the parameters are valid")
        });
        time(&format!("rates, {name}"), || stress_over_rates(&params, 1).expect("the parameters are valid"));
        params.workload = Workload { tests: 7, loops: 1_000_000, ..params.workload };
        time(&format!("rates, {name}, the published run"), || {
            stress_over_rates(&params, 1).expect("the parameters are valid")
        });
    }
}
