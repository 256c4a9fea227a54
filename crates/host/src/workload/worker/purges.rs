//! How long purges of vmalloc areas take, by the kernel's function-graph tracer.
//!
//! Before 6.11 only the whole machine's tracing has this tracer, no instance, so it is used there, on all kernels: one
//! function alone is traced, and everything is put back afterwards. The size of the buffers is put back when the run
//! has ended ([`crate::restore`]): buffers that grow again would count among what the workload allocates. If somebody
//! else uses the tracer, nothing is timed. A duration includes the time in which the caller did not run, as with the
//! tools that time functions by kprobes.

use crate::tracefs;
use mmtwin_event::results::{ActionResult, Latency};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Buffer per CPU in KiB: room for some 2000 calls.
pub(crate) const BUFFER: &str = "128";

/// Functions that purge areas, of which the first that a kernel has is timed: 6.9 and later purge per node.
pub(crate) const FUNCTIONS: [&str; 2] = ["purge_vmap_node", "__purge_vmap_area_lazy"];

/// Times purges until it is dropped.
#[derive(Debug)]
pub struct Purges {
    tracefs: PathBuf,
    /// What was there: files and their values, to be put back in this order.
    before: Vec<(&'static str, String)>,
}

impl Purges {
    /// Begins. `None` where that cannot be.
    pub fn begin() -> Option<Purges> {
        let tracefs = tracefs::find().ok()?;
        let value = |file: &str| {
            let text = fs::read_to_string(tracefs.join(file)).ok()?;
            text.split_whitespace().next().map(str::to_string)
        };
        if value("current_tracer")? != "nop" {
            return None;
        }
        let before = vec![
            ("current_tracer", "nop".to_string()),
            ("set_ftrace_filter", String::new()),
            ("tracing_on", value("tracing_on")?),
        ];
        let purges = Purges { tracefs, before };
        purges.set("buffer_size_kb", BUFFER).ok()?;
        // A compiler may have given a function's only copy a longer name. Without the line's end the kernel would look
        // for the function later, and not say that there is none.
        let chosen = FUNCTIONS.iter().find(|name| purges.set("set_ftrace_filter", &format!("{name}*\n")).is_ok());
        chosen?;
        purges.set("trace", "").ok()?;
        purges.set("tracing_on", "1").ok()?;
        purges.set("current_tracer", "function_graph").ok()?;
        Some(purges)
    }

    /// Ends, and adds what was seen to the action that was done meanwhile.
    pub fn end(self, result: &mut ActionResult) {
        let Some(calls) = self.calls() else { return };
        result.latency = calls.latency();
        result.more.insert("purge_calls".into(), calls.count() as f64);
        result.more.insert("purge_longest_us".into(), calls.longest() as f64 / 1e3);
        if calls.lost > 0 {
            result.more.insert("purge_calls_lost".into(), calls.lost as f64);
        }
    }

    /// The calls that have ended since the beginning; `None` if they cannot be read.
    fn calls(&self) -> Option<Calls> {
        self.set("tracing_on", "0").ok()?;
        let mut calls = Calls::parse(&fs::read_to_string(self.tracefs.join("trace")).ok()?);
        for cpu in fs::read_dir(self.tracefs.join("per_cpu")).ok()?.flatten() {
            let stats = fs::read_to_string(cpu.path().join("stats")).unwrap_or_default();
            let overrun = stats.lines().find_map(|line| line.strip_prefix("overrun:")?.trim().parse::<u64>().ok());
            // Beginning and end of a call.
            calls.lost += overrun.unwrap_or(0).div_ceil(2);
        }
        Some(calls)
    }

    fn set(&self, file: &str, value: &str) -> io::Result<()> {
        write(&self.tracefs.join(file), value)
    }
}

impl Drop for Purges {
    fn drop(&mut self) {
        for (file, value) in &self.before {
            // What cannot be put back is at its usual value or was never changed.
            let _ = self.set(file, value);
        }
        let _ = self.set("trace", "");
    }
}

/// The size of a buffer out of `buffer_size_kb`: `1408`, or `7 (expanded: 1408)` before its first use.
pub(crate) fn buffer_size(text: &str) -> String {
    let expanded = text.split_once("(expanded: ").and_then(|(_, rest)| rest.split(')').next());
    expanded.or(text.split_whitespace().next()).unwrap_or_default().into()
}

/// Writes to a file of tracefs; opening it empties filters and traces.
fn write(path: &Path, value: &str) -> io::Result<()> {
    OpenOptions::new().write(true).truncate(true).open(path)?.write_all(value.as_bytes())
}

/// Durations of calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Calls {
    /// Nanoseconds of each, in no order.
    durations: Vec<u64>,
    /// Calls that the buffer had no room for.
    lost: u64,
}

impl Calls {
    /// The text of a trace: a call's end has its duration in microseconds, before the bar.
    fn parse(text: &str) -> Calls {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let durations = lines.filter_map(|line| {
            let before = line.split_once('|')?.0.trim_end().strip_suffix("us")?;
            let number: f64 = before.split_whitespace().next_back()?.parse().ok()?;
            Some((number * 1e3).round() as u64)
        });
        Calls { durations: durations.collect(), lost: 0 }
    }

    /// How many.
    fn count(&self) -> usize {
        self.durations.len()
    }

    /// Nanoseconds of the longest.
    fn longest(&self) -> u64 {
        self.durations.iter().copied().max().unwrap_or(0)
    }

    /// Their distribution by powers of two of microseconds, the first slot from 0; `None` without calls.
    fn latency(&self) -> Option<Latency> {
        let slot = |ns: u64| (ns / 1000).checked_ilog2().unwrap_or(0) as usize;
        let mut counts = vec![0; slot(self.longest()) + 1];
        self.durations.iter().for_each(|ns| counts[slot(*ns)] += 1);
        let least = |i: usize| if i == 0 { 0 } else { 1000 << i };
        let slots = counts.into_iter().enumerate().map(|(i, count)| (least(i), count)).collect();
        let mean = self.durations.iter().sum::<u64>() as f64 / self.count() as f64;
        (self.count() > 0).then_some(Latency { mean, slots, ..Latency::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read() {
        let text = "# tracer: function_graph\n#\n# CPU  DURATION                  FUNCTION CALLS\n\
                    # |     |   |                     |   |   |   |\n 0)   1.342 us    |  purge_vmap_node();\n \
                    1)               |  purge_vmap_node() {\n ------------------------------------------\n \
                    1)  kworker-12  =>  vmalloc-77  \n ------------------------------------------\n\n \
                    1) ! 163.201 us  |  } /* purge_vmap_node */\n 3) @ 150000.5 us |  purge_vmap_node();\n";
        let calls = Calls::parse(text);
        assert_eq!(calls.durations, [1342, 163_201, 150_000_500]);
        assert_eq!((calls.count(), calls.longest()), (3, 150_000_500));
        assert_eq!(Calls::parse("").latency(), None);
    }

    #[test]
    fn a_buffer_is_as_large_as_it_gets() {
        assert_eq!((buffer_size("7 (expanded: 1408)\n"), buffer_size("128\n")), ("1408".into(), "128".into()));
    }

    #[test]
    fn slots_are_powers_of_two_of_microseconds() {
        let calls = Calls { durations: vec![0, 999, 1999, 2000, 3999, 8000], lost: 0 };
        let latency = calls.latency().unwrap();
        assert_eq!(latency.slots, [(0, 3), (2000, 2), (4000, 0), (8000, 1)]);
        assert_eq!(latency.mean, 16_997.0 / 6.0);
    }
}
