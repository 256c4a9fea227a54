//! Scenarios run for real by `mmtwin-agent` on this machine. What needs root or tracefs reports it and is skipped
//! without. Nothing here depends on how fast the machine is.

use mmtwin_event::results::{AccessResult, Ending, PhaseResult, Results};
use mmtwin_event::{CounterRow, Event, Sink};
use mmtwin_host::{evidence, tracefs};
use mmtwin_scenario::Scenario;
use mmtwin_scenario::program::{PhaseAccesses, threads};
use mmtwin_trace::Outcome;
use mmtwin_trace::recording::Recording;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Past the test harness, which keeps the output of tests that pass.
fn skipped(test: &str, why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {test}: {why}");
}

/// A scenario with one node and as many CPUs as this machine's first node has, and this workload.
fn scenario(workload: &str) -> Scenario {
    let node = evidence::collect().nodes.into_iter().next().expect("a machine has a node");
    // The machine's numbers have no gaps; CPUs 0 and 1 are enough for every test.
    let cpus = if node.cpus.contains(&1) { "0-1" } else { "0" };
    let memory = node.memory.unwrap_or(0) / 8 * 4;
    let text = format!(
        "[machine]\n[[machine.node]]\ncpus = \"{cpus}\"\nmemory = \"{memory} KiB\"\n[kernel]\nrelease = \"6.1\"\n\
         cgroup = \"{}\"\n{workload}",
        if Path::new("/sys/fs/cgroup/cgroup.controllers").exists() { "v2" } else { "v1" }
    );
    mmtwin_scenario::parse("test", &text, Path::new(""), &[]).unwrap_or_else(|faults| panic!("{faults}"))
}

/// A run of the agent. The folder is on a disk, below the build's.
struct RunOutcome {
    _root: TempDir,
    output: PathBuf,
    status: i32,
    message: String,
}

fn agent() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mmtwin-agent"));
    command.stdin(Stdio::null());
    command
}

fn run(scenario: &Scenario, more: &[&str]) -> RunOutcome {
    let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (file, output) = (root.path().join("s.json"), root.path().join("r.mmt"));
    fs::write(&file, scenario.to_json().to_string()).unwrap();
    let ran = agent().args(more).arg(&file).arg(&output).output().unwrap();
    let message = String::from_utf8_lossy(&ran.stderr).into_owned();
    RunOutcome { _root: root, output, status: ran.status.code().unwrap_or(-1), message }
}

#[derive(Default)]
struct Seen {
    events: u64,
    /// Values of every counter in time order, by source, key and name.
    counters: BTreeMap<(String, String, String), Vec<(u64, u64)>>,
    comms: BTreeSet<String>,
}

impl Sink for Seen {
    fn task(&mut self, task: &mmtwin_event::Task<'_>) {
        self.comms.insert(String::from_utf8_lossy(task.comm).into_owned());
    }
    fn event(&mut self, _: &Event<'_>) {
        self.events += 1;
    }
    fn counters(&mut self, row: &CounterRow<'_>) {
        for (name, value) in row.names.iter().zip(row.values) {
            let key = (row.source.to_string(), row.key.to_string(), name.clone());
            self.counters.entry(key).or_default().extend(value.map(|value| (row.at, value)));
        }
    }
}

impl Seen {
    fn values(&self, source: &str, key: &str, name: &str) -> &[(u64, u64)] {
        &self.counters[&(source.into(), key.into(), name.into())]
    }

    /// What a counter of the machine grew by in a phase.
    fn delta(&self, name: &str, phase: &PhaseResult) -> u64 {
        let values = self.values("vmstat", "", name);
        let before = values.iter().rev().find(|(at, _)| *at <= phase.start).expect("a sample before the phase");
        let after = values.iter().find(|(at, _)| *at >= phase.end).expect("a sample after the phase");
        after.1 - before.1
    }
}

fn opened(ran: &RunOutcome) -> (Recording, Results, Seen) {
    assert_eq!((ran.status, ran.message.as_str()), (0, ""));
    let recording = Recording::open(&ran.output).unwrap();
    let (mut seen, mut outcome) = (Seen::default(), Outcome::default());
    recording.read(&mut seen, &mut outcome).unwrap();
    assert_eq!(outcome.warnings.list(), []);
    let results = recording.results.clone().expect("results of the workload");
    (recording, results, seen)
}

/// A thread's faults are counted, so a few are of its stack and of the program, which the kernel may unmap.
fn faults_of(pages: u64, faults: u64) -> bool {
    (pages..=pages + 20).contains(&faults)
}

/// A process with a region of 64 MiB.
fn heap(threads: u32) -> String {
    format!(
        "[[process]]\nname = \"heap\"\nthreads = {threads}\n[[process.region]]\nname = \"r\"\nsize = \"64 MiB\"\n\
         huge = \"never\"\n"
    )
}

#[test]
fn a_first_touch_of_every_page_is_a_fault_each() {
    let scenario = scenario(&format!(
        "{}[[process.phase]]\n[[process.phase.access]]\nregion = \"r\"\npattern = \"sequential\"\nwrite = 1.0\n\
         count = 16384\n[[process.phase]]\nname = \"again\"\n[[process.phase.access]]\nregion = \"r\"\n\
         pattern = \"uniform\"\ncount = 20000\nthink = \"1 us\"\n",
        heap(1)
    ));
    let ran = run(&scenario, &[]);
    let (recording, results, seen) = opened(&ran);
    assert_eq!(results.ending, Ending::Completed);
    let [first, again] = results.phases.as_slice() else { panic!("{:?}", results.phases) };
    let of = |access: &AccessResult| (access.touches, access.threads);
    assert_eq!((of(&first.accesses[0]), of(&again.accesses[0])), ((16384, 1), (20000, 1)));
    assert!(faults_of(16384, first.accesses[0].faults), "{} faults", first.accesses[0].faults);
    assert!(faults_of(0, again.accesses[0].faults), "{} faults", again.accesses[0].faults);
    let latency = first.accesses[0].latency.as_ref().unwrap();
    assert_eq!(latency.slots.iter().map(|(_, count)| count).sum::<u64>(), 16384);
    assert!(latency.slots.iter().all(|(least, _)| *least == 0 || least.is_power_of_two()) && latency.mean > 0.0);
    assert!(seen.delta("pgfault", first) >= 16384);
    // Pages of this process: those of the region and what the kernel needs to map them.
    let placed: u64 = first.placement[0].nodes.iter().sum();
    assert_eq!((placed, first.placement == again.placement), (16384, true));
    let sampled = seen.values("numa_maps", "heap/r", "N0");
    assert_eq!(sampled.first().map(|(_, pages)| *pages), Some(0), "nothing is there before the first phase");
    assert_eq!(sampled.last().map(|(_, pages)| *pages), Some(first.placement[0].nodes[0]));
    let manifest = &recording.manifest;
    assert_eq!((manifest.arm.as_str(), manifest.scenario.as_ref()), ("host", Some(&scenario.to_json())));
    assert_eq!(manifest.scenario_hash, Some(scenario.hash()));
    assert!(manifest.no_tracing.is_some() && seen.events == 0);
    assert!(seen.comms.contains("heap"), "{:?}", seen.comms);
}

#[test]
fn threads_touch_exactly_the_pages_of_their_programs() {
    let scenario = scenario(&format!(
        "{}[[process.region]]\nname = \"own\"\nsize = \"10 MiB\"\nhuge = \"never\"\n\
         sharing = \"private\"\n[[process.phase]]\n[[process.phase.access]]\nregion = \"r\"\npattern = \"zipf\"\n\
         skew = 0.8\nwrite = 1.0\ncount = 3000\n[[process.phase.access]]\nregion = \"own\"\nthreads = \"1-2\"\n\
         pattern = \"strided\"\nstride = \"8 KiB\"\nwrite = 1.0\ncount = 300\n",
        heap(3)
    ));
    let mut pages = [BTreeSet::new(), BTreeSet::new()];
    for thread in threads(&scenario.processes[0], 0, scenario.machine.cpus.len() as u32, scenario.run.seed) {
        let phase = &thread.phases[0];
        PhaseAccesses::new(phase)
            .for_each(|touch| _ = pages[phase.accesses[touch.access].region].insert(touch.what.page));
    }
    let (_, results, _) = opened(&run(&scenario, &[]));
    let [phase] = results.phases.as_slice() else { panic!("{:?}", results.phases) };
    let touched: Vec<u64> = phase.placement.iter().map(|placement| placement.nodes.iter().sum()).collect();
    assert_eq!(touched, pages.each_ref().map(|pages| pages.len() as u64));
    let of = |access: &AccessResult| (access.region.clone(), access.touches, access.threads);
    assert_eq!([of(&phase.accesses[0]), of(&phase.accesses[1])], [("r".into(), 9000, 3), ("own".into(), 600, 2)]);
    // Two threads can fault on one page at the same moment, so there may be more faults than pages, not fewer.
    assert!(phase.accesses[0].faults >= touched[0] && phase.accesses[0].faults <= 9000);
    assert!(faults_of(touched[1], phase.accesses[1].faults), "{} faults", phase.accesses[1].faults);
}

#[test]
fn regions_of_all_kinds_are_shared_populated_and_touched_as_said() {
    let scenario = scenario(
        "[[process]]\nname = \"one\"\nthreads = 2\npin = true\npolicy = \"bind:0\"\n\
         [[process.region]]\nname = \"shm\"\nsize = \"4 MiB\"\nkind = \"shmem\"\nfile = \"common\"\npopulate = true\n\
         [[process.region]]\nname = \"data\"\nsize = \"4 MiB\"\nkind = \"file\"\n\
         [[process.region]]\nname = \"mine\"\nsize = \"2 MiB\"\nlocked = true\npolicy = \"interleave:all\"\n\
         [[process.phase]]\nname = \"read\"\n[[process.phase.access]]\nregion = \"data\"\npattern = \"sequential\"\n\
         via = \"syscall\"\nwrite = 0.5\ncount = 1024\n[[process.phase.access]]\nregion = \"mine\"\n\
         pattern = \"hot-cold\"\nhot = 0.1\naccess_share = 0.9\nwrite = 1.0\ncount = 100\nsleep = \"10 us\"\n\
         [[process]]\nname = \"two\"\nstart = \"1 ms\"\nstart_node = 0\n[[process.region]]\nname = \"shm\"\n\
         size = \"4 MiB\"\nkind = \"shmem\"\nfile = \"common\"\n[[process.region]]\nname = \"text\"\n\
         size = \"1 MiB\"\nkind = \"file\"\nexec = true\npopulate = true\n\
         [[process.phase]]\nduration = \"30 ms\"\n[[process.phase.access]]\nregion = \"shm\"\npattern = \"uniform\"\n\
         [[process.phase]]\n[[process.phase.action]]\nkind = \"read\"\nfile = \"numastat\"\ncount = 3\n\
         [[process.phase.action]]\nkind = \"sleep\"\ntime = \"1 ms\"\n[run]\nsample = \"10 ms\"\n\
         counters = [\"pgfault\", \"nr_*\"]\n",
    );
    let (_, results, seen) = opened(&run(&scenario, &[]));
    let phases: Vec<(&str, &str)> = results.phases.iter().map(|p| (p.process.as_str(), p.phase.as_str())).collect();
    assert_eq!(phases, [("one", "populate"), ("one", "read"), ("two", "populate"), ("two", "0"), ("two", "1")]);
    let placed = |phase: &PhaseResult| phase.placement.iter().map(|p| p.nodes.iter().sum()).collect::<Vec<u64>>();
    let [populated, read, text, shared, actions] = results.phases.as_slice() else { unreachable!() };
    assert_eq!(placed(populated), [1024, 0, 0]);
    assert_eq!(populated.accesses[0].touches, 1024);
    // Reading by system calls maps nothing.
    assert_eq!((read.accesses[0].touches, read.accesses[0].faults, placed(read)[1]), (2048, 0, 0));
    assert_eq!((read.accesses[1].touches, placed(text)[1]), (200, 256));
    assert!(shared.end - shared.start >= 30_000_000 && shared.accesses[0].touches > 0);
    let [reads, sleep] = actions.actions.as_slice() else { panic!("{actions:?}") };
    assert_eq!((reads.kind.as_str(), reads.operations, sleep.kind.as_str()), ("read", 3, "sleep"));
    assert!(sleep.time >= 1_000_000);
    let names: BTreeSet<&str> = seen.counters.keys().map(|(_, _, name)| name.as_str()).collect();
    assert!(names.iter().all(|name| *name == "pgfault" || name.starts_with("nr_") || name.starts_with('N')));
    for phase in &results.phases {
        seen.delta("pgfault", phase);
    }
}

#[test]
fn events_are_recorded_while_it_runs() {
    let test = "events";
    if let Err(obstacle) = tracefs::find() {
        return skipped(test, &format!("{} (fix: {})", obstacle.what, obstacle.fix));
    }
    let scenario = scenario(&format!(
        "{}[[process.phase]]\n[[process.phase.access]]\nregion = \"r\"\npattern = \"sequential\"\nwrite = 1.0\n\
         count = 4000\n[run]\nevents = [\"kmem:mm_page_alloc\"]\n",
        heap(1)
    ));
    let (recording, _, seen) = opened(&run(&scenario, &[]));
    assert_eq!(recording.manifest.tracing.as_ref().unwrap().events, ["kmem:mm_page_alloc"]);
    let lost: u64 = recording.end.as_ref().unwrap().losses.iter().map(|losses| losses.total()).sum();
    assert!(seen.events + lost >= 4000, "{} events, {lost} lost", seen.events);
}

#[test]
fn the_run_ends_when_its_time_is_up() {
    let scenario = scenario(&format!(
        "{}[[process.phase]]\n[[process.phase.access]]\nregion = \"r\"\npattern = \"uniform\"\n\
         [run]\nduration = \"1 s\"\nsample = \"0 s\"\n",
        heap(2)
    ));
    let (_, results, seen) = opened(&run(&scenario, &[]));
    assert_eq!((results.ending, results.phases.len()), (Ending::TimeUp, 1));
    assert!(results.phases[0].accesses[0].touches > 0);
    // At the beginning, after the phase, and at the end.
    assert_eq!(seen.values("vmstat", "", "pgfault").len(), 3);
}

#[test]
fn a_process_that_uses_up_its_memory_is_a_result() {
    let test = "out of memory";
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    if !meminfo.lines().any(|line| line.starts_with("SwapTotal:") && line.contains(" 0 kB")) {
        return skipped(test, "there is swap");
    }
    let name = format!("/mmtwin-test-oom-{}", std::process::id());
    let scenario = scenario(&format!(
        "[[cgroup]]\nname = \"{name}\"\nmemory.max = \"32 MiB\"\n[[process]]\nname = \"other\"\n\
         [[process.phase]]\nduration = \"1 s\"\n{}[[process.phase]]\nname = \"small\"\n\
         [[process.phase.access]]\nregion = \"r\"\npattern = \"sequential\"\nwrite = 1.0\ncount = 256\n\
         [[process.phase]]\n[[process.phase.access]]\nregion = \"r\"\npattern = \"sequential\"\nwrite = 1.0\n\
         count = 16384\n",
        heap(1).replacen("threads", &format!("cgroup = \"{name}\"\nthreads"), 1)
    ));
    let ran = run(&scenario, &[]);
    if ran.message.contains(&format!("cgroup {name}: ")) {
        return skipped(test, "no memory cgroup can be made here");
    }
    assert_eq!(ran.status, 5, "{}", ran.message);
    let recording = Recording::open(&ran.output).unwrap();
    let results = recording.results.as_ref().unwrap();
    assert!(matches!(&results.ending, Ending::OutOfMemory { comm, .. } if comm == "heap"), "{:?}", results.ending);
    let phases: Vec<&str> = results.phases.iter().map(|phase| phase.phase.as_str()).collect();
    assert!(phases.contains(&"small"), "what was done before is kept: {phases:?}");
    let other = results.phases.iter().find(|phase| phase.process == "other").expect("the other process");
    assert!(other.end - other.start >= 1_000_000_000, "it goes on: {other:?}");
    assert!(recording.end.is_some());
    let mut warnings = mmtwin_trace::Warnings::default();
    assert!(recording.counters(&mut warnings).any(|row| row.as_row().source == "cgroup" && row.as_row().key == name));
    let mounts = mmtwin_host::cgroup::mounts();
    assert!(mounts.iter().all(|mount| !mount.path.join(&name[1..]).exists()), "the cgroup is removed");
}

#[test]
fn what_the_machine_cannot_give_is_refused_by_name() {
    let mut scenario = scenario(&format!(
        "{}[[process.region]]\nname = \"huge\"\nsize = \"1 TiB\"\nhuge = \"hugetlb\"\n\
         [[process.phase]]\n[[process.phase.action]]\nkind = \"vmalloc-test\"\ntests = [\"fix_size_alloc_test\"]\n\
         loops = 1\n[[process.phase.action]]\nkind = \"read\"\nfile = \"numastat\"\nnode = 0\ncount = 1\n",
        heap(1)
    ));
    scenario.processes[0].regions[0].size.0 = 1 << 46;
    scenario.machine.nodes.push(scenario.machine.nodes[0].clone());
    let nodes = scenario.machine.nodes.len();
    scenario.machine.distance =
        (0..nodes).map(|a| (0..nodes).map(|b| if a == b { 10 } else { 77 }).collect()).collect();
    let refusals = mmtwin_host::workload::refuse::refusals(
        &scenario,
        mmtwin_host::workload::Arm::Host,
        &evidence::collect(),
        Path::new("/"),
    );
    let all: Vec<String> = refusals.iter().map(ToString::to_string).collect();
    let has = |text: &str| assert!(all.iter().any(|refusal| refusal.contains(text)), "{text}: {all:?}");
    has(if evidence::collect().nodes.len() > 1 { "distance 77 from node 0 to node 1" } else { "node 1: this machine" });
    has("regions of 64 TiB in memory");
    has("524288 huge pages of 2 MiB");
    has("action vmalloc-test of process heap: it needs the kernel module");
    assert!(!all.iter().any(|refusal| refusal.contains("action read")), "{all:?}");
}

#[test]
fn a_scenario_that_is_refused_leaves_nothing() {
    let scenario =
        scenario(&format!("{}[[process.phase]]\n[[process.phase.action]]\nkind = \"page-loop\"\ncount = 1\n", heap(1)));
    let ran = run(&scenario, &[]);
    assert_eq!(ran.status, 1);
    assert!(ran.message.contains("\n    action page-loop of process heap: "), "{}", ran.message);
    assert!(!ran.output.exists());
    // Bad arguments are distinguished from bad luck.
    assert_eq!(run(&scenario, &["--arm", "twin"]).status, 2);
    assert_eq!(run(&scenario, &["--buffer"]).status, 2);
}

#[test]
fn an_interrupted_run_leaves_no_process() {
    let comm = format!("mm-{}", std::process::id());
    let scenario = scenario(&format!(
        "[[process]]\nname = \"{comm}\"\n[[process.region]]\nname = \"r\"\nsize = \"1 MiB\"\n\
         [[process.phase]]\nduration = \"1000 s\"\n[[process.phase.access]]\nregion = \"r\"\npattern = \"uniform\"\n\
         [run]\nsample = \"10 ms\"\n"
    ));
    let root = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (file, output) = (root.path().join("s.json"), root.path().join("r.mmt"));
    fs::write(&file, scenario.to_json().to_string()).unwrap();
    for (signal, message) in [("INT", "interrupted"), ("KILL", "")] {
        let mut child = agent().arg(&file).arg(&output).stderr(Stdio::piped()).spawn().unwrap();
        let running = || {
            begun(root.path()).is_some_and(|recording| {
                recording.join("counters/numa_maps.arrows").metadata().is_ok_and(|file| file.len() > 0)
            })
        };
        while !running() {
            assert!(child.try_wait().unwrap().is_none(), "the agent ended");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let workers = named(&comm);
        assert_eq!(workers.len(), 1);
        assert!(Command::new("kill").args([format!("-{signal}"), child.id().to_string()]).status().unwrap().success());
        let ended = child.wait_with_output().unwrap();
        assert!(!ended.status.success() && String::from_utf8_lossy(&ended.stderr).contains(message));
        // The kernel ends it with its parent, but not before its parent.
        while !named(&comm).is_empty() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        // It would get its name when it is whole; what a kill leaves beside is removed by the next start there.
        assert!(!output.exists());
        assert_eq!(begun(root.path()).is_some(), signal == "KILL");
    }
}

/// A recording in a directory that has no name yet.
fn begun(directory: &Path) -> Option<PathBuf> {
    let mut entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".mmtwin-")))
}

/// Processes of a name that have not ended.
fn named(comm: &str) -> Vec<u32> {
    let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let is = |pid: &u32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status.starts_with(&format!("Name:\t{comm}\n")) && !status.lines().any(|line| line.starts_with("State:\tZ"))
    };
    pids.filter(is).collect()
}
