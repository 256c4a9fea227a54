//! `mmtwin-agent SCENARIO.json OUTDIR`: runs a scenario's workload on the machine it is on and records it.
//!
//! The scenario is a resolved one, as manifests carry it. For guests: a static executable that needs `/proc`, `/sys`,
//! tracefs and the right to use them.

use mmtwin_event::results::Ending;
use mmtwin_host::workload::{self, Arm, Options};
use mmtwin_host::{Error, restore};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::exit;

const USAGE: &str = "usage: mmtwin-agent SCENARIO.json OUTDIR [--arm lab|host] [--files DIRECTORY] [--buffer KIB]
    SCENARIO.json  resolved scenario
    OUTDIR         recording to write; it must not exist
    --arm          host: the machine has at least what the scenario needs; lab: it fits the scenario;
                   default: $MMTWIN_ARM, else host
    --files        directory on a disk for regions of kind file; default: that of OUTDIR
    --buffer       ring buffer per CPU; default: by the machine's memory";

fn main() {
    let mut arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if arguments.first().is_some_and(|first| first == workload::WORKER) {
        exit(workload::worker());
    }
    if arguments.first().is_some_and(|first| first == restore::GUARDIAN) {
        exit(restore::guardian());
    }
    if arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
        println!("{USAGE}");
        exit(0);
    }
    let Some((scenario, options)) = parse(&mut arguments) else {
        eprintln!("{USAGE}");
        exit(2);
    };
    if let Err((message, status)) = run(&scenario, &options) {
        eprintln!("mmtwin-agent: {message}");
        exit(status);
    }
}

fn parse(arguments: &mut Vec<OsString>) -> Option<(PathBuf, Options)> {
    let mut options = Options::default();
    if std::env::var_os("MMTWIN_ARM").is_some_and(|arm| arm == "lab") {
        options.arm = Arm::Lab;
    }
    while let Some(at) = arguments.iter().position(|argument| argument.to_string_lossy().starts_with("--")) {
        let option = arguments.remove(at);
        let value = (at < arguments.len()).then(|| arguments.remove(at))?;
        match (option.to_str()?, value.to_str()) {
            ("--arm", Some("host")) => options.arm = Arm::Host,
            ("--arm", Some("lab")) => options.arm = Arm::Lab,
            ("--files", _) => options.files = Some(value.into()),
            ("--buffer", Some(kib)) => options.buffer = Some(kib.parse::<u64>().ok()?.checked_mul(1024)?),
            _ => return None,
        }
    }
    let [scenario, output] = arguments.as_slice() else { return None };
    options.output = output.into();
    Some((scenario.into(), options))
}

/// What went wrong comes with the exit status.
fn run(scenario: &Path, options: &Options) -> Result<(), (String, i32)> {
    let fail = |e: &dyn std::fmt::Display| (format!("{}: {e}", scenario.display()), 1);
    let text = std::fs::read(scenario).map_err(|e| fail(&e))?;
    let value = serde_json::from_slice(&text).map_err(|e| fail(&e))?;
    let scenario = mmtwin_scenario::from_json(&value).map_err(|e| fail(&e))?;
    let mut say = |message: &str| eprintln!("mmtwin-agent: {message}");
    if options.arm == Arm::Host {
        restore::recover(&mut say);
    }
    let outcome = workload::run(&scenario, options, &mut say).map_err(|error| match error {
        // As a shell tells of a signal.
        Error::Interrupted { signal } => (error.to_string(), 128 + signal),
        error => (error.to_string(), 1),
    })?;
    match outcome.results.ending {
        Ending::OutOfMemory { comm, message, .. } => Err((format!("memory ran out, {comm} was killed: {message}"), 1)),
        Ending::Completed | Ending::TimeUp => Ok(()),
        // Only the twin stops a run so.
        Ending::Stopped { message, .. } => Err(message),
    }
}
