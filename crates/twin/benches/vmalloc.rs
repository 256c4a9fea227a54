//! Time to purge 20 million vmap areas on 448 simulated CPUs, on one core. `cargo bench -p mmtwin-twin --bench vmalloc`.

use mmtwin_twin::probe::Probe;
use mmtwin_twin::vmalloc::params::{Params, Workload};
use mmtwin_twin::vmalloc::{Outcome, stress, stress_over_rates};
use std::path::Path;

/// The published run; the machine's figures and their sources stand in its file.
fn params(accounting: &str) -> Params {
    let text = include_str!("../../../scenarios/published/vmalloc-purge/scenario.toml");
    let set = format!("kernel.vmalloc.purge_accounting={accounting}");
    let scenario = mmtwin_scenario::parse("scenario.toml", text, Path::new(""), &[set]).expect("a good scenario");
    mmtwin_twin::build::vmalloc(&scenario).expect("it is modelled")
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
    for accounting in ["per-area", "batched"] {
        let published = params(accounting);
        let workload = Workload { tests: 1, loops: 44_643, ..published.workload };
        let short = Params { workload, ..published.clone() };
        time(&format!("single events, {accounting}"), || {
            stress(&short, &mut Probe::off(), 1).expect("the parameters are valid")
        });
        for (what, params) in [("", &short), (", the published run", &published)] {
            time(&format!("rates, {accounting}{what}"), || {
                stress_over_rates(params, 1).expect("the parameters are valid")
            });
        }
    }
}
