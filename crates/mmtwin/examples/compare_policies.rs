//! Compares policies of the kernel for one workload: `cargo run --release --example compare_policies`.
//!
//! A policy is what a scenario may say of its kernel: another release, a sysctl, or another form of a mechanism. Each runs
//! with several seeds on the simulated kernel, so that a difference can be told from chance. With arguments, those are
//! policies, each a list of overrides: `compare_policies kernel.release=6.1 kernel.release=6.1,kernel.sysctl.kernel.numa_balancing=0`.

use mmtwin::report::format::{Format, Style, write};
use mmtwin::{Analysed, Error, Request, Scenario, compare, run};

/// One that the kernel has, none, and one that it does not have: four times as eager.
const POLICIES: [(&str, &str); 3] = [
    ("as it is", "kernel.release=6.1"),
    ("off", "kernel.sysctl.kernel.numa_balancing=0"),
    ("eager", "kernel.numa_balancing.scan_delay_ms=50,kernel.numa_balancing.scan_period_min_ms=50"),
];
const SEEDS: [u64; 3] = [1, 2, 3];

fn runs(scenario: &str, name: &str, policy: &str) -> Result<Vec<Analysed>, Error> {
    let run = |seed: u64| {
        let seed = format!("run.seed={seed}");
        let sets: Vec<&str> = policy.split(',').chain(["run.duration=4s", &seed]).collect();
        Ok(run(&Scenario::load(scenario, &sets)?, Request { name, ..Request::default() }, &mut |_| {})?.analysed)
    };
    SEEDS.into_iter().map(run).collect()
}

/// Accesses of the workload in a second of its phase `work`: a figure of one's own.
fn rate(run: &Analysed) -> f64 {
    let phases = run.results.iter().flat_map(|results| &results.phases).filter(|phase| phase.phase == "work");
    let rate = phases.flat_map(|phase| {
        let seconds = (phase.end - phase.start) as f64 / 1e9;
        phase.accesses.iter().map(move |access| access.touches as f64 / seconds)
    });
    rate.sum()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/examples/numa-balancing.toml");
    let given: Vec<String> = std::env::args().skip(1).collect();
    let policies: Vec<(&str, &str)> = match given.is_empty() {
        true => POLICIES.to_vec(),
        false => given.iter().map(|policy| (policy.as_str(), policy.as_str())).collect(),
    };
    let columns = policies.iter().map(|(name, policy)| Ok((*name, runs(scenario, name, policy)?)));
    let columns = columns.collect::<Result<Vec<(&str, Vec<Analysed>)>, Error>>()?;
    for (name, runs) in &columns {
        let each: Vec<String> = runs.iter().map(|run| format!("{:.0}", rate(run))).collect();
        println!("{name}: accesses per second with each seed: {}", each.join(", "));
    }

    // The report's own figures side by side: medians, intervals, and what differs from the first policy.
    let borrowed: Vec<(&str, &[Analysed])> = columns.iter().map(|(name, runs)| (*name, runs.as_slice())).collect();
    let mut comparison = compare(&borrowed);
    comparison.tables.retain(|table| table.name.starts_with("numa"));
    (comparison.findings, comparison.cross_check) = (None, None);
    write(&comparison, Format::Table, &Style::default(), &mut std::io::stdout())?;
    Ok(())
}
