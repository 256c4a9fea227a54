//! Running what is missing of a sweep on the threads of this machine.

use super::driver::{Done, Driver};
use super::row::{self, Ran};
use super::{Error, Plan, Planned};
use crate::Request;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

/// How a sweep is run.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// Runs at the same time, each on a thread; at least 1.
    pub threads: usize,
    /// Start again where there is an output; else it is continued.
    pub force: bool,
    /// Once it is true, the sweep ends with the rows that are finished.
    pub stop: &'a AtomicBool,
}

/// How far a sweep is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Finished runs, those of earlier times among them.
    pub done: usize,
    /// All runs.
    pub of: usize,
}

/// Runs what an output and its journal do not have yet, and writes all rows to the output: a Parquet file. Runs that could
/// not be run before are tried again.
///
/// A run that fails is a row with its reason. `progress` is told at the start and after each run.
///
/// # Errors
/// If the output or its journal cannot be read or written, or is of another sweep.
pub fn run(
    plan: &Plan,
    output: &Path,
    options: &Options<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Done, Error> {
    let mut driver = Driver::begin(plan.clone(), output, options.force)?;
    run_missing(&mut driver, options, progress)?;
    driver.finish()
}

/// Runs what a driver lacks. `progress` as of [`run`].
///
/// # Errors
/// If the journal cannot be written.
pub fn run_missing(
    driver: &mut Driver,
    options: &Options<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), Error> {
    let plan = driver.plan().clone();
    let of = plan.runs.len();
    progress(Progress { done: driver.done(), of });
    let missing: Vec<(usize, &Planned)> = driver.missing().into_iter().map(|at| (at, &plan.runs[at])).collect();
    each(&missing, options, &plan.scenario, |at, ran| {
        driver.add(at, ran)?;
        progress(Progress { done: driver.done(), of });
        Ok(())
    })
}

/// What unwinds a run that is stopped in its midst.
struct Halt;

/// Runs all of them on several threads, and gives each that ended to `take`, on this one.
fn each<E>(
    runs: &[(usize, &Planned)],
    options: &Options<'_>,
    name: &str,
    mut take: impl FnMut(usize, Ran) -> Result<(), E>,
) -> Result<(), E> {
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let stop = || options.stop.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed);
    let (sender, receiver) = mpsc::channel();
    let work = |sender: mpsc::Sender<(usize, Ran)>| {
        while let Some((at, run)) = runs.get(next.fetch_add(1, Ordering::Relaxed)).filter(|_| !stop()) {
            let Some(ran) = run.run(name, &stop) else { return };
            if sender.send((*at, ran)).is_err() {
                return;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..options.threads.clamp(1, runs.len().max(1)) {
            let (sender, work) = (sender.clone(), &work);
            scope.spawn(move || work(sender));
        }
        drop(sender);
        let taken = receiver.iter().try_for_each(|(at, ran)| take(at, ran));
        failed.store(taken.is_err(), Ordering::Relaxed);
        // Nobody waits for what they send.
        drop(receiver);
        taken
    })
}

impl Planned {
    /// Runs it on this thread; `name` names it in findings. `None`: it was stopped.
    pub fn run(&self, name: &str, stop: &dyn Fn() -> bool) -> Option<Ran> {
        let simulate = || {
            let scenario = self.scenario();
            let ran = crate::run(&scenario, Request { name, ..Request::default() }, &mut |_| {
                if stop() {
                    // Without the message of a panic.
                    resume_unwind(Box::new(Halt));
                }
            });
            ran.map_or_else(|error| Ran::failed(error.to_string()), |ran| row::ran(&ran))
        };
        match catch_unwind(AssertUnwindSafe(simulate)) {
            Ok(ran) => Some(ran),
            Err(why) if why.is::<Halt>() => None,
            Err(why) => {
                let text = why.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| why.downcast_ref::<&str>().copied()).unwrap_or("no message");
                Some(Ran::failed(format!("the twin panicked: {text}")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::{Base, Request, journal, read, table};
    use mmtwin_report::sweep::Status;

    const SCENARIO: &str = "[machine]\n[[machine.node]]\ncpus = \"0\"\nmemory = \"64 MiB\"\n[kernel]\nrelease = \"6.1\"\n\
        [[process]]\nname = \"p\"\n[[process.region]]\nname = \"heap\"\nsize = \"1 MiB\"\n[[process.phase]]\n\
        [[process.phase.access]]\nregion = \"heap\"\npattern = \"sequential\"\ncount = 100\n";

    #[test]
    fn another_version_is_refused_but_readable_and_failed_runs_are_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        let (scenario, output) = (folder.path().join("s.toml"), folder.path().join("o.parquet"));
        std::fs::write(&scenario, SCENARIO).unwrap();
        let sets = ["kernel.sysctl.vm.swappiness=10,60".to_owned()];
        let plan = |version| {
            let request = Request { scenario: &scenario, sets: &sets, cases: None, paired: false, seeds: &[], version };
            Plan::new(&request).unwrap_or_else(|faults| panic!("{faults:?}"))
        };
        let stop = AtomicBool::new(false);
        let sweep =
            |version, force| run(&plan(version), &output, &Options { threads: 2, force, stop: &stop }, &mut |_| {});
        let first = sweep("a", false).unwrap();
        assert_eq!((first.kept, first.stopped, first.sweep.rows.len()), (0, false, 2));
        assert_eq!(read(&output).unwrap(), first.sweep);
        let refused = sweep("b", false).unwrap_err().to_string();
        assert!(
            refused.contains("is of a, and this is b: rows of two versions do not belong together; -f"),
            "{refused}"
        );
        assert!(!journal::beside(&output).exists());
        assert_eq!(sweep("b", true).unwrap().kept, 0);
        // As of a run whose thread could not get its memory.
        let mut damaged = read(&output).unwrap();
        damaged.rows[1].status = Status::Failed;
        damaged.rows[1].values.clear();
        table::write(&damaged, std::fs::File::create(&output).unwrap()).unwrap();
        let again = sweep("b", false).unwrap();
        assert_eq!((again.kept, again.sweep.rows[1].status), (1, Status::Completed));
        // Stopped before anything.
        stop.store(true, Ordering::Relaxed);
        let stopped = sweep("c", true).unwrap();
        assert!(stopped.stopped && stopped.sweep.rows.is_empty());
    }
    #[test]
    fn runs_of_any_origin_give_the_same_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let scenario = folder.path().join("s.toml");
        std::fs::write(&scenario, SCENARIO).unwrap();
        let at = |name: &str| folder.path().join(name);
        let sets = ["kernel.sysctl.vm.swappiness=10,60,100".to_owned()];
        let request =
            Request { scenario: &scenario, sets: &sets, cases: None, paired: false, seeds: &[], version: "v" };
        let plan = Plan::new(&request).unwrap_or_else(|faults| panic!("{faults:?}"));
        let stop = AtomicBool::new(false);
        let options = Options { threads: 2, force: false, stop: &stop };
        let done = run(&plan, &at("threads"), &options, &mut |_| {}).unwrap();
        // A curve of each quantity that there is may be asked for before the runs.
        for of in &done.sweep.quantities {
            mmtwin_report::sweep::check_curve(&plan.keys, true, &of.key).unwrap();
        }

        // As another machine would: the last first, as bytes, and one given twice.
        let mut driver = Driver::begin(plan.clone(), &at("sent"), false).unwrap();
        assert_eq!(driver.missing(), [0, 1, 2]);
        for place in [2, 1] {
            let ran = plan.runs[place].run(&plan.scenario, &|| false).expect("a run");
            driver.add(place, Ran::from_bytes(&ran.to_bytes()).expect("bytes")).unwrap();
            driver.add(place, Ran::failed("a second time".into())).unwrap();
        }
        drop(driver);
        let known = super::super::known(&at("sent")).unwrap();
        assert_eq!(known.iter().map(|(case, _)| case[0].as_str()).collect::<Vec<_>>(), ["100", "60"]);
        let mut driver = Driver::begin(plan.clone(), &at("sent"), false).unwrap();
        assert_eq!(driver.missing(), [0]);
        driver.add(0, plan.runs[0].run(&plan.scenario, &|| false).expect("a run")).unwrap();
        driver.finish().unwrap();
        assert_eq!(std::fs::read(at("sent")).unwrap(), std::fs::read(at("threads")).unwrap());

        // A plan that grows while it runs.
        let base = Base { text: SCENARIO, sets: &[] };
        let cases = |values: &[&str]| {
            let values = values.iter().map(|value| vec![(*value).to_owned()]).collect();
            Plan::of_cases(&request, &base, vec!["kernel.sysctl.vm.swappiness".into()], values)
                .unwrap_or_else(|faults| panic!("{faults:?}"))
        };
        let mut driver = Driver::begin(cases(&[]), &at("grown"), false).unwrap();
        assert_eq!(driver.extend(cases(&["10", "60"])), [0, 1]);
        assert_eq!(driver.extend(cases(&["60", "100"])), [1, 2]);
        run_missing(&mut driver, &options, &mut |_| {}).unwrap();
        driver.finish().unwrap();
        assert_eq!(std::fs::read(at("grown")).unwrap(), std::fs::read(at("threads")).unwrap());
    }
}
