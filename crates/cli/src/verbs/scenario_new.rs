//! `mmtwin scenario new`.

use crate::args::{Archetype, ScenarioNew};
use crate::{Failure, say};
use clap::ValueEnum;
use mmtwin::Trace;
use mmtwin::draft::{self, Basis};
use mmtwin_trace::output::FileOutput;
use std::io::{IsTerminal, Write};
use std::path::Path;

/// Where the machine is from.
enum Machine<'a> {
    Own,
    Host,
    Recording(&'a Path),
}

/// Runs the verb.
pub fn run(arguments: &ScenarioNew) -> Result<i32, Failure> {
    if let Some(output) = &arguments.output {
        FileOutput::check(output, arguments.force)?;
    }
    let mut machine = match &arguments.from {
        Some(recording) => Machine::Recording(recording),
        None if arguments.host => Machine::Host,
        None => Machine::Own,
    };
    let archetype = match arguments.archetype {
        Some(archetype) => archetype,
        None if std::io::stdin().is_terminal() && std::io::stderr().is_terminal() => {
            let archetype = ask_archetype()?;
            if matches!(machine, Machine::Own) && ask("machine of this host? [y/N]")?.to_lowercase().starts_with('y') {
                machine = Machine::Host;
            }
            archetype
        }
        None => return Err(Failure::Usage(format!("--archetype is needed: {}", words()))),
    };
    let archetype = match archetype {
        Archetype::Database => draft::Archetype::Database,
        Archetype::Cache => draft::Archetype::Cache,
        Archetype::Build => draft::Archetype::Build,
        Archetype::Analytics => draft::Archetype::Analytics,
        Archetype::Containers => draft::Archetype::Containers,
    };
    let text = draft::text(archetype, &basis(&machine, archetype)?).map_err(Failure::Error)?;
    match &arguments.output {
        None => std::io::stdout().write_all(text.as_bytes())?,
        Some(output) => {
            FileOutput::open(output, arguments.force, 0o666)?.write(text.as_bytes())?;
            say(&format!("{0}: written; mmtwin run {0}", output.display()));
        }
    }
    Ok(0)
}

fn basis(machine: &Machine<'_>, archetype: draft::Archetype) -> Result<Basis, Failure> {
    match machine {
        Machine::Own => Ok(Basis::of(archetype)),
        Machine::Host => Basis::of_host().map_err(|error| Failure::Error(format!("this host: {error}"))),
        Machine::Recording(path) => {
            let failed = |message: String| Failure::Error(format!("{}: {message}", path.display()));
            let trace = Trace::open(path)?;
            let recording = trace.recording().ok_or_else(|| failed("has no manifest: it is no recording".into()))?;
            let origin = format!("the recording {}", path.file_name().unwrap_or_default().to_string_lossy());
            Basis::of_evidence(&recording.manifest.evidence, &origin).map_err(|error| failed(error.to_string()))
        }
    }
}

fn words() -> String {
    let values = Archetype::value_variants().iter().filter_map(ValueEnum::to_possible_value);
    values.map(|value| value.get_name().to_owned()).collect::<Vec<_>>().join(", ")
}

/// Until the answer is one.
fn ask_archetype() -> Result<Archetype, Failure> {
    loop {
        match ask(&format!("workload ({})? [database]", words()))?.as_str() {
            "" => return Ok(Archetype::Database),
            word => match Archetype::from_str(word, true) {
                Ok(archetype) => return Ok(archetype),
                Err(_) => say(&format!("{word}: not one of {}", words())),
            },
        }
    }
}

/// An answer from the terminal; an end of input is the end.
fn ask(question: &str) -> Result<String, Failure> {
    write!(std::io::stderr(), "{question} ")?;
    let mut line = String::new();
    if std::io::stdin().read_line(&mut line)? == 0 {
        return Err(Failure::Error("no answer".into()));
    }
    Ok(line.trim().to_owned())
}
