//! From a scenario to a recording: plan, image, boot, agent, fetch.

use crate::accelerator::{self, Accelerator};
use crate::console::{Console, Stage};
use crate::image::{self, Content};
use crate::options::{self, EXACT_NEEDS, Evidence, Mode, Start, names};
use crate::pinned::Pinned;
use crate::plan::{Plan, Region, Use};
use crate::process::Running;
use crate::{Error, Folder, Kernel, Origin, Qemu, fetch, modules, refuse, settings, store};
use mmtwin_scenario::Scenario;
use mmtwin_trace::output;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The emulator and what its guests are made of.
#[derive(Clone, Debug)]
pub struct Lab {
    /// Kernels and busybox.
    pub folder: Folder,
    /// The emulator.
    pub qemu: Qemu,
}

/// A run of a scenario on a real kernel. The seed is the scenario's.
#[derive(Clone, Debug)]
pub struct Job<'a> {
    /// The program or scenario to run.
    pub scenario: &'a Scenario,
    /// On which kernel.
    pub kernel: &'a Kernel,
    /// How the guest's CPUs run.
    pub mode: Mode,
    /// A static executable that runs in the guest as `/agent /scenario.json OUT`, in the directory where the workload's
    /// files belong, with `MMTWIN_ARM=lab` in its environment. Status 0 is success, 5 that memory ran out, with that in
    /// the results; files that it leaves in the empty directory OUT become the recording, and its standard error the
    /// message of a failure.
    pub agent: &'a Path,
    /// More files for the guest.
    pub extra: &'a [Extra],
    /// Directory of the recording.
    pub output: &'a Path,
    /// Replace a recording that is there, once the new one is whole.
    pub force: bool,
    /// Largest recording in bytes.
    pub room: u64,
    /// Longest time from the start to the last result. A second start, after a boot that hung, has all of it again.
    pub time_out: Duration,
}

/// A file for the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extra {
    /// Its path in the guest.
    pub path: String,
    /// The file on the host.
    pub from: PathBuf,
}

/// Progress of a guest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress<'a> {
    /// Its stage.
    pub stage: Stage,
    /// Time since its start.
    pub elapsed: Duration,
    /// Last line of its console.
    pub line: Option<&'a str>,
}

/// Times of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Accelerator of the guest.
    pub accelerator: Accelerator,
    /// Time to the start of the agent.
    pub boot: Duration,
    /// Time of everything.
    pub total: Duration,
    /// Seconds of the guest's clock at the start and the end of the agent.
    pub guest: [Option<f64>; 2],
}

/// Room for the guest's image and its console.
const IMAGE_ROOM: u64 = 64 << 20;
/// After this a boot counts as hung, and the guest is started once more. A boot takes some 5 s; now and then one hangs where
/// the CPUs run in parallel. In mode exact a second boot would hang as the first.
const HUNG: Duration = Duration::from_secs(60);
/// Interval between checks of a guest.
const LOOK: Duration = Duration::from_millis(50);

/// Runs a scenario, and leaves its recording. `progress` is called when something changed, and once a second. When
/// `stop` becomes true, the guest is killed. Whatever happens, no process and no file of the guest is left, and the
/// output exists only if the run succeeded.
///
/// # Errors
/// Everything in [`Error`].
pub fn run(
    lab: &Lab,
    job: &Job<'_>,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Outcome, Error> {
    // A signal from the terminal also ends our helpers, whose failure is not the cause then.
    one(lab, job, stop, progress).map_err(|e| if stop.load(Ordering::Relaxed) { Error::Interrupted } else { e })
}

fn one(lab: &Lab, job: &Job<'_>, stop: &AtomicBool, progress: &mut dyn FnMut(Progress<'_>)) -> Result<Outcome, Error> {
    if job.output.exists() {
        output::Folder::check(job.output, job.force, output::Kind::Recording)?;
    }
    if job.mode == Mode::Exact && lab.qemu.major() < EXACT_NEEDS {
        return Err(Error::OldQemu { found: lab.qemu.version.clone(), needed: EXACT_NEEDS });
    }
    let refused = refuse::kernel(job.scenario, job.kernel);
    let plan = match Plan::new(job.scenario, job.room) {
        Ok(plan) => {
            let refused: Vec<_> = refused.into_iter().chain(refuse::delays(&plan, job.kernel)).collect();
            if !refused.is_empty() {
                return Err(Error::Refused(refused));
            }
            plan
        }
        Err(more) => return Err(Error::Refused(refused.into_iter().chain(more).collect())),
    };
    let needed = plan.memory();
    if let Some(available) = store::available_memory().filter(|available| *available < needed) {
        return Err(Error::HostMemory { needed, available });
    }
    let accelerator = match job.mode {
        Mode::Exact => Accelerator::Tcg,
        Mode::Smp => accelerator::choose(&lab.qemu, job.kernel, &lab.folder),
    };
    let directory = store::directory(store::memory_size(&plan).saturating_add(IMAGE_ROOM))?;
    let in_it = |name: &str| directory.path().join(name);
    let memory = in_it(names::MEMORY);
    let kernel = std::fs::canonicalize(&job.kernel.image).map_err(|e| Error::io(job.kernel.image.display(), e))?;
    std::os::unix::fs::symlink(kernel, in_it(names::KERNEL))
        .map_err(|e| Error::io(in_it(names::KERNEL).display(), e))?;
    let start = Start { plan: &plan, mode: job.mode, accelerator, seed: job.scenario.run.seed };

    let origin = Origin::of(&lab.qemu, job.kernel, job.agent)?;
    let begin = Instant::now();
    let boot_guest = || {
        store::memory(&plan, &memory)?;
        write_image(lab, job, &plan, &in_it(names::IMAGE))?;
        let console = Console::create(&in_it(names::CONSOLE))?;
        let pinned = if job.mode == Mode::Exact { Pinned::claim() } else { None };
        Ok((lab.qemu.start(&options::options(&start), directory.path(), pinned)?, console))
    };
    let hung = (job.mode == Mode::Smp).then_some(HUNG);
    let (boot, console) = watch(boot_guest, hung, job.time_out, stop, progress)?;
    console.result(job.room)?;
    let evidence = Evidence::new(&origin, &start);
    if let Some(region) = plan.regions.iter().find(|region| region.used_for == Use::Recording) {
        deliver(&memory, region, &evidence, job.output, job.force)?;
    }
    Ok(Outcome { accelerator, boot, total: begin.elapsed(), guest: console.times })
}

fn write_image(lab: &Lab, job: &Job<'_>, plan: &Plan, to: &Path) -> Result<(), Error> {
    let content = Content {
        folder: &lab.folder,
        agent: job.agent,
        scenario: job.scenario,
        wait: if job.mode == Mode::Exact { image::wait(job.scenario.run.seed) } else { Duration::ZERO },
        plan,
        version: &job.kernel.version,
        modules: &modules::closure(job.kernel, &image::modules(job.kernel, plan, job.scenario))?,
        settings: &settings::settings(job.scenario),
        probes: &job.kernel.probes,
        extra: job.extra,
    };
    std::fs::write(to, image::build(&content)?).map_err(|e| Error::io(to.display(), e))
}

/// Starts a guest and waits for its end; starts another, once, if it still boots after `hung`. Returns when the agent was
/// started.
fn watch(
    mut start: impl FnMut() -> Result<(Running, Console), Error>,
    mut hung: Option<Duration>,
    limit: Duration,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<(Duration, Console), Error> {
    let (mut guest, mut console) = start()?;
    let mut begin = Instant::now();
    let (mut boot, mut reported) = (None, Duration::ZERO);
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let ended = guest.ended()?;
        let news = console.read()?;
        let elapsed = begin.elapsed();
        if console.stage >= Stage::Running {
            boot.get_or_insert(elapsed);
        }
        if news > 0 || elapsed - reported >= Duration::from_secs(1) {
            reported = elapsed;
            progress(Progress { stage: console.stage, elapsed, line: console.last() });
        }
        match ended {
            Some(status) if status.success() => return Ok((boot.unwrap_or(elapsed), console)),
            Some(status) => {
                let complaints = guest.complaints();
                let message = if complaints.is_empty() { format!("ended with {status}") } else { complaints };
                return Err(Error::Qemu { message });
            }
            None if boot.is_none() && hung.is_some_and(|hung| elapsed >= hung) => {
                drop(guest);
                (guest, console) = start()?;
                (begin, reported, hung) = (Instant::now(), Duration::ZERO, None);
            }
            None if elapsed >= limit => {
                return Err(Error::TimeOut { stage: console.stage, limit, console: console.tail() });
            }
            None => std::thread::sleep(LOOK),
        }
    }
}

/// Puts the recording where it belongs, whole or not at all.
fn deliver(memory: &Path, region: &Region, evidence: &Evidence<'_>, output: &Path, force: bool) -> Result<(), Error> {
    let parent = match output.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    std::fs::create_dir_all(parent).map_err(|e| Error::io(parent.display(), e))?;
    let mut whole = output::Folder::create(output, force, output::Kind::Recording)?;
    fetch::copy(memory, region, whole.path())?;
    let text = serde_json::to_string_pretty(evidence).map_err(|e| Error::io("lab.json", e))?;
    let name = whole.path().join("lab.json");
    fetch::write(&name, (text + "\n").as_bytes()).map_err(|e| Error::io(name.display(), e))?;
    Ok(whole.publish().map(|_| ())?)
}

/// Guests that run at once without disturbing each other: in mode exact each keeps one CPU busy, in mode smp all.
pub fn guests_at_once(mode: Mode) -> usize {
    match mode {
        Mode::Exact => std::thread::available_parallelism().map_or(1, usize::from),
        Mode::Smp => 1,
    }
}

/// Runs several jobs, `at_once` of them at the same time. `progress` has the number of the job. The results are in the
/// order of the jobs.
pub fn run_all(
    lab: &Lab,
    jobs: &[Job<'_>],
    at_once: usize,
    stop: &AtomicBool,
    progress: &(dyn Fn(usize, Progress<'_>) + Sync),
) -> Vec<Result<Outcome, Error>> {
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<Result<Outcome, Error>>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..at_once.clamp(1, jobs.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(number) else { return };
                    let result = run(lab, job, stop, &mut |p| progress(number, p));
                    if let Ok(mut place) = results[number].lock() {
                        *place = Some(result);
                    }
                }
            });
        }
    });
    let result = |place: Mutex<Option<_>>| place.into_inner().ok().flatten().unwrap_or(Err(Error::Interrupted));
    results.into_iter().map(result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How a guest ends that counts as hung after `patience`: a shell in place of the emulator, of which the first
    /// `hanging` starts hang.
    fn boot(hanging: u32, patience: Option<Duration>) -> Result<(), Error> {
        let directory = tempfile::tempdir().expect("directory");
        let qemu = Qemu { program: "/bin/sh".into(), version: "10".into() };
        let mut starts = 0;
        let start = || {
            let console = Console::create(&directory.path().join("console"))?;
            let lines = "printf 'mmtwin-lab: running 1.5\\nmmtwin-lab: end done 0\\n' >console";
            let script = if starts < hanging { "exec sleep 100" } else { lines };
            starts += 1;
            Ok((qemu.start(&["-c".into(), script.into()], directory.path(), None)?, console))
        };
        let limit = Duration::from_secs(2);
        let (_, console) = watch(start, patience, limit, &AtomicBool::new(false), &mut |_| {})?;
        console.result(0)
    }

    #[test]
    fn a_guest_whose_boot_hangs_is_started_once_more() {
        let patience = Some(Duration::from_millis(400));
        assert!(boot(0, None).is_ok());
        assert!(boot(1, patience).is_ok());
        for (hanging, patience) in [(1, None), (2, patience)] {
            let hung = boot(hanging, patience).expect_err("an error");
            assert!(matches!(hung, Error::TimeOut { stage: Stage::Booting, .. }), "{hung}");
        }
    }
}
