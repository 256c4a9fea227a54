//! The lab from outside: what is missing or too small is named, and whatever happens, nothing is left behind.

use crate::support::{command, root, scratch, skipped, with_signals};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Where guests have their files if there is room.
const SHARED: &str = "/dev/shm";

/// A lab whose emulator is a script, in a directory of its own: as much of it as a test puts there.
struct Made {
    directory: tempfile::TempDir,
}

impl Made {
    fn new() -> Made {
        let made = Made { directory: scratch() };
        for directory in ["bin", "lab", "tmp", "out"] {
            fs::create_dir(made.path(directory)).expect("directory");
        }
        made
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// An executable script.
    fn script(&self, name: &str, text: &str) {
        fs::write(self.path(name), format!("#!/bin/sh\n{text}")).expect("script");
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).expect("mode");
    }

    /// An emulator that says it is a new one, and then does something else.
    fn emulator(&self, then: &str) {
        let version = "[ \"$1\" != --version ] || { echo 'QEMU emulator version 10.0.2'; exit; }";
        self.script("bin/qemu-system-x86_64", &format!("{version}\n{then}\n"));
    }

    /// Something with the header of a kernel.
    fn kernel(&self) {
        let mut image = vec![0; 0x400];
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x20e..0x210].copy_from_slice(&0x110u16.to_le_bytes());
        image[0x310..0x316].copy_from_slice(b"6.1.0 ");
        fs::create_dir_all(self.path("lab/kernels/6.1")).expect("directory");
        fs::write(self.path("lab/kernels/6.1/vmlinuz"), image).expect("kernel");
    }

    fn mkfs(&self) {
        self.script("bin/mkfs.ext4", "exit 0");
    }

    /// Everything but the emulator.
    fn rest(&self) {
        self.kernel();
        self.mkfs();
        self.script("lab/mmtwin-agent", "");
        self.script("lab/busybox", "");
    }

    /// The program with a scenario of one node.
    fn command(&self, more: &[&str]) -> Command {
        let scenario = self.path("scenario.toml");
        let text = "[machine]\n[[machine.node]]\ncpus = \"0-1\"\nmemory = \"128 MiB\"\n[kernel]\nrelease = \"6.1\"\n";
        fs::write(&scenario, text).expect("scenario");
        let mut all = vec!["run".into(), scenario, "--on".into(), "lab".into(), "-o".into(), self.path("out/a.mmt")];
        all.extend(more.iter().map(PathBuf::from));
        let mut command = command(all);
        command.env("PATH", self.path("bin")).env("TMPDIR", self.path("tmp")).env("MMTWIN_LAB", self.path("lab"));
        command.env_remove("MMTWIN_AGENT");
        command
    }

    /// What the program says of its failure.
    fn error(&self, more: &[&str]) -> String {
        let output = self.command(more).output().expect("the program");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{message}");
        self.nothing_is_left(&message);
        message
    }

    fn nothing_is_left(&self, message: &str) {
        for directory in ["tmp", "out"] {
            let left: Vec<_> = fs::read_dir(self.path(directory)).expect("directory").flatten().collect();
            assert!(left.is_empty(), "{left:?} after {message}");
        }
    }
}

/// Directories of the guests of a process.
fn guests_of(pid: u32) -> Vec<String> {
    let names = fs::read_dir(SHARED).into_iter().flatten().flatten().filter_map(|e| e.file_name().into_string().ok());
    names.filter(|name| name.starts_with(&format!("mmtwin-lab-{pid}-"))).collect()
}

#[test]
fn what_is_missing_is_named_with_its_cure() {
    let made = Made::new();
    let lacks = |what: &[&str]| {
        let message = made.error(&[]);
        assert!(what.iter().all(|word| message.contains(word)), "{what:?} in {message}");
    };
    lacks(&["no mmtwin-agent", "make lab"]);
    made.script("lab/mmtwin-agent", "");
    lacks(&["no kernel `6.1`", "make lab"]);
    made.kernel();
    lacks(&["no qemu-system-x86_64", "make lab", "qemu-system-x86"]);
    made.emulator("exit 1");
    lacks(&["mkfs.ext4", "e2fsprogs"]);
    made.mkfs();
    lacks(&["busybox", "make lab"]);
    made.script("lab/busybox", "");
    made.script("bin/qemu-system-x86_64", "echo 'QEMU emulator version 7.2.22'");
    lacks(&["mode exact needs QEMU 9", "make lab", "smp"]);
}

#[test]
fn a_topology_that_qemu_refuses_is_told_in_its_words() {
    let made = Made::new();
    made.rest();
    made.emulator(
        "echo \"qemu-system-x86_64: warning: this too\nqemu-system-x86_64: -numa dist: no such way\" >&2; exit 1",
    );
    let message = made.error(&[]);
    assert!(message.contains("QEMU: -numa dist: no such way") && !message.contains("warning"), "{message}");
}

#[test]
fn a_machine_larger_than_the_host_is_refused() {
    let made = Made::new();
    made.rest();
    made.emulator("exit 1");
    let message = made.error(&["--set", "machine.node.0.memory=900TiB"]);
    assert!(message.contains("the guest needs 943718") && message.contains("this machine has"), "{message}");
    let message = made.error(&["--set", "machine.node.0.cpus=0-299"]);
    assert!(message.contains("machine.node.cpus: 300 CPUs: a guest has at most 255"), "{message}");
}

/// Sends Ctrl-C after some time, and waits for the end.
fn interrupt(command: Command, after: Duration) -> (u32, Output) {
    let child = with_signals(&command).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program");
    let pid = child.id();
    // Until then it is `env`, which may have it ignored still.
    let begun = || fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|exe| exe.ends_with("mmtwin"));
    while !begun() && is_running(&pid.to_string()) {
        std::thread::yield_now();
    }
    std::thread::sleep(after);
    // It may have ended by itself.
    let _ = kill_process(Pid::from_child(&child), Signal::INT);
    (pid, child.wait_with_output().expect("its end"))
}

fn is_running(pid: &str) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    !status.is_empty() && !status.contains("State:\tZ")
}

#[test]
fn ctrl_c_at_any_moment_leaves_nothing() {
    let made = Made::new();
    made.rest();
    made.emulator(&format!("echo $$ >{}; exec /bin/sleep 1000", made.path("emulator.pid").display()));
    for milliseconds in [0, 1, 2, 4, 7, 11, 16, 25, 40, 80, 200, 700] {
        let (pid, output) = interrupt(made.command(&[]), Duration::from_millis(milliseconds));
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        // Before the program takes note of signals, it has made nothing yet.
        let early = output.status.signal() == Some(Signal::INT.as_raw());
        assert!(early || output.status.code() == Some(130), "after {milliseconds} ms: {:?} {message}", output.status);
        made.nothing_is_left(&message);
        assert!(guests_of(pid).is_empty(), "after {milliseconds} ms");
        if let Ok(emulator) = fs::read_to_string(made.path("emulator.pid")) {
            assert!(!is_running(emulator.trim()), "after {milliseconds} ms");
        }
    }
    assert!(made.path("emulator.pid").exists(), "the last one was late enough for a guest");
}

/// The real lab with a scenario that sleeps; `None` where something of it is missing.
fn real(test: &str) -> Option<(tempfile::TempDir, Vec<String>)> {
    let missing = mmtwin_lab::doctor(&mmtwin_lab::Folder::find()).into_iter().find(|check| !check.works);
    if let Some(check) = missing.filter(|check| check.name != "mode exact") {
        skipped(test, &format!("{}: {}", check.name, check.found));
        return None;
    }
    let directory = scratch();
    let scenario = directory.path().join("scenario.toml");
    let text = "[machine]\n[[machine.node]]\ncpus = \"0-1\"\nmemory = \"128 MiB\"\n[kernel]\nrelease = \"6.1\"\n\
                [[process]]\nname = \"a\"\n[[process.phase]]\n[[process.phase.action]]\nkind = \"sleep\"\n\
                time = \"1 s\"\n[run]\nsample = \"500 ms\"\n";
    fs::write(&scenario, text).expect("scenario");
    fs::create_dir(directory.path().join("out")).expect("directory");
    let output = directory.path().join("out/a.mmt");
    let words = ["run", &scenario.to_string_lossy(), "--on", "lab", "--mode", "smp", "-o", &output.to_string_lossy()];
    let words = words.map(str::to_string).to_vec();
    Some((directory, words))
}

#[test]
fn ctrl_c_leaves_no_guest() {
    let Some((directory, words)) = real("ctrl_c_leaves_no_guest") else { return };
    let begin = Instant::now();
    let whole = command(&words).output().expect("the program");
    assert!(whole.status.success(), "{}", String::from_utf8_lossy(&whole.stderr));
    let whole = begin.elapsed();
    for part in [2, 5, 8] {
        let out = directory.path().join("out");
        let _ = fs::remove_dir_all(out.join("a.mmt"));
        let (pid, output) = interrupt(command(&words), whole * part / 10);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        let left = fs::read_dir(&out).expect("directory").count();
        match output.status.code() {
            // The machine was faster than before.
            Some(0) => assert_eq!(left, 1, "{message}"),
            // The recording may just have been complete.
            Some(130) => assert!(left == 0 || out.join("a.mmt/end.json").is_file(), "{part}: {message}"),
            other => panic!("{part}: {other:?} {message}"),
        }
        assert!(guests_of(pid).is_empty() && guests(pid).is_empty(), "{part}");
    }
}

/// Emulators that a process started.
fn guests(parent: u32) -> Vec<PathBuf> {
    let processes = fs::read_dir("/proc").expect("processes").flatten().map(|entry| entry.path());
    let of = |process: &PathBuf| {
        let place = fs::read_link(process.join("cwd")).unwrap_or_default();
        place.to_string_lossy().contains(&format!("mmtwin-lab-{parent}-"))
    };
    processes.filter(of).collect()
}

/// Runs the program where some directories are small file systems of their own. `None` where that may not be done.
fn on_small_disks(test: &str, disks: &[(&Path, &str)], program: &Command) -> Option<Output> {
    let mounts =
        disks.iter().map(|(at, size)| format!("mount -t tmpfs -o size={size} tmpfs {} || exit 99\n", at.display()));
    let script = mounts.collect::<String>() + "exec \"$@\"";
    let mut shell = Command::new("unshare");
    shell.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script, "sh"]).arg(program.get_program());
    shell.args(program.get_args()).current_dir(root());
    for (name, value) in program.get_envs() {
        // `sh` and `mount` are the machine's own.
        match value.filter(|_| name != "PATH") {
            Some(value) => shell.env(name, value),
            None => &mut shell,
        };
    }
    let output = shell.output().ok();
    let message =
        output.as_ref().map_or("no unshare".into(), |output| String::from_utf8_lossy(&output.stderr).into_owned());
    match output {
        Some(output) if output.status.code() != Some(99) && !message.contains("unshare:") => Some(output),
        _ => {
            skipped(test, message.trim());
            None
        }
    }
}

#[test]
fn no_room_for_a_guest_is_an_error() {
    let test = "no_room_for_a_guest_is_an_error";
    let Some((directory, words)) = real(test) else { return };
    let small = directory.path().join("tmp");
    fs::create_dir(&small).expect("directory");
    let mut program = command(&words);
    program.env("TMPDIR", &small);
    let disks = [(Path::new(SHARED), "1m"), (small.as_path(), "2m")];
    let Some(output) = on_small_disks(test, &disks, &program) else { return };
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(
        message.contains(&format!("{}: ", small.display())) && message.contains("MiB are needed, 2 MiB are free"),
        "{message}"
    );
}

#[test]
fn a_full_disk_leaves_no_recording() {
    let test = "a_full_disk_leaves_no_recording";
    let Some((directory, words)) = real(test) else { return };
    let out = directory.path().join("out");
    // What is there is listed inside, for the small file system is gone afterwards.
    let mut program = Command::new("sh");
    let run = format!("\"$@\"; status=$?; ls -A {} >&2; exit $status", out.display());
    program.args(["-c", &run, "sh", env!("CARGO_BIN_EXE_mmtwin")]).args(&words);
    let Some(output) = on_small_disks(test, &[(&out, "64k")], &program) else { return };
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("No space left on device"), "{message}");
    let last = message.lines().last().unwrap_or_default();
    assert!(last.contains("No space left"), "nothing is listed behind the error: {message}");
}

/// One process that needs more memory than there is, and one that continues; bytes of dirty memory in place of percentages.
const RUNS_OUT: &str = r#"
[machine]
preset = "lab-4n"
distance = [[10]]
[[machine.node]]
cpus = "0-1"
memory = "192 MiB"
[kernel]
release = "6.12"
thp = "never"
[kernel.sysctl]
"vm.dirty_bytes" = 8388608
"vm.dirty_background_bytes" = 4194304
[[process]]
name = "small"
[[process.region]]
name = "heap"
size = "4 MiB"
populate = true
[[process.phase]]
duration = "5 s"
[[process.phase.access]]
region = "heap"
pattern = "uniform"
think = "200 us"
[[process]]
name = "hog"
[[process.region]]
name = "heap"
size = "400 MiB"
[[process.phase]]
[[process.phase.access]]
region = "heap"
pattern = "sequential"
write = 1.0
count = 102400
[run]
sample = "1 s"
"#;

#[test]
fn memory_that_runs_out_is_a_result() {
    let test = "memory_that_runs_out_is_a_result";
    let Some((directory, _)) = real(test) else { return };
    let (scenario, recording) = (directory.path().join("oom.toml"), directory.path().join("out/oom.mmt"));
    fs::write(&scenario, RUNS_OUT).expect("scenario");
    let words = [Path::new("run"), &scenario, Path::new("--on"), Path::new("lab"), Path::new("-o"), &recording];
    let output = command(words).output().expect("the program");
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{message}");
    assert!(message.contains("hog") && message.contains("Out of memory: Killed process"), "{message}");
    let read = |name: &str| fs::read_to_string(recording.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    let json = |name: &str| serde_json::from_str::<serde_json::Value>(&read(name)).expect("JSON");
    let results = json("results.json");
    let ending = &results["ending"];
    assert_eq!((ending["how"].as_str(), ending["comm"].as_str()), (Some("out_of_memory"), Some("hog")));
    let phases = results["phases"].as_array().expect("phases");
    let of = |process: &str| phases.iter().rfind(|phase| phase["process"] == process).expect("a phase");
    // The one that was killed is cut off then, the other did its five seconds.
    assert_eq!(of("hog")["end"], ending["at"]);
    let time =
        |phase: &serde_json::Value| phase["end"].as_u64().expect("end") - phase["start"].as_u64().expect("start");
    assert!(time(of("small")) >= 5_000_000_000 && of("small")["end"].as_u64() > ending["at"].as_u64(), "{phases:?}");
    assert!(recording.join("end.json").is_file());
    // What stands for a percentage makes it 0.
    let files = &json("manifest.json")["evidence"]["files"];
    let sysctl = |name: &str| files[format!("/proc/sys/vm/{name}")].as_str();
    assert_eq!((sysctl("dirty_bytes"), sysctl("dirty_ratio")), (Some("8388608"), Some("0")));
    assert_eq!((sysctl("dirty_background_bytes"), sysctl("dirty_background_ratio")), (Some("4194304"), Some("0")));
}
