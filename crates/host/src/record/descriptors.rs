//! Open files: a ring buffer takes one per CPU, its pages one more where there is room.

use crate::Error;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What is open beside the files per CPU: counters, tasks, signals, a pipe, what is read in passing.
const OTHERS: u64 = 32;

/// How files of pages are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PagesOpen {
    /// All the time.
    Always,
    /// While something is written to them.
    InPassing,
}

/// Raises the soft limit to the hard one. Returns what it was before, if it changed: programs that are started should
/// have that, for some use `select`, which has no numbers above 1,023.
pub fn raise() -> Option<Rlimit> {
    let before = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: before.maximum, maximum: before.maximum };
    (before.current != before.maximum && setrlimit(Resource::Nofile, raised).is_ok()).then_some(before)
}

/// How the files of so many CPUs can be open under the limit of this process.
///
/// # Errors
/// If not even their ring buffers can.
pub fn plan(cpus: usize) -> Result<PagesOpen, Error> {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let open = std::fs::read_dir("/proc/self/fd").map_or(16, |entries| entries.count() as u64);
    fits(cpus as u64, open, limit)
}

fn fits(cpus: u64, open: u64, limit: u64) -> Result<PagesOpen, Error> {
    let needed = open + OTHERS + cpus;
    if needed + cpus <= limit {
        Ok(PagesOpen::Always)
    } else if needed <= limit {
        Ok(PagesOpen::InPassing)
    } else {
        Err(Error::Descriptors { cpus, needed, limit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_cpus_take_fewer_files_each_or_are_refused() {
        assert_eq!(fits(2, 10, 1024).unwrap(), PagesOpen::Always);
        assert_eq!(fits(500, 10, 1024).unwrap(), PagesOpen::InPassing);
        assert_eq!(fits(4096, 10, 8192).unwrap(), PagesOpen::InPassing);
        assert_eq!(fits(4096, 10, 1 << 20).unwrap(), PagesOpen::Always);
        let refused = fits(4096, 10, 1024).unwrap_err().to_string();
        assert!(refused.contains("RLIMIT_NOFILE") && refused.contains("4138") && refused.contains("1024"), "{refused}");
    }
}
