//! Programs as whole processes: wall time, CPU time, memory.
//!
//! CPU time is user and system time of the process and of what it waited for, from the kernel's accounting
//! (`getrusage`); wall time includes starting it. Standard output goes to /dev/null.

use crate::inputs::{Result, fail};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A program and its arguments.
pub struct Program {
    command: Vec<OsString>,
    stdin: Option<PathBuf>,
    stdout: Option<PathBuf>,
}

/// Time that was used, in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// On the clock.
    pub wall: f64,
    /// Of a CPU.
    pub cpu: f64,
}

impl Program {
    /// A program that reads what its arguments say.
    pub fn new(program: impl Into<OsString>, arguments: &[&str]) -> Program {
        let command = [program.into()].into_iter().chain(arguments.iter().map(Into::into)).collect();
        Program { command, stdin: None, stdout: None }
    }

    /// The same on one CPU.
    pub fn pinned(mut self) -> Program {
        self.command.splice(0..0, ["taskset", "-c", "0"].map(Into::into));
        self
    }

    /// The same with an argument more.
    pub fn arg(mut self, argument: impl Into<OsString>) -> Program {
        self.command.push(argument.into());
        self
    }

    /// The same with standard input from a file.
    pub fn stdin(self, path: &Path) -> Program {
        Program { stdin: Some(path.into()), ..self }
    }

    /// The same with standard output into a file.
    pub fn stdout(self, path: &Path) -> Program {
        Program { stdout: Some(path.into()), ..self }
    }

    /// Runs it once.
    pub fn run(&self) -> Result<Cost> {
        self.watched(None)
    }

    /// The most memory that was not mapped from files at one moment, in bytes: RssAnon + RssShmem, looked at every
    /// millisecond. A peak that is shorter is missed.
    pub fn peak_memory(&self) -> Result<u64> {
        let mut peak = 0;
        let mut look = |child: &Child| {
            if let Ok(status) = fs::read_to_string(format!("/proc/{}/status", child.id())) {
                let kilobytes = |key| {
                    let line: Option<&str> = status.lines().find_map(|l| l.strip_prefix(key));
                    line.and_then(|l| l.trim().strip_suffix(" kB")?.parse::<u64>().ok()).unwrap_or(0)
                };
                peak = peak.max((kilobytes("RssAnon:") + kilobytes("RssShmem:")) << 10);
            }
        };
        self.watched(Some(&mut look))?;
        if peak == 0 { Err("/proc/PID/status shows no memory".into()) } else { Ok(peak) }
    }

    /// Runs it; calls `look`, if there is one, every millisecond meanwhile.
    fn watched(&self, look: Option<&mut dyn FnMut(&Child)>) -> Result<Cost> {
        let name = self.command[0].to_string_lossy();
        let mut errors = tempfile::tempfile().map_err(|e| e.to_string())?;
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(errors.try_clone().map_err(|e| e.to_string())?);
        if let Some(path) = &self.stdin {
            command.stdin(File::open(path).map_err(fail(path))?);
        }
        if let Some(path) = &self.stdout {
            command.stdout(File::create(path).map_err(fail(path))?);
        }
        let before = cpu(libc::RUSAGE_CHILDREN)?;
        let start = Instant::now();
        let mut child = command.spawn().map_err(|e| format!("{name}: {e}"))?;
        if let Some(look) = look {
            while child.try_wait().map_err(|e| format!("{name}: {e}"))?.is_none() {
                look(&child);
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        let status = child.wait().map_err(|e| format!("{name}: {e}"))?;
        let wall = start.elapsed().as_secs_f64();
        let cpu = cpu(libc::RUSAGE_CHILDREN)? - before;
        let mut text = String::new();
        errors.rewind().and_then(|()| errors.read_to_string(&mut text)).map_err(|e| e.to_string())?;
        // An input of the benchmark is whole: a warning of ours means that something else was measured.
        if !status.success() || text.lines().any(|l| l.contains("warning: ")) {
            return Err(format!("{:?}: {status}\n{text}", self.command));
        }
        Ok(Cost { wall, cpu })
    }
}

/// Median costs of programs that take turns, so that what disturbs the machine disturbs all of them.
pub fn in_turns(runs: usize, programs: &[&Program]) -> Result<Vec<Cost>> {
    Ok(all_in_turns(runs, programs)?.into_iter().map(median).collect())
}

/// The least wall time of each: what other programs leave of two cores differs from run to run.
pub fn best_in_turns(runs: usize, programs: &[&Program]) -> Result<Vec<f64>> {
    let best = |costs: Vec<Cost>| costs.iter().map(|c| c.wall).fold(f64::INFINITY, f64::min);
    Ok(all_in_turns(runs, programs)?.into_iter().map(best).collect())
}

fn all_in_turns(runs: usize, programs: &[&Program]) -> Result<Vec<Vec<Cost>>> {
    let mut costs = vec![Vec::new(); programs.len()];
    for _ in 0..runs {
        for (program, costs) in programs.iter().zip(&mut costs) {
            costs.push(program.run()?);
        }
    }
    Ok(costs)
}

/// Median of wall and of CPU time.
pub fn median(costs: Vec<Cost>) -> Cost {
    let middle = |of: fn(&Cost) -> f64| {
        let mut values: Vec<f64> = costs.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        let n = values.len();
        (values[(n - 1) / 2] + values[n / 2]) / 2.0
    };
    Cost { wall: middle(|c| c.wall), cpu: middle(|c| c.cpu) }
}

/// Runs something of this process.
pub fn own<T>(work: impl FnOnce() -> Result<T>) -> Result<Cost> {
    let (before, start) = (cpu(libc::RUSAGE_SELF)?, Instant::now());
    work()?;
    Ok(Cost { wall: start.elapsed().as_secs_f64(), cpu: cpu(libc::RUSAGE_SELF)? - before })
}

/// Seconds of user and system time so far, of this process or of its children.
fn cpu(who: i32) -> Result<f64> {
    // SAFETY: all zeroes are a value of it.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes the structure that it is given.
    if unsafe { libc::getrusage(who, &mut usage) } != 0 {
        return Err(format!("getrusage: {}", std::io::Error::last_os_error()));
    }
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    Ok(seconds(usage.ru_utime) + seconds(usage.ru_stime))
}

/// Reads a file so that it is in the page cache.
pub fn warm(path: &Path) -> Result<()> {
    let mut file = File::open(path).map_err(fail(path))?;
    std::io::copy(&mut file, &mut std::io::sink()).map(|_| ()).map_err(fail(path))
}
