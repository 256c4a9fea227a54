//! What is measured, and what it has to reach.

use crate::inputs::{self, Input, Recipe, Result, SEED, Seed, Size, fail, first_lines, unless_made};
use crate::measure::{Cost, Program, best_in_turns, in_turns, median, own, warm};
use crate::recorder;
use crate::table::{Bar, Row};
use crate::twin;
use mmtwin_trace::dat::{Codec, Version};
use std::fs;
use std::path::PathBuf;

/// A group of measurements that share inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Case {
    /// report and script of an uncompressed trace.dat, beside `trace-cmd report`
    Dat,
    /// report of compressed files, beside the decompressor
    Compressed,
    /// report of ftrace text, beside `wc -l` and the kernel's script
    Text,
    /// report on two cores beside one, and of a small recording
    Cores,
    /// Memory for a large input
    Memory,
    /// What recording costs
    Record,
    /// The simulated kernel reclaims on a large machine
    Reclaim,
    /// The simulated kernel
    Twin,
}

/// How the cases are run.
pub struct Bench {
    /// Where inputs are kept.
    pub dir: PathBuf,
    /// The kernel's script, if `make setup` could fetch it.
    pub script: PathBuf,
    /// Runs of which the median counts.
    pub runs: usize,
    /// Events of the inputs.
    pub events: u64,
    /// Bytes of the large input.
    pub big: u64,
    /// What is repeated.
    pub seed: Seed,
}

const MMTWIN: &str = env!("CARGO_BIN_EXE_mmtwin");

/// Lines for the kernel's script, which takes some µs for each.
const SCRIPT_LINES: u64 = 300_000;

fn report() -> Program {
    Program::new(MMTWIN, &["report", "--table", "vmscan", "--format", "json"])
}

/// True if it can be started; `trace-cmd --version` prints its version and fails.
fn installed(program: &str) -> bool {
    std::process::Command::new(program).arg("--version").output().is_ok()
}

fn millions(count: f64) -> String {
    format!("{:.1} M", count / 1e6)
}

impl Bench {
    /// Runs a case.
    pub fn run(&self, case: Case) -> Result<Vec<Row>> {
        match case {
            Case::Dat => self.dat(),
            Case::Compressed => self.compressed(),
            Case::Text => self.text(),
            Case::Cores => self.cores(),
            Case::Memory => self.memory(),
            Case::Record => self.record(),
            Case::Reclaim => self.reclaim(),
            Case::Twin => twin::rows(self.runs),
        }
    }

    /// Sixty seconds of a full machine of 192 GiB, as a whole process.
    fn reclaim(&self) -> Result<Vec<Row>> {
        let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/bench/reclaim.toml");
        let run = Program::new(MMTWIN, &["run", scenario, "--table", "vmstat", "--format", "json"]);
        let cost = median((0..self.runs).map(|_| run.run()).collect::<Result<Vec<Cost>>>()?);
        let gigabytes = run.peak_memory()? as f64 / (1 << 30) as f64;
        let figure = format!("{:.1} s for 60 s ({:.1} s of CPU time)", cost.wall, cost.cpu);
        let what = "Twin: reclaim on 4 nodes with 192 GiB, readers and heaps";
        let memory = format!("{gigabytes:.2} GiB (RssAnon + RssShmem)");
        Ok(vec![
            Row::new(what, Bar::AtMost(30.0), cost.wall, figure),
            Row::new("Twin: memory of the same run", Bar::AtMost(1.2), gigabytes, memory),
        ])
    }

    /// An input that is in the page cache and has been read right once.
    fn input(&self, recipe: Recipe) -> Result<Input> {
        let input = self.seed.input(&self.dir, &recipe)?;
        warm(&input.path)?;
        let checked = self.dir.join("checked.json");
        report().arg(&input.path).stdout(&checked).run()?;
        let text = fs::read_to_string(&checked).map_err(fail(&checked))?;
        let json: serde_json::Value = serde_json::from_str(&text).map_err(fail(&checked))?;
        let found = &json["inputs"][0]["events"];
        if found.as_u64() != Some(input.events) {
            return Err(format!("{}: {} events were written, {found} read", input.path.display(), input.events));
        }
        Ok(input)
    }

    fn uncompressed(&self, name: &'static str, cpus: u32, size: Size) -> Result<Input> {
        self.input(Recipe { name, version: Version::V6, cpus, size })
    }

    fn dat(&self) -> Result<Vec<Row>> {
        let eight = self.uncompressed("raw8.dat", 8, Size::Events(self.events))?;
        let many = self.uncompressed("raw448.dat", 448, Size::Events(self.events))?;
        let rate = |what: &str, events: u64, cost: Cost, bar| {
            let (cpu, wall) = (events as f64 / cost.cpu, events as f64 / cost.wall);
            let figure = format!("{} events/s of CPU time ({} of wall time)", millions(cpu), millions(wall));
            Row::new(what, bar, cpu, figure)
        };
        let report8 = report().arg(&eight.path);
        let report448 = report().arg(&many.path);
        let script = Program::new(MMTWIN, &["script", "--style", "trace-cmd"]).arg(&eight.path);
        let mut programs = vec![&report8, &report448, &script];
        let trace_cmd = Program::new("trace-cmd", &["report"]).arg(&eight.path);
        let compared = installed("trace-cmd");
        if compared {
            programs.push(&trace_cmd);
        }
        let costs = in_turns(self.runs, &programs)?;
        let mut rows = vec![
            rate("`report`, trace.dat of 8 CPUs", eight.events, costs[0], Bar::AtLeast(20e6)),
            rate("`report`, trace.dat of 448 CPUs", many.events, costs[1], Bar::AtLeast(10e6)),
            rate("`script`, trace.dat of 8 CPUs", eight.events, costs[2], Bar::None),
        ];
        match costs.get(3) {
            Some(theirs) => {
                rows.push(rate("`trace-cmd report`, the same file", eight.events, *theirs, Bar::None));
                rows.push(faster("`report` beside `trace-cmd report`", costs[0], *theirs, 40.0));
                rows.push(faster("`script` beside `trace-cmd report`", costs[2], *theirs, 10.0));
            }
            None => rows.push(Row::skipped("beside `trace-cmd report`", "trace-cmd is not installed")),
        }
        Ok(rows)
    }

    fn compressed(&self) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        for (name, label, codec) in [("raw8-zstd.dat", "zstd", Codec::Zstd), ("raw8-zlib.dat", "zlib", Codec::Zlib)] {
            let size = Size::Events(self.events);
            let input = self.input(Recipe { name, version: Version::V7(codec), cpus: 8, size })?;
            let file = fs::read(&input.path).map_err(fail(&input.path))?;
            let program = report().arg(&input.path);
            let (mut ours, mut bare, mut bytes) = (Vec::new(), Vec::new(), 0);
            for _ in 0..self.runs {
                ours.push(program.run()?);
                bare.push(own(|| inputs::decompress(&input.path, &file).map(|n| bytes = n))?);
            }
            let (ours, bare) = (median(ours), median(bare));
            let figure = format!(
                "{} events/s of CPU time; {:.2} s, of which the decompressor alone takes {:.2} s for {} MiB",
                millions(input.events as f64 / ours.cpu),
                ours.cpu,
                bare.cpu,
                bytes >> 20
            );
            rows.push(Row::new(&format!("`report`, {label} trace.dat of 8 CPUs"), Bar::None, ours.cpu, figure));
        }
        Ok(rows)
    }

    fn text(&self) -> Result<Vec<Row>> {
        let Input { path: text, events } = self.text_input()?;
        let wc = Program::new("wc", &["-l"]).arg(&text);
        let costs = in_turns(self.runs, &[&report().arg(&text), &wc])?;
        let lines = events as f64;
        let size = fs::metadata(&text).map_err(fail(&text))?.len() as f64;
        let figure = format!(
            "{:.1} times ({:.1} by wall time); {} lines/s, {:.0} MB/s of CPU time",
            costs[0].cpu / costs[1].cpu,
            costs[0].wall / costs[1].wall,
            millions(lines / costs[0].cpu),
            size / costs[0].cpu / 1e6
        );
        let ratio = costs[0].cpu / costs[1].cpu;
        let mut rows = vec![Row::new("`report`, ftrace text, beside `wc -l`", Bar::AtMost(4.0), ratio, figure)];
        let label = "`report`, ftrace text, beside the kernel's Perl script";
        if !installed("perl") || !self.script.exists() {
            rows.push(Row::skipped(label, "no perl, or `make setup` could not fetch the script"));
            return Ok(rows);
        }
        let part = self.dir.join("part.txt");
        first_lines(&text, SCRIPT_LINES.min(events), &part)?;
        let script = Program::new("perl", &[]).arg(&self.script).stdin(&part);
        let theirs = in_turns(self.runs, &[&script])?[0];
        let scale = lines / SCRIPT_LINES.min(events) as f64;
        rows.push(faster(label, costs[0], Cost { wall: theirs.wall * scale, cpu: theirs.cpu * scale }, 15.0));
        Ok(rows)
    }

    /// A text of a fourth of the events: a line has three times the bytes of a record.
    fn text_input(&self) -> Result<Input> {
        let path = self.dir.join("raw8.txt");
        let dat = self.uncompressed("text8.dat", 8, Size::Events(self.events / 4))?;
        unless_made(&path, &format!("{} events", dat.events), dat.events * 256, || {
            Program::new(MMTWIN, &["script"]).arg(&dat.path).stdout(&path).run().map(|_| ())
        })?;
        warm(&path)?;
        Ok(Input { path, events: dat.events })
    }

    /// Wall time on all cores, the best of all runs.
    fn cores(&self) -> Result<Vec<Row>> {
        let label = "`report` on two cores";
        if !installed("taskset") || std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() < 2) {
            return Ok(vec![Row::skipped(label, "there is one core, or taskset is not installed")]);
        }
        let dat = self.uncompressed("raw8.dat", 8, Size::Events(self.events))?.path;
        let text = self.text_input()?.path;
        let (pages, lines, small) = (report().arg(&dat), report().arg(&text), Program::new(MMTWIN, &["report", SEED]));
        let (pages_alone, lines_alone) = (report().arg(&dat).pinned(), report().arg(&text).pinned());
        let wc = Program::new("wc", &["-l"]).arg(&text);
        let programs = [&pages, &pages_alone, &lines, &lines_alone, &wc, &small];
        let [pages, pages_alone, lines, lines_alone, wc, small] = best_in_turns(self.runs, &programs)?[..] else {
            return Err("a program was not measured".into());
        };
        let beside = |alone: f64, both: f64| format!("{:.2} times as fast ({both:.3} s, {alone:.3} s)", alone / both);
        let (pages_ratio, text_ratio) = (pages_alone / pages, lines / wc);
        let text_figure = format!("{text_ratio:.1} times ({lines:.3} s, {wc:.3} s)");
        let small_figure = format!("{:.1} ms", small * 1e3);
        Ok(vec![
            Row::new(
                &format!("{label} beside one, trace.dat of 8 CPUs"),
                Bar::AtLeast(1.8),
                pages_ratio,
                beside(pages_alone, pages),
            ),
            Row::new(&format!("{label} beside one, ftrace text"), Bar::None, lines, beside(lines_alone, lines)),
            Row::new(&format!("{label}, ftrace text, beside `wc -l`"), Bar::AtMost(2.5), text_ratio, text_figure),
            Row::new("`report` of 18,410 events", Bar::AtMost(15.0), small * 1e3, small_figure),
        ])
    }

    fn memory(&self) -> Result<Vec<Row>> {
        let label = format!("Peak memory of `report`, {:.1} GiB", self.big as f64 / f64::from(1 << 30));
        let recipe = Recipe { name: "big.dat", version: Version::V6, cpus: 8, size: Size::Bytes(self.big) };
        let input = match self.seed.input(&self.dir, &recipe) {
            Err(why) if why.contains("too little") => return Ok(vec![Row::skipped(&label, &why)]),
            other => other?,
        };
        let peak = report().arg(&input.path).peak_memory()? as f64 / f64::from(1 << 20);
        Ok(vec![Row::new(&label, Bar::AtMost(128.0), peak, format!("{peak:.1} MiB (RssAnon + RssShmem)"))])
    }

    fn record(&self) -> Result<Vec<Row>> {
        let label = "`record` at 100 k events/s";
        if let Err(obstacle) = mmtwin_host::tracefs::find() {
            return Ok(vec![Row::skipped(label, &format!("{} (fix: {})", obstacle.what, obstacle.fix))]);
        }
        let recorded = recorder::measure(MMTWIN, &self.dir, 100e3, 10)?;
        let figure = format!(
            "{:.2} % of a CPU at {:.0} k events/s ({:.2} % with start and end); {} lost",
            recorded.own * 100.0,
            recorded.rate / 1e3,
            recorded.whole * 100.0,
            recorded.lost
        );
        Ok(vec![Row::new(label, Bar::AtMost(2.0), recorded.own * 100.0, figure)])
    }
}

fn faster(what: &str, ours: Cost, theirs: Cost, bar: f64) -> Row {
    let ratio = theirs.cpu / ours.cpu;
    let figure = format!("{ratio:.1} times as fast ({:.1} by wall time)", theirs.wall / ours.wall);
    Row::new(what, Bar::AtLeast(bar), ratio, figure)
}
