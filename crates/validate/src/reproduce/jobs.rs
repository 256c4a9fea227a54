//! Runs on all CPUs: one thread a run, results in the order of the jobs whatever ends first.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{available_parallelism, scope};

/// What `run` gives for each job, in their order.
pub(super) fn run_all<J: Sync, R: Send>(jobs: &[J], run: impl Fn(&J) -> R + Sync) -> Vec<R> {
    let threads = available_parallelism().map_or(1, usize::from).min(jobs.len());
    if threads <= 1 {
        return jobs.iter().map(run).collect();
    }
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(jobs.len()));
    scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(number) else { break };
                    let result = run(job);
                    // Whoever held the lock only appended.
                    done.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push((number, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::run_all;

    #[test]
    fn results_are_in_the_order_of_the_jobs() {
        let jobs: Vec<u64> = (0..100).rev().collect();
        assert_eq!(run_all(&jobs, |job| job * 2), jobs.iter().map(|job| job * 2).collect::<Vec<_>>());
        assert!(run_all(&[0; 0], |job: &i32| *job).is_empty());
    }
}
