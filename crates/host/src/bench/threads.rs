//! Threads pinned one per CPU and released together: what every measurement of this machine runs on.

use crate::{Error, clock, evidence};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// A CPU that this process may run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// The kernel's number.
    pub id: u32,
    /// Its node; 0 on a kernel without NUMA.
    pub node: u32,
}

/// The CPUs that this process may run on, in the kernel's order. Fails if the system does not tell.
pub fn cpus() -> Result<Vec<Cpu>, Error> {
    let set = sched_getaffinity(None).map_err(|e| Error::io("reading the CPUs this process may run on", e))?;
    let nodes = evidence::nodes(Path::new("/sys/devices/system/node"));
    let node_of = |id: u32| nodes.iter().find(|n| n.cpus.contains(&id)).map_or(0, |n| n.id);
    let ids = (0..CpuSet::MAX_CPU).filter(|&id| set.is_set(id)).map(|id| id as u32);
    Ok(ids.map(|id| Cpu { id, node: node_of(id) }).collect())
}

/// Where the threads of a run wait for each other, and learn that its time is over. Each flag has a line of its own:
/// threads that look at one must not be disturbed by writes to another.
pub struct Gate {
    arrived: Padded<AtomicUsize>,
    open: Padded<AtomicBool>,
    over: Padded<AtomicBool>,
}

impl Gate {
    /// Waits until every thread is here.
    pub fn wait(&self) {
        self.arrived.0.fetch_add(1, Ordering::AcqRel);
        while !self.open.0.load(Ordering::Acquire) {
            std::hint::spin_loop();
        }
    }

    /// True once the time of the run is over.
    #[inline]
    pub fn over(&self) -> bool {
        self.over.0.load(Ordering::Relaxed)
    }
}

/// A value with cache lines of its own. Two lines, because processors fetch lines in pairs.
#[repr(align(128))]
#[derive(Debug, Default)]
pub struct Padded<T>(
    /// The value.
    pub T,
);

/// Runs `work` on each CPU at once, with its index in `cpus`; `work` prepares, passes the gate exactly once and
/// measures. `Gate::over` becomes true after `time`. Fails without a result if a thread is not available on its CPU.
pub fn together<T: Send>(
    cpus: &[Cpu],
    time: Duration,
    work: impl Fn(usize, &Gate) -> T + Sync,
) -> Result<Vec<T>, Error> {
    let gate = Gate { arrived: Padded::default(), open: Padded::default(), over: Padded::default() };
    // A thread that cannot be pinned still passes the gate, or the others would wait for it for ever.
    let one = |index: usize, cpu: Cpu| match pin(cpu) {
        Ok(()) => Ok(work(index, &gate)),
        Err(error) => {
            gate.over.0.store(true, Ordering::Relaxed);
            gate.wait();
            Err(error)
        }
    };
    std::thread::scope(|scope| {
        let one = &one;
        let mut threads = Vec::new();
        let mut refused = None;
        for (index, &cpu) in cpus.iter().enumerate() {
            match std::thread::Builder::new().spawn_scoped(scope, move || one(index, cpu)) {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    refused = Some(Error::io(format!("starting a thread for CPU {}", cpu.id), error));
                    gate.over.0.store(true, Ordering::Relaxed);
                    break;
                }
            }
        }
        while gate.arrived.0.load(Ordering::Acquire) < threads.len() {
            std::thread::sleep(Duration::from_micros(50));
        }
        gate.open.0.store(true, Ordering::Release);
        // A thread that could not run has said so before it arrived.
        if !gate.over() {
            std::thread::sleep(time);
        }
        gate.over.0.store(true, Ordering::Relaxed);
        let results: Result<Vec<T>, Error> =
            threads.into_iter().map(|t| t.join().unwrap_or_else(|p| std::panic::resume_unwind(p))).collect();
        refused.map_or(results, Err)
    })
}

/// Runs `work` on one CPU, in a thread that ends with it.
pub fn on<T: Send>(cpu: Cpu, work: impl Fn() -> T + Sync) -> Result<T, Error> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| pin(cpu).map(|()| work()));
        thread.join().unwrap_or_else(|p| std::panic::resume_unwind(p))
    })
}

fn pin(cpu: Cpu) -> Result<(), Error> {
    let mut set = CpuSet::new();
    set.set(cpu.id as usize);
    sched_setaffinity(None, &set).map_err(|e| Error::io(format!("running on CPU {}", cpu.id), e))
}

/// Repeats `step` until the run is over, at least once, and returns nanoseconds of CPU time per repetition.
pub fn paced(gate: &Gate, mut step: impl FnMut()) -> f64 {
    gate.wait();
    let begin = clock::thread_cpu_time();
    let mut steps = 0u64;
    loop {
        step();
        steps += 1;
        if gate.over() {
            break;
        }
    }
    (clock::thread_cpu_time() - begin) as f64 / steps as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_runs_on_its_own_cpu() {
        let cpus = cpus().unwrap();
        let ran = together(&cpus, Duration::ZERO, |index, gate| {
            gate.wait();
            (index, rustix::thread::sched_getcpu() as u32)
        });
        let expected: Vec<_> = cpus.iter().map(|c| c.id).enumerate().collect();
        assert_eq!(ran.unwrap(), expected);
    }

    #[test]
    fn a_cpu_that_is_not_there_is_an_error() {
        let gone = Cpu { id: CpuSet::MAX_CPU as u32 - 1, node: 0 };
        let with = [cpus().unwrap()[0], gone];
        let error = together(&with, Duration::from_secs(60), |_, gate| paced(gate, || ())).unwrap_err();
        assert!(error.to_string().starts_with("running on CPU 1023: "), "{error}");
        assert!(on(gone, || ()).is_err());
    }
}
