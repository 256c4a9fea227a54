//! Memory accesses: the explicit accesses of a thread, done for real and timed.
//!
//! Every access is timed with two readings of the time-stamp counter, the first of which ends the time of the access
//! before. An access that took at least half as long as the cheapest page fault may have been one: only then the
//! kernel's count of the thread's faults is read, so the faults of accesses that take turns are distinguished and an access
//! without a fault costs no system call. What an access costs beside itself (generator, clocks, histogram) is measured
//! once per access on a page of its own and taken off the think time. Accesses that arrive (open loop) are timed from
//! their arrival, by the clock.

use super::region::Mapped;
use crate::workload::pace::{Pace, ticks};
use crate::{Error, clock};
use mmtwin_event::durations::Durations;
use mmtwin_scenario::program::{AccessPlan, Arrivals, PhaseAccesses, ThreadPhase};
use mmtwin_scenario::units::PAGE;
use mmtwin_scenario::workload::Via;
use std::fs::File;
use std::hint::black_box;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// Cache lines of a page.
const LINES: usize = 64;

/// What is accessed.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    base: *mut u8,
    /// Distance of two pages: 0 if all accesses go to one page.
    stride: usize,
    file: Option<&'a File>,
}

impl<'a> Target<'a> {
    /// A region.
    pub fn region(mapped: &'a Mapped) -> Target<'a> {
        Target { base: mapped.base, stride: PAGE as usize, file: mapped.file.as_ref() }
    }

    /// A single page, for all accesses: what is left of their cost is not theirs.
    fn page(scratch: &Scratch) -> Target<'static> {
        Target { base: scratch.0, stride: 0, file: None }
    }

    /// Frees pages of anonymous memory: the next access of each faults.
    fn free(&self, pages: &Range<u64>) -> std::io::Result<()> {
        let length = (pages.end - pages.start) as usize * self.stride;
        // SAFETY: programs free only pages of their region, which stays mapped; what is in them may be any number.
        let done = unsafe {
            libc::madvise(self.base.add(pages.start as usize * self.stride).cast(), length, libc::MADV_DONTNEED)
        };
        if done == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    }

    /// Accesses a page: a byte of each of its lines, from one on that depends on the page, or all of it by a system call.
    #[inline]
    fn touch(
        &self,
        page: u64,
        write: bool,
        (via, lines): (Via, usize),
        buffer: &mut [u8; PAGE as usize],
    ) -> std::io::Result<()> {
        match (via, self.file) {
            (Via::Syscall, Some(file)) => {
                let at = page * self.stride as u64;
                if write { file.write_all_at(buffer, at) } else { file.read_exact_at(buffer, at) }
            }
            _ => {
                let first = (page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize;
                for line in (first..first + lines).map(|line| line % LINES * 64) {
                    // SAFETY: programs access only pages of their region, which is mapped for as long as the process
                    // lives, and the line is within the page; all threads and processes use it only by atomic
                    // operations.
                    let byte = unsafe { AtomicU8::from_ptr(self.base.add(page as usize * self.stride + line)) };
                    if write {
                        // A plain store: emulators make a load and a store of anything that reads and writes at
                        // once, and the page is first mapped to be read. Not 0, so that swap cannot leave the page
                        // out.
                        byte.store(1, Ordering::Relaxed);
                    } else {
                        black_box(byte.load(Ordering::Relaxed));
                    }
                }
                Ok(())
            }
        }
    }
}

/// What a thread achieved with one access.
#[derive(Clone, Debug, PartialEq)]
pub struct Achieved {
    /// Index of the access in the scenario's phase.
    pub number: usize,
    /// Accesses.
    pub touches: u64,
    /// Page faults of these.
    pub faults: u64,
    /// Nanoseconds of CPU time, think time included.
    pub cpu_time: u64,
    /// Latencies in nanoseconds.
    pub latencies: Durations,
}

impl Achieved {
    /// Nothing yet.
    pub fn nothing(number: usize) -> Achieved {
        Achieved { number, touches: 0, faults: 0, cpu_time: 0, latencies: Durations::default() }
    }

    /// Adds what another thread achieved.
    pub fn add(&mut self, other: &Achieved) {
        self.touches += other.touches;
        self.faults += other.faults;
        self.cpu_time += other.cpu_time;
        self.latencies.merge(&other.latencies);
    }
}

/// What a thread needs to access memory.
#[derive(Clone, Copy, Debug)]
pub struct Toucher {
    /// Speeds of this machine.
    pub pace: Pace,
    /// Ticks of an access that may have been a page fault.
    pub may_fault: u64,
}

impl Toucher {
    /// Does a thread's accesses of a phase until all have reached their count or it is `deadline`. `targets` are the
    /// regions of the process, `overhead` by access what an access costs beside itself in nanoseconds.
    pub fn run(
        &self,
        phase: &ThreadPhase,
        targets: &[Target<'_>],
        overhead: &[f64],
        deadline: u64,
    ) -> Result<Vec<Achieved>, Error> {
        let mut achieved: Vec<_> = phase.accesses.iter().map(|access| Achieved::nothing(access.number)).collect();
        let accesses = phase.accesses.iter().zip(overhead);
        let think: Vec<_> = accesses.map(|(access, own)| self.pace.work(access.think as f64 - own)).collect();
        let mut busy = vec![0u64; achieved.len()];
        let mut buffer = [1; PAGE as usize];
        let mut last_tick = self.pace.tick_at(deadline);
        let (cpu_before, mut faults) = (clock::thread_cpu_time(), thread_faults());
        let mut arrivals: Vec<Option<Arrivals>> = phase.accesses.iter().map(|access| access.arrivals.clone()).collect();
        let begin = clock::now();
        if arrivals.iter().any(Option::is_some) {
            wake_in_time();
        }
        let mut chain = 1;
        // The access whose time it is, and since when.
        let mut current = None;
        for touch in PhaseAccesses::new(phase) {
            let due = arrivals[touch.access].as_mut().and_then(Iterator::next).map(|after| begin.saturating_add(after));
            if let Some(due) = due {
                if let Some((access, since)) = current.take() {
                    busy[access] += ticks().saturating_sub(since);
                }
                std::thread::sleep(Duration::from_nanos(due.min(deadline).saturating_sub(clock::now())));
                if due >= deadline {
                    break;
                }
            }
            let began = ticks();
            if let Some((access, since)) = current {
                busy[access] += began.saturating_sub(since);
            }
            if began >= last_tick {
                if clock::now() >= deadline {
                    current = None;
                    break;
                }
                // Ticks and clock drift apart by some parts per million.
                last_tick = self.pace.tick_at(deadline);
            }
            let AccessPlan { region, via, sleep, lines, recycle, ref pages, .. } = phase.accesses[touch.access];
            let what = touch.what;
            let before = achieved[touch.access].touches;
            if recycle && before > 0 && before.is_multiple_of(pages.end - pages.start) {
                targets[region].free(pages).map_err(|e| Error::io(format!("freeing region {region}"), e))?;
            }
            let result = targets[region].touch(what.page, what.write, (via, lines as usize), &mut buffer);
            let ended = ticks();
            result.map_err(|e| Error::io(format!("page {} of region {region}", touch.what.page), e))?;
            let of = &mut achieved[touch.access];
            let took = ended.saturating_sub(began);
            let time = due.map_or_else(|| self.pace.nanoseconds(took), |due| clock::now().saturating_sub(due));
            of.touches += 1;
            of.latencies.add(time);
            // System calls copy without page faults.
            if took >= self.may_fault && via == Via::Mmap {
                let now = thread_faults();
                of.faults += now - faults;
                faults = now;
            }
            chain = think[touch.access].after(chain);
            current = Some((touch.access, began));
            if sleep > 0 {
                busy[touch.access] += ticks().saturating_sub(began);
                let left = deadline.saturating_sub(clock::now());
                std::thread::sleep(Duration::from_nanos(sleep.min(left)));
                current = None;
            }
        }
        if let Some((access, since)) = current {
            busy[access] += ticks().saturating_sub(since);
        }
        black_box(chain);
        let cpu_time = clock::thread_cpu_time() - cpu_before;
        let all: u64 = busy.iter().sum();
        for (of, busy) in achieved.iter_mut().zip(busy) {
            of.cpu_time = (u128::from(cpu_time) * u128::from(busy) / u128::from(all.max(1))) as u64;
        }
        Ok(achieved)
    }

    /// Nanoseconds that each access of a phase costs beside the access itself and its think time: the same accesses, to
    /// one page. Zero for those that do not think, which have nothing to take it off.
    ///
    /// Other processes measure at the same time, and may share this CPU: whatever interrupts a measurement makes it
    /// longer, so the fastest of many counts, each of them far shorter than a turn of an emulator's CPU. What a
    /// measurement costs that its accesses do not is in a short one as in a long one, so the difference counts.
    pub fn overhead(&self, phase: &ThreadPhase, scratch: &Scratch) -> Result<Vec<f64>, Error> {
        const SHORT: u64 = 20;
        const LONG: u64 = 120;
        const SAMPLES: usize = 32;
        let fastest = |access: &AccessPlan, accesses: u64| -> Result<u64, Error> {
            let (think, sleep, count, via) = (0, 0, Some(accesses), Via::Mmap);
            // Further lines are part of the touch.
            let (lines, recycle, arrivals) = (1, false, None);
            let only = AccessPlan { region: 0, think, sleep, count, via, lines, recycle, arrivals, ..access.clone() };
            let (name, duration, actions) = (String::new(), None, Vec::new());
            let phase = ThreadPhase { name, duration, actions, accesses: vec![only] };
            let target = [Target::page(scratch)];
            let sample = |_| {
                let begin = clock::now();
                self.run(&phase, &target, &[0.0], u64::MAX).map(|_| clock::now() - begin)
            };
            let samples = (0..SAMPLES).map(sample).collect::<Result<Vec<u64>, Error>>()?;
            Ok(samples.into_iter().min().unwrap_or(0))
        };
        let one = |access: &AccessPlan| {
            if access.think == 0 {
                return Ok(0.0);
            }
            let longer = fastest(access, LONG)?.saturating_sub(fastest(access, SHORT)?);
            Ok(longer as f64 / (LONG - SHORT) as f64)
        };
        phase.accesses.iter().map(one).collect()
    }
}

/// Sleeps of this thread end when they should, and not up to 50 us later.
fn wake_in_time() {
    // SAFETY: sets a number of this thread; without it, requests would seem to wait.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

/// Faults of this thread so far, those that found the page in memory included.
fn thread_faults() -> u64 {
    // SAFETY: the kernel fills in a structure of numbers, for which zero is a value; the call cannot fail with these
    // arguments.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        usage
    };
    (usage.ru_minflt + usage.ru_majflt) as u64
}

/// A few pages of this process's own.
#[derive(Debug)]
pub struct Scratch(*mut u8);

impl Scratch {
    const PAGES: usize = 64;

    /// Maps them, and measures the cheapest page fault in ticks.
    pub fn new() -> Result<(Scratch, u64), Error> {
        let length = Scratch::PAGES * PAGE as usize;
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at an address that the kernel chooses; it is smaller than a huge page.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), length, protection, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(Error::io("scratch pages", std::io::Error::last_os_error()));
        }
        let scratch = Scratch(base.cast());
        let target = Target { stride: PAGE as usize, ..Target::page(&scratch) };
        let mut buffer = [0; PAGE as usize];
        let fault = |page| {
            let began = ticks();
            let touched = target.touch(page, true, (Via::Mmap, 1), &mut buffer);
            touched.map(|()| ticks().saturating_sub(began))
        };
        let faults: Result<Vec<u64>, _> = (0..Scratch::PAGES as u64).map(fault).collect();
        let faults = faults.map_err(|e| Error::io("scratch pages", e))?;
        Ok((scratch, faults.into_iter().min().unwrap_or(0)))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: mapped in `new` with this length, and its targets do not outlive it.
        unsafe { libc::munmap(self.0.cast(), Scratch::PAGES * PAGE as usize) };
    }
}
