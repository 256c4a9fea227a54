//! The page of commands, from the definitions of the command line.

use super::{cell, head};
use crate::args::Cli;
use clap::{Arg, Command, CommandFactory};
use std::fmt::Write;

/// The page.
pub fn page() -> String {
    let mut cli = Cli::command();
    cli.build();
    let mut page = head(
        "Commands",
        "`mmtwin VERB --help` prints the same. Data go to standard output, messages and progress to standard error.",
    );
    after(&cli, &mut page);
    page.push_str("\nOptions of every verb:\n");
    options(cli.get_arguments().filter(|argument| argument.is_global_set()), &mut page);
    for verb in visible(&cli) {
        command(verb, &format!("mmtwin {}", verb.get_name()), &mut page);
    }
    page
}

fn visible(of: &Command) -> impl Iterator<Item = &Command> {
    of.get_subcommands().filter(|verb| !verb.is_hide_set() && verb.get_name() != "help")
}

fn command(of: &Command, path: &str, page: &mut String) {
    let about = of.get_long_about().or(of.get_about()).map(ToString::to_string).unwrap_or_default();
    let usage = of.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let level = "#".repeat(path.split(' ').count());
    let _ = write!(page, "\n{level} {path}\n\n{about}.\n\n    {usage}\n");
    let own = of.get_arguments().filter(|argument| {
        !argument.is_global_set()
            && !argument.is_hide_set()
            && !["help", "version"].contains(&argument.get_id().as_str())
    });
    options(own, page);
    after(of, page);
    for verb in visible(of) {
        command(verb, &format!("{path} {}", verb.get_name()), page);
    }
}

fn options<'a>(arguments: impl Iterator<Item = &'a Arg>, page: &mut String) {
    let rows: Vec<String> =
        arguments.map(|argument| format!("| `{}` | {} |\n", cell(&name(argument)), cell(&meaning(argument)))).collect();
    if !rows.is_empty() {
        let _ = write!(page, "\n| argument | meaning |\n|---|---|\n{}", rows.concat());
    }
}

/// `-o, --output <REC>`, `<INPUT>...`
fn name(argument: &Arg) -> String {
    let takes_value = argument.get_action().takes_values();
    let values: Vec<String> =
        argument.get_value_names().into_iter().flatten().map(|name| format!("<{name}>")).collect();
    let value = if takes_value { values.join(" ") } else { String::new() };
    let short = argument.get_short().map(|short| format!("-{short}"));
    let long = argument.get_long().map(|long| format!("--{long}"));
    let flags: Vec<String> = short.into_iter().chain(long).collect();
    let several = argument.is_positional() && argument.get_num_args().is_some_and(|n| n.max_values() > 1);
    format!("{} {value}{}", flags.join(", "), if several { "..." } else { "" }).trim().to_string()
}

/// Help, the words it may have with theirs, the default.
fn meaning(argument: &Arg) -> String {
    let help = argument.get_long_help().or(argument.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut meaning = help;
    if argument.get_action().takes_values() && !argument.is_hide_possible_values_set() {
        let words = argument.get_possible_values();
        let word = |of: &clap::builder::PossibleValue| match of.get_help() {
            Some(help) => format!("`{}` ({help})", of.get_name()),
            None => format!("`{}`", of.get_name()),
        };
        if !words.is_empty() {
            let _ = write!(meaning, ": {}", words.iter().map(word).collect::<Vec<_>>().join(", "));
        }
    }
    let defaults: Vec<_> = argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if !defaults.is_empty() && argument.get_action().takes_values() {
        let _ = write!(meaning, ". Default: `{}`", defaults.join(","));
    }
    meaning
}

/// What stands behind the options: examples and exit statuses.
fn after(of: &Command, page: &mut String) {
    if let Some(text) = of.get_after_long_help().or(of.get_after_help()) {
        let _ = write!(page, "\n```text\n{}\n```\n", text.to_string().trim_end());
    }
}
