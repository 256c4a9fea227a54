//! What `mmtwin record` costs while a load causes a set rate of events.
//!
//! The load is this program started again: every millisecond it maps, accesses and unmaps some pages, each of which
//! is one `kmem:mm_page_alloc` and one `kmem:mm_page_free`. Other programs on the machine add to the events, so the
//! rate is the one that was recorded. The time that the kernel spends on an event in the traced task is the task's,
//! not the recorder's, and not counted. Counters are sampled every second, as by default.

use crate::inputs::{Result, fail};
use crate::measure::Program;
use mmtwin_event::NullSink;
use mmtwin_trace::Outcome;
use mmtwin_trace::recording::Recording;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// What a recording cost.
pub struct Recorded {
    /// Events per second of the recording.
    pub rate: f64,
    /// CPU seconds per second that the recorder spent between start and end, as it wrote itself.
    pub own: f64,
    /// The same of the whole process with start and end, as the kernel accounts it, less the load's.
    pub whole: f64,
    /// Events lost.
    pub lost: u64,
}

const PAGE: usize = 4096;

/// Accesses `pages` new pages every millisecond.
pub fn load(pages: usize, seconds: u64) -> Result<()> {
    let step = Duration::from_millis(1);
    let start = Instant::now();
    let mut next = start;
    while start.elapsed().as_secs() < seconds {
        let mut map = memmap2::MmapMut::map_anon(pages * PAGE).map_err(|e| format!("mapping memory: {e}"))?;
        map.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
        drop(map);
        next += step;
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    Ok(())
}

/// Records a load that causes about `rate` events per second.
pub fn measure(mmtwin: &str, dir: &Path, rate: f64, seconds: u64) -> Result<Recorded> {
    let guess = rate / 1000.0 / 2.0;
    let first = record(mmtwin, dir, guess as usize, 2)?;
    record(mmtwin, dir, (guess * rate / first.rate).round() as usize, seconds)
}

fn record(mmtwin: &str, dir: &Path, pages: usize, seconds: u64) -> Result<Recorded> {
    let path = dir.join("record.mmt");
    // This program, also if its file was replaced since it began.
    let load = format!("/proc/{}/exe", std::process::id());
    let events = "kmem:mm_page_alloc,kmem:mm_page_free";
    let numbers = [pages.to_string(), seconds.to_string()];
    let cost = Program::new(mmtwin, &["record", "--force", "--event", events, "--output"])
        .arg(&path)
        .arg("--")
        .arg(load)
        .arg("--load")
        .arg(&numbers[0])
        .arg("--seconds")
        .arg(&numbers[1])
        .run()?;
    let recording = Recording::open(&path).map_err(|e| e.to_string())?;
    let end = recording.end.clone().ok_or("the recording has no end.json")?;
    let mut outcome = Outcome::default();
    recording.read(&mut NullSink, &mut outcome).map_err(|e| e.to_string())?;
    let length = (end.end - recording.manifest.start) as f64 / 1e9;
    let command = end.times.ok_or("end.json has no times of the command")?;
    drop(recording);
    fs::remove_dir_all(&path).map_err(fail(&path))?;
    Ok(Recorded {
        rate: outcome.events as f64 / length,
        own: end.cost.cpu_time_recording as f64 / 1e9 / length,
        whole: (cost.cpu - command.user - command.system) / length,
        lost: end.losses.iter().map(|l| l.total()).sum(),
    })
}
