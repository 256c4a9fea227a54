//! Generated scenarios through the twin: it ends, gives the same twice, keeps every page, and its events and counters agree and
//! fit the recordings of its kernel.

use crate::{Random, Seen, generate, mutate};
use mmtwin_analysis::{Analysis, invariants};
use mmtwin_event::era::{self, Era, Values};
use mmtwin_event::{CounterRow, Event, Fields, Kind, Order, Sink, Source};
use mmtwin_scenario::Scenario;
use mmtwin_twin::engine::{Options, Ran, RunError, State, kinds, run as simulate};
use mmtwin_twin::frame::State as PageState;
use mmtwin_twin::mm::kernel::Kernel;
use mmtwin_twin::time::determinism::Hashing;
use std::path::Path;

/// Bytes that are enough for the choices of a scenario.
const CHOICES: usize = 600;

/// Random choices.
pub fn seeds() -> Vec<Vec<u8>> {
    let seed = |seed| {
        let mut random = Random(seed);
        (0..CHOICES).map(|_| random.bits() as u8).collect()
    };
    (1..=24).map(seed).collect()
}

/// Other choices in some places, those of another input from some place on, or all others.
pub fn mutate(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    match random.below(3) {
        _ if input.starts_with(SCENARIO) => mutate::text(input, other, random),
        0 => *input = (0..CHOICES).map(|_| random.bits() as u8).collect(),
        1 if !other.starts_with(SCENARIO) => {
            let at = random.below(input.len().min(other.len()));
            input.truncate(at);
            input.extend_from_slice(&other[at..]);
        }
        _ => mutate::bytes(input, other, random),
    }
}

/// Bytes of memory and regions of the largest scenario that is run: the twin has some 20 bytes for each page.
const LARGEST: u128 = 64 << 30;

/// How a scenario begins that is an input itself.
const SCENARIO: &[u8] = b"[machine]";

/// The scenario that an input stands for: itself if it is a scenario, as finds are kept, else made of its bytes.
pub fn built(input: &[u8]) -> Vec<u8> {
    match input.starts_with(SCENARIO) {
        true => input.to_vec(),
        false => generate::scenario(input).into_bytes(),
    }
}

/// Runs the scenario that an input stands for.
pub fn run(input: &[u8]) -> Seen {
    scenario(&String::from_utf8_lossy(&built(input)))
}

/// Runs a scenario twice and checks what came out.
fn scenario(text: &str) -> Seen {
    let scenario = match mmtwin_scenario::parse("generated", text, Path::new(""), &[]) {
        Ok(scenario) => scenario,
        Err(faults) => return Seen::refused(faults),
    };
    let memory = scenario.machine.nodes.iter().map(|node| u128::from(node.memory.0));
    let regions = scenario.processes.iter().flat_map(|process| &process.regions);
    if memory.chain(regions.map(|region| u128::from(region.size.0))).sum::<u128>() > LARGEST {
        return Seen::refused("too large");
    }
    let mut rows = Rows::new(&scenario);
    let mut first = Hashing::new(&mut rows, None);
    if let Err(error) = once(&scenario, &mut first) {
        return Seen::refused(error);
    }
    let first = first.finish().expect("nothing to compare with");
    let mut checks = Checks { analysis: rows.0, event: (0, 0), era: scenario.kernel.events.era() };
    let mut second = Hashing::new(&mut checks, Some(first.clone()));
    let ran = once(&scenario, &mut second).expect("the second run does what the first did");
    second.finish().unwrap_or_else(|difference| panic!("two runs differ: {difference}"));
    checks.agree();
    pages_are_conserved(&ran.kernel);
    time_is_sound(&scenario, &ran);
    Seen::accepted(first.last)
}

fn once(scenario: &Scenario, sink: &mut dyn Sink) -> Result<Ran, RunError> {
    let mut last = 0;
    let mut progress = |now| {
        assert!(now >= last, "virtual time went back from {last} to {now}");
        last = now;
    };
    let (state, events) = (State::default(), kinds(scenario));
    simulate(scenario, Options { state, explicit: false, trace: None, events, progress: &mut progress }, sink)
}

/// Takes counters, in the order of their times. All come before the first event, as a report takes a recording.
struct Rows(Analysis, u64);

impl Rows {
    fn new(scenario: &Scenario) -> Rows {
        let mut analysis = Analysis::default();
        analysis.start(&Source {
            name: "generated".into(),
            arm: "twin".into(),
            kernel: Some(scenario.kernel.version.clone()),
            cpus: scenario.machine.cpus.len() as u32,
            nodes: scenario.machine.nodes.len() as u32,
            cpu_nodes: scenario.machine.cpus.iter().map(|cpu| cpu.node).collect(),
            clock: Some("mono".into()),
            enabled: Some(kinds(scenario).iter().map(|kind| name(scenario, *kind)).collect()),
            ..Source::default()
        });
        Rows(analysis, 0)
    }
}

impl Sink for Rows {
    fn event(&mut self, _: &Event<'_>) {}
    fn counters(&mut self, row: &CounterRow<'_>) {
        assert!(row.at >= self.1, "a row of {} at {} comes after {}", row.source, row.at, self.1);
        self.1 = row.at;
        self.0.counters(row);
    }
}

/// What events must fulfil, with the counters of the run before.
struct Checks {
    analysis: Analysis,
    event: (u64, u32),
    era: Era,
}

impl Checks {
    /// Sums over events are those that counters show.
    fn agree(mut self) {
        self.analysis.finish();
        if !invariants::is_complete(&self.analysis) {
            return;
        }
        for sum in invariants::all(&self.analysis) {
            let Ok(difference) = sum.difference() else { continue };
            assert!(difference == 0, "{}: events {:?}, counters {:?}", sum.key, sum.events, sum.counters);
        }
    }
}

fn name(scenario: &Scenario, kind: Kind) -> String {
    mmtwin_event::era::of_kind(scenario.kernel.events.era(), kind)
        .map_or(String::new(), |found| format!("{}:{}", found.system, found.name))
}

impl Sink for Checks {
    fn order(&self, _: Kind) -> Order {
        Order::Time
    }
    fn event(&mut self, event: &Event<'_>) {
        let at = (event.ts, event.cpu);
        assert!(at >= self.event, "event {} at {at:?} comes after {:?}", event.name, self.event);
        self.event = at;
        if let (Some(definition), Fields::Text(slots)) = (era::of_kind(self.era, event.kind), event.fields) {
            let record = definition.encode(1, Default::default(), Values { slots, raw: event.raw }, &mut |_| 0);
            record.unwrap_or_else(|gap| panic!("no recording can have an event: {gap}"));
        }
        self.analysis.event(event);
    }
}

/// Every managed page is free, on a list of a CPU, or allocated, and lies in one block; lists and counters say the same.
fn pages_are_conserved(kernel: &Kernel) {
    let alloc = &kernel.alloc;
    let mut next = 0;
    let mut pages = [0u64; 3];
    for page in 0..alloc.frames.len() as u32 {
        let of = match alloc.frames.state(page) {
            PageState::None => continue,
            PageState::Free => 0,
            PageState::PerCpu => 1,
            PageState::Allocated => 2,
        };
        assert!(page >= next, "page {page} is in two blocks");
        next = page + (1 << alloc.frames.order(page));
        pages[of] += 1 << alloc.frames.order(page);
    }
    let managed: u64 = alloc.zones.iter().map(|zone| zone.managed).sum();
    let free: u64 = alloc.populated().map(|zone| alloc.free_pages(zone)).sum();
    let cpus = kernel.machine.cpus.len() as u32;
    let on_lists = alloc.populated().flat_map(|zone| (0..cpus).filter_map(move |cpu| alloc.pageset(zone, cpu)));
    let on_lists: u64 = on_lists.map(|set| set.count).sum();
    assert_eq!(pages[0], free, "free pages by frame and by list");
    assert_eq!(pages[1], on_lists, "pages of CPUs by frame and by list");
    assert_eq!(pages.iter().sum::<u64>(), managed, "free {free}, of CPUs {on_lists}, allocated {}: not all", pages[2]);
}

/// The run ends when it was told to, and each phase after its begin.
fn time_is_sound(scenario: &Scenario, ran: &Ran) {
    if let Some(duration) = scenario.run.duration {
        assert!(ran.end <= duration.0, "the run ends at {} instead of {}", ran.end, duration.0);
    }
    for phase in &ran.results.phases {
        assert!(phase.start <= phase.end && phase.end <= ran.end, "{}/{}: {phase:?}", phase.process, phase.phase);
    }
}
