//! The same work on many things, on as many threads as there are CPUs.

use crate::Failure;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What the work gives for each, in their order; the first failure otherwise.
pub fn each<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> Result<R, Failure> + Sync) -> Result<Vec<R>, Failure> {
    let next = AtomicUsize::new(0);
    let done: Vec<Mutex<Option<Result<R, Failure>>>> = items.iter().map(|_| Mutex::new(None)).collect();
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(items.len());
    let take = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(number) else { return };
            let result = work(item);
            if let Ok(mut place) = done[number].lock() {
                *place = Some(result);
            }
        }
    };
    std::thread::scope(|scope| {
        // This thread is one of them: where no other can be started the work is done all the same.
        for _ in 1..workers {
            if std::thread::Builder::new().spawn_scoped(scope, take).is_err() {
                break;
            }
        }
        take();
    });
    let ended = |place: Mutex<Option<Result<R, Failure>>>| {
        place.into_inner().ok().flatten().unwrap_or_else(|| Err(Failure::Error("a run was aborted".into())))
    };
    done.into_iter().map(ended).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_their_order_and_a_failure_is_given_back() {
        let numbers: Vec<u64> = (0..100).collect();
        let twice = each(&numbers, |n| Ok(2 * n)).unwrap_or_default();
        assert_eq!(twice, numbers.iter().map(|n| 2 * n).collect::<Vec<_>>());
        let failed = each(&numbers, |n| if *n == 70 { Err(Failure::Error("70".into())) } else { Ok(*n) });
        assert!(matches!(failed, Err(Failure::Error(message)) if message == "70"));
    }
}
