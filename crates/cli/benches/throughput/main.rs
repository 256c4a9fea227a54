//! The benchmark: what mmtwin reaches beside the tools it replaces, and what the twin costs, on this machine.
//!
//! `make bench`, or `cargo bench -p mmtwin-cli --bench throughput -- --only text`. Inputs are kept under `target/bench`.
//! A bar that is missed is shown, and is no failure; a program that fails is.

mod cases;
mod inputs;
mod measure;
mod recorder;
mod table;
mod twin;

use cases::{Bench, Case};
use clap::Parser;
use inputs::Result;
use std::path::Path;

#[derive(Parser)]
#[command(about = "Measures mmtwin beside the tools it replaces, and its twin")]
struct Arguments {
    /// Only these
    #[arg(long, value_enum, value_delimiter = ',', conflicts_with = "write_docs")]
    only: Vec<Case>,
    /// Runs of which the median counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,
    /// Events of the inputs, in millions
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..10_000))]
    events: u64,
    /// Size of the input for the memory test, in MiB
    #[arg(long, default_value_t = 4096, value_parser = clap::value_parser!(u64).range(1..1 << 20))]
    big: u64,
    /// Puts the table into docs/reference/performance.md
    #[arg(long)]
    write_docs: bool,
    /// cargo passes it to every benchmark
    #[arg(long, hide = true)]
    bench: bool,
    /// Be the load that is recorded: pages per millisecond
    #[arg(long, hide = true, requires = "seconds")]
    load: Option<usize>,
    /// How long the load runs
    #[arg(long, hide = true)]
    seconds: Option<u64>,
}

fn main() {
    if let Err(message) = run(Arguments::parse()) {
        eprintln!("{message}");
        std::process::exit(1);
    }
}

fn run(arguments: Arguments) -> Result<()> {
    if let (Some(pages), Some(seconds)) = (arguments.load, arguments.seconds) {
        return recorder::load(pages, seconds);
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let root = root.canonicalize().map_err(inputs::fail(&root))?;
    let dir = root.join("target/bench");
    std::fs::create_dir_all(&dir).map_err(inputs::fail(&dir))?;
    let bench = Bench {
        dir,
        script: root.join("target/oracle/trace-vmscan-postprocess-6.12.pl"),
        runs: arguments.runs.into(),
        events: arguments.events * 1_000_000,
        big: arguments.big << 20,
        seed: inputs::Seed::read()?,
    };
    let all =
        [Case::Dat, Case::Compressed, Case::Text, Case::Cores, Case::Memory, Case::Record, Case::Reclaim, Case::Twin];
    let (mut rows, mut failed) = (Vec::new(), Vec::new());
    for case in all.into_iter().filter(|c| arguments.only.is_empty() || arguments.only.contains(c)) {
        eprintln!("measuring: {case:?}");
        match bench.run(case) {
            Ok(found) => rows.extend(found),
            Err(message) => failed.push(message),
        }
    }
    let table = table::markdown(&rows, bench.runs);
    print!("{table}");
    if !failed.is_empty() {
        return Err(failed.join("\n"));
    }
    if arguments.write_docs {
        table::write_into(&root.join("docs/reference/performance.md"), &table)?;
    }
    Ok(())
}
