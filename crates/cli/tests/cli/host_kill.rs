//! A run on this machine that is killed at any moment leaves nothing of what it changed, after the next start at the
//! latest.
//!
//! By default a few kills, in mount namespaces in which the sysctl that is written is a plain file, and journals are in a
//! folder of the test: whatever of mmtwin starts outside would take them for what a killed run has left.
//! MMTWIN_HOST_KILLS sets how many, and then the machine's own sysctl is written; MMTWIN_HOST_SEED sets the first seed.

use super::support::{command, mmtwin, root, scratch, skipped, with_signals};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const SYSCTL: &str = "/proc/sys/vm/laptop_mode";
const JOURNALS: &str = "/run/mmtwin";
/// A guard far above what any of it needs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A run, which does not outlive its test.
struct Run(Child);

impl Run {
    fn kill(&mut self) {
        self.0.kill().expect("a kill");
        self.0.wait().expect("an end");
    }

    fn end(&mut self) -> ExitStatus {
        self.0.wait().expect("an end")
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What may be left of a run.
struct Machine {
    folder: tempfile::TempDir,
    /// Directory of the memory cgroup.
    group: PathBuf,
    comm: String,
    /// The file of the sysctl, or what stands for it.
    sysctl: PathBuf,
    /// Where journals are, seen from the test.
    journals: PathBuf,
    plain: bool,
    /// What is in it before.
    laptop_mode: String,
}

impl Machine {
    /// `None`: runs on the host cannot be tested here, which is said.
    fn prepare(test: &str, plain_file: bool) -> Option<Machine> {
        let skip = |why: &str| {
            skipped(test, why);
            None
        };
        if !rustix::process::geteuid().is_root() {
            return skip("it needs root");
        }
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let v1 = mounts.lines().find(|line| line.starts_with("cgroup ") && line.contains(",memory"));
        let Some(mount) = v1.and_then(|line| line.split(' ').nth(1)) else {
            return skip("no memory controller of cgroup v1 is mounted");
        };
        let folder = scratch();
        let plain = plain_file.then(|| folder.path().join("laptop_mode"));
        let mut journals = PathBuf::from(JOURNALS);
        if let Some(file) = &plain {
            fs::write(file, "0\n").expect("a file");
            journals = folder.path().join("run/mmtwin");
            fs::create_dir(folder.path().join("run")).expect("a folder");
            let unshare = Command::new("unshare").args(["-m", "--propagation", "private", "true"]).status();
            if !unshare.is_ok_and(|status| status.success()) {
                return skip("no mount namespace can be made");
            }
        }
        // Tests run side by side.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let id = format!("{}{}", std::process::id(), (b'a' + NEXT.fetch_add(1, Ordering::Relaxed) as u8) as char);
        let group = Path::new(mount).join(format!("mmtwin-kill-{id}"));
        let sysctl = plain.clone().unwrap_or_else(|| SYSCTL.into());
        let laptop_mode = fs::read_to_string(&sysctl).ok()?;
        let (comm, plain) = (format!("kill{id}"), plain.is_some());
        let machine = Machine { folder, group, comm, sysctl, journals, plain, laptop_mode };
        fs::write(machine.scenario(), machine.text()).expect("a file");
        Some(machine)
    }

    fn scenario(&self) -> PathBuf {
        self.folder.path().join("s.toml")
    }

    fn text(&self) -> String {
        let name = self.group.file_name().expect("a name").to_string_lossy();
        let events = match Path::new("/sys/kernel/tracing/available_events").exists() {
            true => "events = [\"vmscan:*\"]",
            false => "",
        };
        format!(
            "[machine]\nname = \"here\"\nthreads_per_core = 1\n[[machine.node]]\ncpus = \"0\"\nmemory = \"64 MiB\"\n\
             [kernel]\nrelease = \"6.1\"\ncgroup = \"v1\"\n[[cgroup]]\nname = \"/{name}\"\nmemory.max = \"64 MiB\"\n\
             [[process]]\nname = \"{}\"\ncgroup = \"/{name}\"\n[[process.region]]\nname = \"h\"\nsize = \"1 MiB\"\n\
             [[process.phase]]\n[[process.phase.action]]\nkind = \"sysctl\"\nname = \"vm.laptop_mode\"\nvalue = 7\n\
             [[process.phase]]\nduration = \"600 s\"\n[[process.phase.access]]\nregion = \"h\"\npattern = \"uniform\"\n\
             think = \"10 us\"\n[run]\nsample = \"100 ms\"\n{events}\n",
            self.comm
        )
    }

    /// The program, where the file stands for the sysctl; it has the process id of what is started.
    fn program(&self, arguments: &[&OsStr]) -> Command {
        if !self.plain {
            return command(arguments);
        }
        let mut command = Command::new("unshare");
        command.args(["-m", "--propagation", "private", "sh", "-c"]).current_dir(root()).stdin(Stdio::null());
        let mounts = format!("mount --bind \"$0\" {SYSCTL} && mount --bind \"$1\" /run && shift && exec \"$@\"");
        command.arg(mounts).arg(&self.sysctl).arg(self.folder.path().join("run"));
        command.arg(env!("CARGO_BIN_EXE_mmtwin")).args(arguments);
        command
    }

    fn mode(&self) -> String {
        fs::read_to_string(&self.sysctl).expect("the sysctl").trim().into()
    }

    /// Starts a run.
    fn start(&self) -> Run {
        let scenario = self.scenario();
        let run = self.program(&["run".as_ref(), "--on".as_ref(), "host".as_ref(), scenario.as_os_str()]);
        let mut run = with_signals(&run);
        run.env("TMPDIR", self.folder.path());
        let said = fs::File::create(self.folder.path().join("said")).expect("a file");
        Run(run.stdout(Stdio::null()).stderr(said).spawn().expect("the program"))
    }

    /// What the run and its guardian said.
    fn said(&self) -> String {
        fs::read_to_string(self.folder.path().join("said")).expect("messages")
    }

    /// Waits until the run has written the sysctl.
    fn wait_for_change(&self, run: &mut Run) {
        wait("the sysctl is written", || {
            assert!(run.0.try_wait().expect("a state").is_none(), "the run ended: {}", self.said());
            self.mode() == "7"
        });
    }

    /// Processes of the workload.
    fn workers(&self) -> usize {
        let is = |pid: &String| {
            fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|status| {
                status.starts_with(&format!("Name:\t{}\n", self.comm)) && !status.contains("\nState:\tZ")
            })
        };
        pids().iter().filter(|pid| is(pid)).count()
    }

    fn journals_of(&self, run: u32) -> Vec<PathBuf> {
        let of_run = |name: &String| name.starts_with(&format!("host-{run}-"));
        names(&self.journals).into_iter().filter(of_run).map(|name| self.journals.join(name)).collect()
    }

    /// What is left of runs, in words.
    fn left(&self, run: u32) -> Vec<String> {
        let mut left = Vec::new();
        if self.mode() != self.laptop_mode.trim() {
            left.push(format!("{SYSCTL} is {}", self.mode()));
        }
        left.extend(self.group.exists().then(|| self.group.display().to_string()));
        left.extend((self.workers() > 0).then(|| format!("{} workers", self.workers())));
        left.extend(self.journals_of(run).into_iter().map(|path| path.display().to_string()));
        let ours = |name: &str| name.starts_with(&format!("mmtwin-{run}"));
        left.extend(names("/sys/kernel/tracing/instances").into_iter().filter(|name| ours(name)));
        let file = |name: &String| name.starts_with("mmtwin-run-") || name.starts_with(".mmtwin-");
        left.extend(names(self.folder.path()).into_iter().filter(file));
        left.extend(guardians(run).into_iter().map(|pid| format!("guardian {pid}")));
        left
    }
}

impl Drop for Machine {
    /// Even if the test fails, the machine is as it was.
    fn drop(&mut self) {
        let _ = fs::write(&self.sysctl, self.laptop_mode.trim());
        let _ = fs::remove_dir(&self.group);
    }
}

fn names(folder: impl AsRef<Path>) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn pids() -> Vec<String> {
    names("/proc").into_iter().filter(|name| name.bytes().all(|b| b.is_ascii_digit())).collect()
}

/// Guardians of a run.
fn guardians(run: u32) -> Vec<u32> {
    let journal = format!("{JOURNALS}/host-{run}-");
    let is = |pid: &String| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        line.contains("workload-guardian") && line.contains(&journal)
    };
    pids().into_iter().filter(is).filter_map(|pid| pid.parse().ok()).collect()
}

fn wait(what: &str, mut until: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !until() {
        assert!(begin.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// SplitMix64.
fn random(seed: u64) -> u64 {
    let z = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z ^ (z >> 27)
}

fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid as i32).expect("a pid");
    // It may have ended.
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
}

#[test]
fn a_run_that_is_killed_leaves_nothing() {
    let kills = number("MMTWIN_HOST_KILLS");
    let Some(machine) = Machine::prepare("kills of a run on the host", kills.is_none()) else { return };
    let first = number("MMTWIN_HOST_SEED").unwrap_or(1);
    let (mut changed, mut by_guardian) = (0, 0);
    for seed in first..first + kills.unwrap_or(4) {
        let mut run = machine.start();
        let (id, with_guardian) = (run.0.id(), seed % 2 == 0);
        // From before the first change to long after the last; every other pair while changes are made.
        if seed % 4 >= 2 {
            wait("the run begins", || machine.journals_of(id).len() > 1);
            std::thread::sleep(Duration::from_micros(random(seed) % 100_000));
        } else {
            std::thread::sleep(Duration::from_micros(random(seed) % 1_000_000));
        }
        changed += u32::from(machine.group.exists());
        let guarded = guardians(id);
        if with_guardian {
            guarded.iter().for_each(|pid| kill(*pid));
        }
        run.kill();
        if with_guardian {
            wait("a killed guardian ends", || guardians(id).is_empty());
        } else {
            wait("the guardian ends", || guardians(id).is_empty());
            by_guardian += u32::from(!guarded.is_empty());
            // What a guardian does not know of is the folder for a recording that is not kept.
            let left: Vec<String> = machine.left(id).into_iter().filter(|left| !left.contains("run")).collect();
            assert!(guarded.is_empty() || left.is_empty(), "seed {seed}: {left:?}");
        }
        let doctor = machine.program(&["doctor".as_ref()]).output().expect("the program");
        assert!(doctor.status.success());
        let left = machine.left(id);
        assert!(left.is_empty(), "seed {seed}: {left:?}\n{}", String::from_utf8_lossy(&doctor.stderr));
    }
    eprintln!("kills: {changed} while there was something to undo, {by_guardian} undone by the guardian");
}

#[test]
fn signals_undo_and_are_told() {
    let Some(machine) = Machine::prepare("signals to a run on the host", true) else { return };
    for (name, signal) in [("INT", 2), ("TERM", 15), ("HUP", 1)] {
        let mut run = machine.start();
        let id = run.0.id();
        machine.wait_for_change(&mut run);
        let sent = Command::new("kill").args([format!("-{name}"), id.to_string()]).status();
        assert!(sent.expect("kill").success());
        let ended = run.end();
        let told = ended.code().or(ended.signal().map(|signal| 128 + signal));
        assert_eq!(told, Some(128 + signal), "{name}: {}", machine.said());
        assert!(machine.left(id).is_empty(), "{name}: {:?}", machine.left(id));
    }
}

#[test]
fn a_value_that_somebody_else_has_set_stays() {
    let Some(machine) = Machine::prepare("a sysctl that somebody else sets", true) else { return };
    let mut run = machine.start();
    machine.wait_for_change(&mut run);
    fs::write(&machine.sysctl, "3\n").expect("a sysctl");
    let id = run.0.id();
    run.kill();
    wait("the guardian ends", || guardians(id).is_empty());
    assert_eq!(machine.mode(), "3");
    let message = machine.said();
    assert!(message.contains("vm.laptop_mode is 3, which the run did not set: not restored (it was 0)"), "{message}");
}

#[test]
fn a_real_machine_is_spared_what_starves_it() {
    let folder = scratch();
    let file = folder.path().join("s.toml");
    let memory = fs::read_to_string("/proc/meminfo").expect("meminfo");
    let total =
        memory.lines().find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse::<u64>().ok());
    // A tenth of the memory, which the kernel would take.
    let value = total.expect("memory") / 10;
    fs::write(
        &file,
        format!(
            "[machine]\nthreads_per_core = 1\n[[machine.node]]\ncpus = \"0\"\nmemory = \"{} KiB\"\n[kernel]\n\
             release = \"6.1\"\n[[process]]\nname = \"a\"\n[[process.phase]]\n[[process.phase.action]]\n\
             kind = \"sysctl\"\nname = \"vm.min_free_kbytes\"\nvalue = {value}\n",
            total.expect("memory") / 4 * 3 / 4 * 4
        ),
    )
    .expect("a file");
    let run = mmtwin(["run".as_ref(), "--on".as_ref(), "host".as_ref(), file.as_os_str()]);
    assert_eq!(run.status, 1);
    let expected = format!("vm.min_free_kbytes = {value}: on a real machine ");
    assert!(run.err.contains(&expected) && run.err.contains("5 % of memory"), "{}", run.err);
}
