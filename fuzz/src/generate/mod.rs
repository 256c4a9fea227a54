//! Scenarios made of bytes: valid ones mostly, small, and short of memory, where the twin has most to decide.
//!
//! Every choice takes some of the bytes, in order; where they end, each choice is its first one. Two inputs that differ in
//! one byte therefore differ in few choices.

mod machine;
mod process;

use arbitrary::Unstructured;
use std::fmt::Write;

/// Most memory of a machine, in KiB.
const MEMORY: u64 = 256 << 10;

/// Choices from bytes.
struct Choices<'a>(Unstructured<'a>);

impl Choices<'_> {
    /// A number from `least` to `most`.
    fn number(&mut self, least: u64, most: u64) -> u64 {
        self.0.int_in_range(least..=most).unwrap_or(least)
    }

    /// One of some things, the first if there are no bytes left.
    fn of<T: Copy>(&mut self, things: &[T]) -> T {
        things[self.number(0, things.len() as u64 - 1) as usize]
    }

    /// True in about `times` of `of` cases; false if there are no bytes left.
    fn chance(&mut self, times: u64, of: u64) -> bool {
        self.number(0, of - 1) >= of - times
    }
}

/// What the parts of a scenario must know of it.
struct Known {
    nodes: u64,
    cpus: u64,
    /// KiB.
    memory: u64,
    /// Node of a number has memory.
    filled: Vec<bool>,
    release: &'static str,
    v2: bool,
    balancing: bool,
    cgroups: Vec<String>,
    /// Sysctls of the kernel.
    sysctls: Vec<String>,
}

impl Known {
    /// Kernels that reclaim zones, of 2010 to 2012.
    fn by_zone(&self) -> bool {
        ["2.6", "3.3", "3.4", "3.5"].iter().any(|of| self.release.starts_with(of))
    }

    /// A list of one or several nodes with memory.
    fn nodes_with_memory(&self, choices: &mut Choices<'_>) -> String {
        let filled: Vec<usize> = (0..self.filled.len()).filter(|&node| self.filled[node]).collect();
        let first = choices.of(&filled);
        if choices.chance(1, 3) { "all".into() } else { first.to_string() }
    }

    /// A memory policy.
    fn policy(&self, choices: &mut Choices<'_>) -> String {
        let kind =
            choices.of(&["default", "local", "bind", "interleave", "preferred", "bind-balancing", "preferred-many"]);
        let nodes = self.nodes_with_memory(choices);
        match kind {
            "default" | "local" => kind.into(),
            "preferred" | "preferred-many" if nodes == "all" => "preferred:0".into(),
            _ => format!("{kind}:{nodes}"),
        }
    }
}

/// A scenario of some bytes.
pub fn scenario(bytes: &[u8]) -> String {
    let mut choices = Choices(Unstructured::new(bytes));
    let mut text = String::new();
    let mut known = machine::machine(&mut choices, &mut text);
    machine::kernel(&mut choices, &mut known, &mut text);
    machine::cgroups(&mut choices, &mut known, &mut text);
    let files = choices.chance(1, 3).then(|| process::shared_file(&mut choices, &known));
    for number in 0..choices.number(1, 4) {
        process::process(&mut choices, &known, files.as_deref(), number, &mut text);
    }
    run(&mut choices, &known, &mut text);
    text
}

fn run(choices: &mut Choices<'_>, known: &Known, text: &mut String) {
    let duration = choices.of(&[50u64, 10, 1, 200, 500, 1000, 2000]);
    let _ = writeln!(text, "[run]\nseed = {}\nduration = \"{duration} ms\"", choices.number(0, 1000));
    if choices.chance(1, 4) {
        let _ = writeln!(text, "sample = \"{} ms\"", choices.of(&[0u64, 10, 50, 100]));
    } else {
        // Events are compared with counters between the first sample and the last.
        let _ = writeln!(text, "sample = \"{} ms\"", choices.of(&[10u64, 20, 50]));
    }
    if choices.chance(1, 6) {
        let _ = writeln!(text, "epoch = \"{} us\"", choices.of(&[100u64, 500, 1000, 10_000]));
    }
    let events = match known.by_zone() {
        true => choices.of(&["\"vmscan:*\"", "\"*:*\"", ""]),
        false => choices.of(&["\"vmscan:*\", \"migrate:*\"", "\"*:*\"", "", "\"*:*\", \"mmtwin:*\""]),
    };
    let _ = writeln!(text, "events = [{events}]");
}
