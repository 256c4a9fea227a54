//! What the twin begins with: texts of the kernel's files, and `state.json` as `--from-state` takes it.

use super::recording::STORED;
use crate::{Random, Seen, hash, mutate, samples};
use mmtwin::Analysed;
use mmtwin::running::state_of;
use mmtwin_analysis::Analysis;
use mmtwin_event::NullSink;
use mmtwin_event::counters::{self, Row};
use mmtwin_event::manifest::{Manifest, State};
use mmtwin_scenario::Scenario;
use mmtwin_scenario::units::Time;
use mmtwin_trace::Outcome;
use mmtwin_twin::engine::{Options, run as simulate};
use std::sync::LazyLock;

fn stored_state() -> Vec<u8> {
    samples::stored(STORED).remove("state.json").expect("a state in the stored run")
}

/// The scenario of the stored run, cut to some milliseconds.
static SCENARIO: LazyLock<Scenario> = LazyLock::new(|| {
    let files = samples::stored(STORED);
    let manifest: Manifest = serde_json::from_slice(&files["manifest.json"]).expect("a manifest");
    let mut scenario = mmtwin_scenario::from_json(&manifest.scenario.expect("a scenario")).expect("a scenario");
    (scenario.run.duration, scenario.run.sample) = (Some(Time(5_000_000)), Time(5_000_000));
    scenario
});

/// The stored state.
pub fn seeds() -> Vec<Vec<u8>> {
    vec![stored_state()]
}

/// Texts inside of the JSON as text, the rest as JSON.
pub fn mutate(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let Ok(mut state) = serde_json::from_slice::<State>(input) else { return mutate::json(input, other, random) };
    if random.one_in(3) {
        return mutate::json(input, other, random);
    }
    let which = random.below(state.files.len());
    if let Some(file) = state.files.values_mut().nth(which) {
        let mut bytes = std::mem::take(file).into_bytes();
        let lent = bytes.clone();
        mutate::text(&mut bytes, &lent, random);
        *file = String::from_utf8_lossy(&bytes).into_owned();
    }
    *input = serde_json::to_vec(&state).unwrap_or_default();
}

/// Begins a short run with a state.
pub fn run(input: &[u8]) -> Seen {
    let state: State = match serde_json::from_slice(input) {
        Ok(state) => state,
        Err(error) => return Seen::refused(error),
    };
    let analysed = Analysed {
        analysis: Analysis::default(),
        outcome: Outcome::default(),
        about: Default::default(),
        results: None,
        state: Some(state),
        scenario: None,
        resolved: None,
    };
    let state = match state_of(&analysed) {
        Ok(Some(state)) => state,
        Ok(None) => return Seen::refused("nothing to begin from"),
        Err(failure) => return Seen::refused(failure),
    };
    let options = Options { state, explicit: false, trace: None, events: Vec::new(), progress: &mut |_| {} };
    match simulate(&SCENARIO, options, &mut NullSink) {
        Ok(ran) => Seen::accepted(hash(&serde_json::to_vec(&ran.results).expect("JSON"))),
        Err(error) => Seen::refused(error),
    }
}

/// Names of saved files, one of which an input begins with.
const NAMES: [&str; 11] = [
    "vmstat",
    "zoneinfo",
    "meminfo",
    "numastat",
    "node_vmstat",
    "pagetypeinfo",
    "lru",
    "shrinkers",
    "pagesets",
    "iomem",
    "memory.stat",
];

/// Texts of saved counters and of the lab's own files.
pub fn text_seeds() -> Vec<Vec<u8>> {
    let folder = "tests/data/findings";
    let mut seeds = Vec::new();
    let mut add = |number: u8, text: &[u8]| seeds.push([&[number], text].concat());
    samples::files(folder, ".vmstat", 2000).iter().for_each(|text| add(0, text));
    samples::files("crates/twin/tests/data", "", 3000).iter().for_each(|text| add(1, text));
    samples::files(folder, ".numastat", 2000).iter().for_each(|text| add(3, text));
    let state: State = serde_json::from_slice(&stored_state()).expect("a state");
    for (path, text) in &state.files {
        let number = NAMES.iter().position(|name| path.ends_with(name)).unwrap_or(0);
        add(number as u8, &text.as_bytes()[..text.len().min(3000)]);
    }
    seeds.push(b"\x02MemTotal:  1234 kB\nMemFree:  77 kB\nHugePages_Total: 0\n".to_vec());
    seeds.push(b"\x09anon 4096\nfile 8192\npgfault 7\n".to_vec());
    seeds
}

/// By words, sometimes another file's name.
pub fn mutate_text(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let number = input.first().copied().unwrap_or(0);
    let mut text = input.get(1..).unwrap_or_default().to_vec();
    mutate::text(&mut text, other.get(1..).unwrap_or_default(), random);
    let number = if random.one_in(20) { random.below(NAMES.len()) as u8 } else { number };
    *input = [&[number], &text[..]].concat();
}

/// Reads a text as the file it says it is.
pub fn run_text(input: &[u8]) -> Seen {
    let Some((number, text)) = input.split_first() else { return Seen::refused("no file") };
    let text = String::from_utf8_lossy(text);
    let mut problems = Vec::new();
    let name = NAMES[usize::from(*number) % NAMES.len()];
    let read = match name {
        "pagetypeinfo" => format!("{:?}", counters::free_blocks(&text, &mut problems)),
        "lru" => format!("{:?}", counters::lru(&text, &mut problems)),
        "shrinkers" => format!("{:?}", counters::shrinkers(&text, &mut problems)),
        "iomem" => format!("{:?}", counters::iomem(&text, &mut problems)),
        "pagesets" => format!("{:?}", counters::pagesets(&text, &mut problems)),
        "memory.stat" => {
            let mut row = Row::new("/a");
            let files =
                ["memory.stat", "memory.current", "memory.events", "memory.pressure", "memory.numa_stat", "memory.max"];
            files.iter().for_each(|file| counters::cgroup_file(file, &text, &mut row, &mut problems));
            counters::pressure(&text, "memory", &mut row, &mut problems);
            counters::proc_sched(&text, &mut row);
            format!("{row:?}")
        }
        saved => format!("{:?}", counters::saved(saved, &text, &mut problems)),
    };
    let told: String = problems.iter().map(|problem| format!("{}: {}\n", problem.line, problem.message)).collect();
    let digest = hash(read.as_bytes()) ^ hash(told.as_bytes());
    if problems.is_empty() { Seen::accepted(digest) } else { Seen { accepted: false, digest } }
}
