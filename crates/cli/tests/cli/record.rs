//! `mmtwin record` on this machine. What needs tracefs, root or a memory cgroup reports it and is skipped without.

use super::bad_input::damage_recording;
use super::support::{cell, command, finding_keys, mmtwin, report_json, scratch, skipped, value, with_signals};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

pub fn tracefs(test: &str) -> Option<PathBuf> {
    let found = mmtwin_host::tracefs::find();
    found.inspect_err(|o| skipped(test, &format!("{} (fix: {})", o.what, o.fix))).ok()
}

/// A memory cgroup with a limit of 64 MiB, removed at the end.
pub struct Cgroup(pub PathBuf);

impl Cgroup {
    pub fn new(test: &str) -> Option<Cgroup> {
        for mount in mmtwin_host::cgroup::mounts() {
            let path = mount.path.join(format!("mmtwin-cli-{}-{test}", std::process::id()));
            if fs::create_dir(&path).is_err() {
                continue;
            }
            let group = Cgroup(path);
            let limits = ["memory.limit_in_bytes", "memory.max"].map(|f| group.0.join(f));
            if limits.iter().any(|f| f.exists() && fs::write(f, "67108864").is_ok()) {
                return Some(group);
            }
        }
        skipped(test, "no memory cgroup can be made here");
        None
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// One event: to enable all takes most of the time of a short recording.
const ONE_EVENT: [&str; 2] = ["-e", "vmscan:mm_vmscan_kswapd_wake"];

fn record(output: &Path, options: &[&str], script: &str) -> Command {
    let mut arguments = vec!["record".as_ref(), "-o".as_ref(), output.as_os_str()];
    arguments.extend(options.iter().map(std::ffi::OsStr::new));
    if !script.is_empty() {
        arguments.extend(["--", "sh", "-c", script].map(std::ffi::OsStr::new));
    }
    command(arguments)
}

#[test]
fn reclaim_of_a_cgroup_becomes_a_report() {
    let test = "reclaim_of_a_cgroup_becomes_a_report";
    let (Some(_), Some(group)) = (tracefs(test), Cgroup::new(test)) else { return };
    let scratch = scratch();
    let (file, output) = (scratch.path().join("sparse"), scratch.path().join("r.mmt"));
    fs::File::create(&file).and_then(|f| f.set_len(256 << 20)).expect("a sparse file");
    let procs = group.0.join("cgroup.procs");
    let script =
        format!("echo $$ > {} && exec dd if={} of=/dev/null bs=1M status=none", procs.display(), file.display());
    let key = format!("/{}", group.0.file_name().expect("a name").to_str().expect("UTF-8"));
    let run = record(&output, &["--cgroup", &key, "-I", "100ms"], &script).output().expect("the program");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let report = report_json(&output, [""; 0]);
    assert_eq!(report["inputs"][0]["lost_events"].as_u64(), Some(0));
    // Of 256 MiB read at least 180 MiB had to go again.
    let reclaimed = cell(&report, "reclaim", "Pages reclaimed", "cgroup").expect("cgroup reclaim was recorded");
    assert!(reclaimed * 4096.0 > f64::from(180 << 20), "{reclaimed}");
    assert!(finding_keys(&report).contains(&"cgroup_limit".to_string()), "{}", report["findings"]);
    for table in ["reclaim", "reclaim-by-priority", "latency", "process", "vmstat", "cgroup", "node-vmstat", "meminfo"]
    {
        let found = report["tables"].as_array().into_iter().flatten().find(|t| t["name"] == table);
        assert!(found.is_some_and(|t| t["rows"].as_array().is_some_and(|r| !r.is_empty())), "{table}");
    }
    let pairs = report["cross_check"].as_array().expect("a cross-check");
    assert!(!pairs.is_empty());
    for pair in pairs {
        let [events, counters] = ["events", "counters"].map(|who| pair[who].as_f64());
        let compared = ["pgscan", "pgsteal"].iter().any(|key| pair["key"] == *key);
        assert!(!compared || events.zip(counters).is_some_and(|(a, b)| a > 40_000.0 && b > 40_000.0), "{pair}");
        let (Some(events), Some(counters)) = (events, counters) else { continue };
        assert!((events - counters).abs() <= counters * 0.01, "{pair}");
    }
    damage_recording(&output);
}

#[test]
fn a_cgroup_at_its_limit_is_sampled_unasked() {
    let test = "a_cgroup_at_its_limit_is_sampled_unasked";
    let (Some(_), Some(group)) = (tracefs(test), Cgroup::new(test)) else { return };
    let scratch = scratch();
    let (file, output) = (scratch.path().join("sparse"), scratch.path().join("r.mmt"));
    fs::File::create(&file).and_then(|f| f.set_len(256 << 20)).expect("a sparse file");
    let (procs, file) = (group.0.join("cgroup.procs"), file.display().to_string());
    // The process that reads is a child, so that the command itself stays where it was.
    let script =
        format!("sh -c 'echo $$ > {} && exec dd if={file} of=/dev/null bs=1M status=none'; true", procs.display());
    let run = record(&output, &["-I", "100ms"], &script).output().expect("the program");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let report = report_json(&output, [""; 0]);
    let key = format!("/{}", group.0.file_name().expect("a name").to_str().expect("UTF-8"));
    assert_eq!(cell(&report, "cgroups", &key, "limit"), Some(64.0));
    // It was there before the recording, and what it counted then is known: all hits are in the difference.
    let hits = cell(&report, "cgroups", &key, "hits").expect("hits of the limit");
    assert!(hits >= 50.0, "{hits}");
    let finding = report["findings"].as_array().expect("findings").iter().find(|f| f["key"] == "cgroup_limit");
    assert!(finding.is_some_and(|f| f["sentence"].as_str().is_some_and(|s| s.contains(&key))), "{finding:?}");
}

#[test]
fn exit_statuses_are_forwarded() {
    let scratch = scratch();
    let status = |name: &str, script: &str| {
        let run = record(&scratch.path().join(name), &ONE_EVENT, script).output().expect("the program");
        run.status.code()
    };
    assert_eq!(status("a", "true"), Some(0));
    assert_eq!(status("b", "false"), Some(1));
    assert_eq!(status("c", "exit 7"), Some(7));
    assert_eq!(status("d", "kill -TERM $$"), Some(128 + 15));
    assert_eq!(status("e", "kill -KILL $$"), Some(128 + 9));
}

#[test]
fn recordings_are_not_overwritten() {
    let scratch = scratch();
    let output = scratch.path().join("r.mmt");
    let run =
        |options: &[&str]| record(&output, &[&ONE_EVENT, options].concat(), "true").output().expect("the program");
    assert!(run(&[]).status.success());
    let manifest = fs::read(output.join("manifest.json")).expect("a manifest");
    let refused = run(&[]);
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(1) && message.contains("r.mmt") && message.contains("-f"), "{message}");
    assert_eq!(fs::read(output.join("manifest.json")).expect("a manifest"), manifest);
    assert!(run(&["-f"]).status.success());
    assert_ne!(fs::read(output.join("manifest.json")).expect("a manifest"), manifest);
    // Only a recording is ever replaced.
    let precious = scratch.path().join("precious");
    fs::create_dir(&precious).and_then(|()| fs::write(precious.join("thesis"), "text")).expect("a file");
    let refused = record(&precious, &["-f"], "true").output().expect("the program");
    assert_eq!((refused.status.code(), precious.join("thesis").exists()), (Some(1), true));
}

#[test]
fn a_command_that_does_not_exist() {
    let scratch = scratch();
    let output = scratch.path().join("r.mmt");
    let run = mmtwin([Path::new("record"), Path::new("-o"), &output, Path::new("--"), Path::new("/no/such/program")]);
    assert!(run.status == 1 && run.err.contains("/no/such/program"), "{} {}", run.status, run.err);
    assert!(!output.exists());
}

/// Settings of the machine's own tracing, and the instances of others.
fn settings(tracefs: &Path) -> Vec<(String, String)> {
    let files = ["trace_clock", "buffer_size_kb", "tracing_on", "set_event", "trace_options", "current_tracer"];
    files.map(|f| (f.to_string(), fs::read_to_string(tracefs.join(f)).unwrap_or_default())).into()
}

fn instances(tracefs: &Path, pid: u32) -> usize {
    let names = fs::read_dir(tracefs.join("instances")).expect("instances").flatten();
    let own = format!("mmtwin-{pid}-");
    names.filter(|e| e.file_name().to_string_lossy().starts_with(&own)).count()
}

/// A recorder that runs; one that a failing test leaves is reported to end.
struct Recorder(Option<Child>);

impl Recorder {
    fn id(&self) -> u32 {
        self.0.as_ref().expect("it runs").id()
    }

    fn signal(&self, name: &str) {
        let status = Command::new("kill").args([format!("-{name}"), self.id().to_string()]).status();
        assert!(status.expect("kill").success());
    }

    fn wait(mut self) -> Output {
        self.0.take().expect("it runs").wait_with_output().expect("its end")
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if self.0.is_some() {
            self.signal("TERM");
            let _ = self.0.take().map(Child::wait_with_output);
        }
    }
}

/// A recorder that runs until it is reported to end; returns when its recording has pages and several samples.
fn start(output: &Path) -> Recorder {
    let events = ["-e", "kmem:mm_page_alloc,kmem:mm_page_free", "-I", "100ms"];
    let mut child = with_signals(&record(output, &events, ""));
    let child = child.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("a child");
    let (mut recorder, began) = (Recorder(Some(child)), Instant::now());
    let (mut grown, mut size) = (0, 0);
    let mut filled = || {
        let pages = fs::read_dir(output.join("cpu")).into_iter().flatten().flatten();
        let now = output.join("counters/vmstat.arrows").metadata().map_or(0, |m| m.len());
        grown += u32::from(now > std::mem::replace(&mut size, now));
        // The schema, then a sample each time.
        grown > 3 && pages.map(|e| e.metadata().map_or(0, |m| m.len())).sum::<u64>() > 0
    };
    while !filled() {
        let running = recorder.0.as_mut().expect("it runs").try_wait().expect("its status").is_none();
        assert!(running, "the recorder ended");
        assert!(began.elapsed() < Duration::from_secs(60), "no pages after a minute");
        // Makes events.
        drop(vec![1u8; 8 << 20]);
        std::thread::sleep(Duration::from_millis(10));
    }
    recorder
}

#[test]
fn interrupts_end_a_recording_cleanly() {
    let test = "interrupts_end_a_recording_cleanly";
    let Some(tracefs) = tracefs(test) else { return };
    let scratch = scratch();
    let output = scratch.path().join("r.mmt");
    let before = settings(&tracefs);
    for (signal, number) in [("INT", 2), ("TERM", 15), ("HUP", 1)] {
        let output = output.with_extension(signal);
        let child = start(&output);
        let pid = child.id();
        assert_eq!(instances(&tracefs, pid), 1);
        child.signal(signal);
        let ended = child.wait();
        let message = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(128 + number), "{:?}: {message}", ended.status);
        assert_eq!((settings(&tracefs), instances(&tracefs, pid)), (before.clone(), 0));
        let run = mmtwin([Path::new("report"), &output, Path::new("--max-lost"), Path::new("1000000")]);
        assert!(run.status == 0 && !run.err.contains("truncated"), "{}", run.err);
    }
}

/// Starts a recorder whose signals are not those that this test was started with.
fn start_plain(output: &Path, signals: &str, script: &str) -> Recorder {
    let mut recorder = Command::new("env");
    recorder.args([signals, env!("CARGO_BIN_EXE_mmtwin"), "record", "-I", "20ms"]).args(ONE_EVENT);
    recorder.arg("-o").arg(output).args(["--", "sh", "-c", script]).stdout(Stdio::null()).stderr(Stdio::piped());
    let recorder = Recorder(Some(recorder.spawn().expect("a recorder")));
    wait_for(&output.join("counters/vmstat.arrows"));
    recorder
}

/// Waits until there is a file.
fn wait_for(file: &Path) {
    let began = Instant::now();
    while !file.exists() {
        assert!(began.elapsed() < Duration::from_secs(60), "no {} after a minute", file.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn signals_reach_the_command_and_its_end_becomes_the_status() {
    let scratch = scratch();
    let usual = "--default-signal=HUP,INT,TERM";
    for (signal, number) in [("HUP", 1), ("TERM", 15), ("INT", 2)] {
        let output = scratch.path().join(signal);
        let recorder = start_plain(&output, usual, "exec sleep 60");
        recorder.signal(signal);
        assert_eq!(recorder.wait().status.code(), Some(128 + number), "{signal}");
        let end = fs::read_to_string(output.join("end.json")).expect("an end");
        assert!(end.contains(&format!("\"signal\": {number}")), "{end}");
    }
    // A command that has a way of its own to end.
    let output = scratch.path().join("trap");
    let ready = scratch.path().join("ready");
    let script = format!("trap 'exit 9' HUP; touch '{}'; while :; do sleep 0.05; done", ready.display());
    let recorder = start_plain(&output, usual, &script);
    wait_for(&ready);
    recorder.signal("HUP");
    assert_eq!(recorder.wait().status.code(), Some(9));
    // Below nohup a hang-up has no effect.
    let output = scratch.path().join("nohup");
    let recorder = start_plain(&output, "--ignore-signal=HUP", "sleep 0.5; exit 5");
    recorder.signal("HUP");
    assert_eq!(recorder.wait().status.code(), Some(5));
}

/// Bytes of all files below a directory.
fn size(path: &Path) -> u64 {
    let entries = fs::read_dir(path).expect("a directory").flatten();
    entries.map(|e| if e.path().is_dir() { size(&e.path()) } else { e.metadata().expect("a file").len() }).sum()
}

#[test]
fn a_recording_gets_no_larger_than_it_may() {
    let scratch = scratch();
    let output = scratch.path().join("r.mmt");
    let ran = scratch.path().join("ran");
    let refused =
        record(&output, &["--max-size", "4K"], &format!("touch {}", ran.display())).output().expect("the program");
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(1) && message.contains("--max-size") && !ran.exists(), "{message}");
    let least = message.split("takes ").nth(1).and_then(|m| m.split(' ').next()?.parse::<u64>().ok());
    let limit = least.unwrap_or_else(|| panic!("no size in {message}")) + (200 << 10);
    // The command runs on, and its status is kept.
    for (ending, status) in [("true", 6), ("exit 7", 7)] {
        let (script, size_k) = (format!("sleep 1.5; touch {}; {ending}", ran.display()), format!("{}K", limit >> 10));
        let options = ["-f", "-I", "2ms", "--max-size", &size_k];
        let run = record(&output, &options, &script).output().expect("the program");
        let message = String::from_utf8_lossy(&run.stderr).into_owned();
        assert!(run.status.code() == Some(status) && message.contains("--max-size"), "{:?} {message}", run.status);
        assert!(ran.exists() && size(&output) <= limit, "{} of {limit}", size(&output));
        fs::remove_file(&ran).expect("the command's file");
        let end = fs::read_to_string(output.join("end.json")).expect("an end");
        assert!(end.contains("\"stopped\": \"it reached --max-size"), "{end}");
        let report = mmtwin([Path::new("report"), &output]);
        assert!(report.status == 0 && report.err.contains("--max-size"), "{}", report.err);
    }
}

/// The disk gets full: the recording ends and reports it, the command runs on, is waited for, and its status is reported.
#[test]
fn a_full_disk_ends_the_recording_and_not_the_command() {
    let test = "a_full_disk_ends_the_recording_and_not_the_command";
    let scratch = scratch();
    let disk = scratch.path().join("disk");
    fs::create_dir(&disk).expect("a directory");
    // A file system of its own, in a mount namespace that is gone with its last process.
    let unshared = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script, "sh"]).arg(env!("CARGO_BIN_EXE_mmtwin")).arg(&disk);
        command.arg(scratch.path()).env("LC_ALL", "C").stdin(Stdio::null()).output().expect("unshare")
    };
    // $1 program, $2 disk, $3 where things can be kept. The command fills the disk once the recording has begun.
    let run = unshared(
        "mount -t tmpfs -o size=48m tmpfs \"$2\" || exit 99
         export disk=$2 keep=$3
         \"$1\" record -I 1ms -o \"$2/r.mmt\" -- sh -c 'sleep 0.3; dd if=/dev/zero of=\"$disk/fill\" bs=4k 2>/dev/null
            sleep 1; touch \"$keep/ran\"; exit 7'
         echo status $?
         cp -r \"$2/r.mmt\" \"$3/copy\"",
    );
    let (said, err) =
        (String::from_utf8_lossy(&run.stdout).into_owned(), String::from_utf8_lossy(&run.stderr).into_owned());
    if run.status.code() == Some(99) || err.contains("unshare") {
        return skipped(test, &format!("no file system can be mounted here: {err}"));
    }
    assert!(said.contains("status 1"), "{said} {err}");
    assert!(scratch.path().join("ran").exists(), "the command was cut short: {err}");
    assert!(
        err.contains("No space left") && err.contains("exited with status 7") && !err.contains("panicked"),
        "{err}"
    );
    let copy = scratch.path().join("copy");
    let end = fs::read_to_string(copy.join("end.json")).expect("an end on a full disk");
    assert!(end.contains("\"stopped\"") && end.contains("No space left"), "{end}");
    let report = mmtwin([Path::new("report"), &copy]);
    assert!(report.status == 0 && report.err.contains("No space left"), "{}", report.err);
}

#[test]
fn open_files_are_few_enough_or_refused_by_the_limits_name() {
    let test = "open_files_are_few_enough_or_refused_by_the_limits_name";
    let scratch = scratch();
    let limited = |limit: &str, name: &str, script: &str| {
        let mut command = Command::new("prlimit");
        command.arg(format!("--nofile={limit}")).arg(env!("CARGO_BIN_EXE_mmtwin")).args(["record", "-I", "50ms"]);
        command.args(ONE_EVENT).arg("-o").arg(scratch.path().join(name)).args(["--", "sh", "-c", script]).output()
    };
    if limited("64:64", "x.mmt", "true").is_err() {
        return skipped(test, "prlimit is not installed");
    }
    fs::remove_dir_all(scratch.path().join("x.mmt")).expect("a recording");
    // The soft limit is raised, and the command has what it would have had.
    let run = limited("20:4096", "soft.mmt", "exit $(ulimit -Sn)").expect("prlimit");
    assert_eq!(run.status.code(), Some(20), "{}", String::from_utf8_lossy(&run.stderr));
    let (mut refused, mut recorded) = (0, 0);
    for hard in (8..64).step_by(3) {
        let name = format!("{hard}.mmt");
        let run = limited(&format!("{hard}:{hard}"), &name, "exit 3").expect("prlimit");
        let message = String::from_utf8_lossy(&run.stderr).into_owned();
        match run.status.code() {
            Some(3) => recorded += 1,
            Some(1) => {
                refused += 1;
                assert!(
                    message.contains("RLIMIT_NOFILE") || message.contains("Too many open files"),
                    "{hard}: {message}"
                );
                assert!(!scratch.path().join(&name).exists(), "{hard}");
            }
            other => panic!("{hard}: {other:?} {message}"),
        }
    }
    assert!(refused > 0 && recorded > 0, "{refused} {recorded}");
    assert!(
        fs::read_dir(scratch.path()).expect("it").flatten().all(|e| !e.file_name().to_string_lossy().starts_with('.'))
    );
}

#[test]
fn a_killed_recording_can_be_reported() {
    let test = "a_killed_recording_can_be_reported";
    let Some(tracefs) = tracefs(test) else { return };
    let scratch = scratch();
    let output = scratch.path().join("killed.mmt");
    let live = start(&scratch.path().join("live.mmt"));
    let child = start(&output);
    let pid = child.id();
    child.signal("KILL");
    assert_eq!(child.wait().status.signal(), Some(9));
    assert_eq!(instances(&tracefs, pid), 1, "nobody could remove it");
    let run = mmtwin([Path::new("report"), &output]);
    assert!(run.status == 0 && run.err.contains("truncated"), "{}", run.err);
    assert!(!mmtwin([Path::new("script"), &output]).out.is_empty());
    assert!(cell(&report_json(&output, ["--table", "vmstat"]), "vmstat", "pgfault", "delta").is_some());
    // The next recording removes what the killed one left, and leaves the one that runs alone.
    let next = record(&scratch.path().join("next.mmt"), &[], "true").output().expect("the program");
    let kept = instances(&tracefs, live.id());
    live.signal("TERM");
    let ended = live.wait();
    assert!(next.status.success() && ended.status.code() == Some(128 + 15), "{next:?} {ended:?}");
    assert_eq!((instances(&tracefs, pid), kept), (0, 1));
}

/// Without access to tracefs: counters only, and the fix is named.
#[test]
fn without_tracefs_there_are_counters() {
    let test = "without_tracefs_there_are_counters";
    let runs = |arguments: &[&str]| Command::new("setpriv").args(arguments).output().is_ok_and(|o| o.status.success());
    let nobody = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
    if !runs(&[&nobody[..], &["true"]].concat()) {
        return skipped(test, "setpriv cannot become another user here");
    }
    // Where everybody may go: the directories above the repository need not let others in.
    let open = tempfile::tempdir().expect("a directory");
    let mode = std::os::unix::fs::PermissionsExt::from_mode;
    fs::set_permissions(open.path(), mode(0o777)).expect("its mode");
    let program = open.path().join("mmtwin");
    // By another process: a copy made here could still be open for writing in a child that some other test forks.
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_mmtwin")).arg(&program).status();
    assert!(copied.is_ok_and(|s| s.success()), "a copy of the program");
    let output = open.path().join("r.mmt");
    let unprivileged = |arguments: &[&Path]| {
        let mut command = Command::new("setpriv");
        command.args(nobody).arg(&program).args(arguments).current_dir(open.path());
        command.output().expect("setpriv")
    };
    let script = [Path::new("record"), Path::new("-o"), &output, Path::new("--"), Path::new("sleep"), Path::new("0.2")];
    let run = unprivileged(&script);
    let message = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(run.status.success(), "{message}");
    // Without tracefs mounted, the fix is another one.
    assert!(message.contains("counters only. Suggested fix: "), "no fix: {message}");
    let report = report_json(&output, [""; 0]);
    assert!(cell(&report, "vmstat", "pgfault", "delta").is_some_and(|n| n > 0.0));
    assert_eq!(value(&report, "vmscan", "direct_reclaims"), None, "events were not recorded");
    // Asked beforehand, the doctor says the same.
    let doctor = unprivileged(&[Path::new("doctor")]);
    let said = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(said.contains("tracefs") && (said.contains("missing") || said.contains("limited")), "{said}");
}
