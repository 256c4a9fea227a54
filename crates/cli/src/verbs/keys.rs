//! `mmtwin report --keys`: what `--fail-on` takes; and how a shell completes it.

use super::{append, column, text as word};
use crate::args::{Format, Printing};
use crate::reading::newest;
use crate::{Failure, reading, say};
use clap_complete::Shell;
use mmtwin_analysis::Analysis;
use mmtwin_event::words::glob;
use mmtwin_report::compare::single;
use mmtwin_report::model::{self, Body, Table};
use mmtwin_report::quantities;
use mmtwin_report::tables::{reclaim_tables, subject_tables};
use mmtwin_report::topics::{HISTORIC, Topic};
use mmtwin_trace::input::Options;
use std::ffi::OsString;
use std::path::Path;

/// Lists the keys of the inputs, each once; without an input those of the newest recording here, else those that every
/// recording has.
pub(super) fn list(
    inputs: &[OsString],
    topic: Option<&Topic>,
    options: &Options,
    all: bool,
    format: Format,
    out: &mut Vec<u8>,
) -> Result<i32, Failure> {
    let chosen = newest(Path::new(".")).ok().filter(|_| inputs.is_empty());
    let mut reports = Vec::new();
    for input in inputs.iter().chain(&chosen) {
        reports.push(reading::analyse(input, options)?.quantities());
    }
    if reports.is_empty() {
        reports.push(of_nothing());
        say("no input: keys of counters, cgroups and tasks depend on the recording (mmtwin report REC --keys)");
    }
    let mut rows: Vec<[String; 4]> = Vec::new();
    for table in reports.iter().flat_map(|report| &report.tables) {
        let historic = HISTORIC.iter().any(|pattern| glob(pattern, &table.name));
        let Body::Metric(metrics) = &table.body else { continue };
        if topic.is_some_and(|topic| !topic.compares(&table.name)) || (historic && !all) {
            continue;
        }
        rows.extend(metrics.iter().map(|row| {
            let key = quantities::key(&table.name, &row.key);
            [key, row.unit.to_string(), row.better.word().into(), row.label.clone()]
        }));
    }
    let mut seen = std::collections::HashSet::new();
    rows.retain(|row| seen.insert(row[0].clone()));
    let columns = vec![column("key", "key", ""), column("unit", "unit", ""), column("better", "better", "")];
    let columns = columns.into_iter().chain([column("what", "what", "")]).collect();
    let rows = rows.iter().map(|row| row.iter().map(|text| word(text)).collect()).collect();
    let body = Body::List { columns, rows };
    let note = "TABLE.KEY, as --fail-on takes it; * and ? stand for any characters.".to_string();
    let table = Table { name: NAME.into(), title: "Keys of quantities".into(), note, body };
    let mut comparison = single(model::Report { tables: vec![table], ..model::Report::default() });
    (comparison.findings, comparison.cross_check) = (None, None);
    comparison.inputs.clear();
    let printing = Printing { tables: vec![NAME.into()], format };
    append(&mut comparison, &printing, out)?;
    if format == Format::Table && out.first() == Some(&b'\n') {
        out.remove(0);
    }
    Ok(0)
}

/// Name of the table.
const NAME: &str = "keys";

/// What a recording of nothing has keys of.
fn of_nothing() -> model::Report {
    let nothing = Analysis::default();
    let tables = [reclaim_tables(&nothing), subject_tables(&nothing)].concat();
    quantities::of(&nothing, model::Report { tables, ..model::Report::default() })
}

/// Prints the keys of the first word that is an input, one a line.
const BASH: &str = r#"
_mmtwin_keys() {
    local word input=()
    for word in "${COMP_WORDS[@]:2}"; do
        word=${word#*=}
        word=${word%%,*}
        if [[ -e $word ]]; then
            input=("$word")
            break
        fi
    done
    mmtwin report "${input[@]}" --keys --format csv 2>/dev/null | sed -n 's/^keys,,\([^,]*\),.*/\1/p'
}
"#;

const ZSH: &str = r#"
_mmtwin_keys() {
    local word
    local -a input found
    for word in ${words[3,-1]}; do
        word=${word#*=}
        word=${word%%,*}
        if [[ -e $word ]]; then
            input=("$word")
            break
        fi
    done
    found=(${(f)"$(mmtwin report $input --keys --format csv 2>/dev/null | sed -n 's/^keys,,\([^,]*\),.*/\1/p')"})
    compadd -a found
}
"#;

const FISH: &str = r#"
function __mmtwin_keys
    set -l input
    for word in (commandline -opc)[3..-1]
        set -l word (string replace -r '^[^=/]*=' '' -- $word | string replace -r ',.*' '')
        if test -e "$word"
            set input $word
            break
        end
    end
    mmtwin report $input --keys --format csv 2>/dev/null | string replace -rf '^keys,,([^,]*),.*' '$1'
end
"#;

/// A completion script in which the value of `--fail-on` is completed by the keys of the input that was named.
pub(super) fn complete(shell: Shell, script: &str) -> String {
    let after_first_line = |more: &str, script: &str| match script.split_once('\n') {
        Some((first, rest)) => format!("{first}\n{more}\n{rest}"),
        None => script.to_owned(),
    };
    match shell {
        Shell::Bash => {
            let option = "--fail-on)\n                    COMPREPLY=($(compgen ";
            let files = format!("{option}-f \"${{cur}}\"))");
            format!("{BASH}\n{}", script.replace(&files, &format!("{option}-W \"$(_mmtwin_keys)\" -- \"${{cur}}\"))")))
        }
        Shell::Zsh => {
            let line = |line: &str| match line.contains("--fail-on=") {
                true => line.replace(":EXPR:_default", ":EXPR:_mmtwin_keys"),
                false => line.to_owned(),
            };
            let script: Vec<String> = script.lines().map(line).collect();
            after_first_line(ZSH, &format!("{}\n", script.join("\n")))
        }
        Shell::Fish => {
            let line = |line: &str| match line.contains(" -l fail-on ") {
                true => format!("{line} -f -a '(__mmtwin_keys)'"),
                false => line.to_owned(),
            };
            let script: Vec<String> = script.lines().map(line).collect();
            after_first_line(FISH, &format!("{}\n", script.join("\n")))
        }
        _ => script.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn shells_complete_keys_of_report_and_compare() {
        for (shell, word) in [
            (Shell::Bash, "$(_mmtwin_keys)"),
            (Shell::Zsh, ":EXPR:_mmtwin_keys"),
            (Shell::Fish, "-a '(__mmtwin_keys)'"),
        ] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut crate::args::Cli::command(), "mmtwin", &mut script);
            let script = complete(shell, &String::from_utf8_lossy(&script));
            assert_eq!(script.matches(word).count(), 2, "{shell}");
        }
    }

    #[test]
    fn keys_that_every_recording_has() {
        let report = of_nothing();
        let names: Vec<&str> = report.tables.iter().map(|table| table.name.as_str()).collect();
        assert!(names.contains(&"overview") && names.contains(&"reclaim"), "{names:?}");
    }
}
