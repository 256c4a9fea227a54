//! The program `mmtwin`: see `mmtwin --help`.

use clap::Parser;
mod args;
mod commit;
mod failure;
mod http;
mod lab;
mod output;
mod parallel;
mod progress;
mod reading;
mod shortened;
mod signals;
mod terminal;
mod tidy;
mod verbs;

use args::{Cli, Color, Verb};
use failure::{Failure, say, status};
use mmtwin_host::restore::{GUARDIAN, guardian};
use mmtwin_host::workload::{WORKER, worker};

fn main() {
    // A process of a scenario's workload: what `mmtwin run --on host` starts.
    if std::env::args_os().nth(1).is_some_and(|first| first == WORKER) {
        std::process::exit(worker());
    }
    // What outlives a run that is killed.
    if std::env::args_os().nth(1).is_some_and(|first| first == GUARDIAN) {
        std::process::exit(guardian());
    }
    shortened::catch();
    let cli = Cli::parse();
    match cli.color {
        Color::Auto => {}
        Color::Always => anstream::ColorChoice::Always.write_global(),
        Color::Never => anstream::ColorChoice::Never.write_global(),
    }
    let result = match cli.verb {
        Verb::Record(arguments) => verbs::record::run(arguments),
        Verb::Snap(arguments) => verbs::snap::run(arguments),
        Verb::Report(arguments) => verbs::report::run(arguments),
        Verb::Top(arguments) => verbs::top::run(&arguments),
        Verb::Compare(arguments) => verbs::compare::run(arguments),
        Verb::Script(arguments) => verbs::script::run(arguments),
        Verb::Convert(arguments) => verbs::convert::run(arguments),
        Verb::Scrub(arguments) => verbs::scrub::run(&arguments),
        Verb::Serve(arguments) => verbs::serve::run(&arguments),
        Verb::Explain(arguments) => verbs::explain::run(arguments),
        Verb::Run(arguments) => verbs::run::run(arguments),
        Verb::Sweep(arguments) => verbs::sweep::run(arguments),
        Verb::Replay(arguments) => verbs::replay::run(arguments),
        Verb::Reproduce(arguments) => verbs::reproduce::run(arguments),
        Verb::Fidelity(arguments) => verbs::fidelity::run(arguments),
        Verb::Scenario(arguments) => verbs::scenario::run(arguments),
        Verb::Doctor(arguments) => verbs::doctor::run(arguments),
        Verb::Bench(arguments) => verbs::bench::run(arguments),
        Verb::Calibrate(arguments) => verbs::calibrate::run(arguments),
        Verb::Completions(arguments) => verbs::definitions::completions(arguments),
        Verb::Man(arguments) => verbs::definitions::man(arguments),
        Verb::Reference(arguments) => verbs::reference::run(&arguments),
    };
    std::process::exit(match result {
        Ok(status) => status,
        Err(Failure::BrokenPipe) => status::BROKEN_PIPE,
        Err(failure) => {
            say(&format!("error: {failure}"));
            match failure {
                Failure::Usage(_) => 2,
                Failure::Interrupted(signal) => status::SIGNAL + signal,
                _ => 1,
            }
        }
    })
}
