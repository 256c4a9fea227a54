//! Runs a workload on the simulated kernel inside of another program: `cargo run --release --example embed_twin`.
//!
//! Two programs on a machine of two nodes read a file that does not fit into memory. The question is what they wait for,
//! and the answer comes as numbers, not as text.

use mmtwin::{Error, Request, Scenario, batches, run};

const SCENARIO: &str = r#"
title = "A file that does not fit"

[machine]
name = "small"
distance = [[10, 20], [20, 10]]
disk = { latency = "100 us", bandwidth = "1 GB/s" }

[[machine.node]]
cpus = "0-1"
memory = "96 MiB"

[[machine.node]]
cpus = "2-3"
memory = "96 MiB"

[kernel]
release = "6.12"

[[process]]
name = "reader"
threads = 2

[[process.region]]
name = "data"
size = "256 MiB"
kind = "file"
file = "data"

[[process.phase]]
name = "read"
[[process.phase.access]]
region = "data"
pattern = "sequential"
count = 65536
"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A caller's own parameters come as overrides, checked like the file: a fault names its place.
    let scenario = Scenario::parse(SCENARIO, &["run.seed=7", "kernel.sysctl.vm.swappiness=10"])?;
    match Scenario::parse(SCENARIO, &["kernel.sysctl.vm.swapiness=10"]) {
        Err(faults) => println!("{faults}\n"),
        Ok(_) => unreachable!("there is no such sysctl"),
    }

    let mut furthest = 0;
    let ran = run(&scenario, Request { name: "small", ..Request::default() }, &mut |now| furthest = now)
        .map_err(|error: Error| format!("the twin cannot run it: {error}"))?;
    println!("virtual time: {:.3} s (last seen at {:.3} s)", ran.ran.end as f64 / 1e9, furthest as f64 / 1e9);

    // What the workload achieved, as every arm leaves it.
    for phase in &ran.ran.results.phases {
        for access in &phase.accesses {
            let seconds = (phase.end - phase.start) as f64 / 1e9;
            println!("{}: {} accesses in {seconds:.3} s, {} faults", phase.process, access.touches, access.faults);
        }
    }

    // Counters of the kernel, by the kernel's names.
    let counters = &ran.analysed.analysis.counters;
    for name in ["pgpgin", "pgscan_kswapd", "pgsteal_kswapd", "pgscan_direct", "workingset_refault_file"] {
        println!("{name}: {:?}", counters.change("vmstat", "", name));
    }

    // And all tables of a report as Arrow record batches, for dataframes and databases.
    let report = ran.analysed.report();
    let tables = batches(&mmtwin::report::compare::single(report))?;
    for table in tables.iter().filter(|table| table.rows.num_rows() > 0) {
        println!("{}: {} rows of {} columns", table.name, table.rows.num_rows(), table.rows.num_columns());
    }
    Ok(())
}
