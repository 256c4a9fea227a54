//! Writers of one file: `inode_lock`, `rwsem_down_write_slowpath`, `rwsem_optimistic_spin` (4.3 to 7.3).
//!
//! Calls that write to a file exclude each other. Who finds the file locked by a task that runs on another CPU spins
//! until it is free; a CPU that spins yields to the other CPUs of an emulator. Who cannot spin, because the owner sleeps or
//! waits for the same CPU, sleeps until the owner's call ends, and is handed the lock once it has waited for 4 ms. Not
//! modelled: the queue of those that spin. Checked by tests here and by guests (docs/model/notebook.md, "Writers of one
//! file").

use crate::time::Ps;
use std::collections::VecDeque;

/// Time after which a waiter is handed the lock (`RWSEM_WAIT_TIMEOUT`): 4 ms.
const PATIENCE: Ps = 4_000_000_000;
/// Interval after which who has handed it on checks again: the new owner may have ended.
const GRACE: Ps = 1_000_000_000;

/// A file's lock for writing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lock {
    /// Last owner, its CPU, and the end of its last call.
    holder: i32,
    cpu: u32,
    until: Ps,
    /// It sleeps with the lock.
    sleeps: bool,
    /// Tasks that sleep for it, and since when.
    waiting: VecDeque<(i32, Ps)>,
}

/// Whether a task may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    Yes,
    /// Another task has waited long enough; time of the next check.
    HandedOn {
        to: i32,
        until: Ps,
    },
    /// Another task writes on its CPU: try again and again.
    Spins {
        until: Ps,
    },
    /// Another task writes; sleep until then.
    No {
        until: Ps,
    },
}

impl Lock {
    /// A task is about to write on a CPU. `busy`: whether another CPU has something to run.
    pub(crate) fn take(&mut self, task: i32, clock: Ps, cpu: u32, busy: impl Fn(u32) -> bool) -> Taken {
        if self.holder == task {
            let longest = self.waiting.front().copied().filter(|&(_, since)| clock >= since + PATIENCE);
            let Some((to, _)) = longest else {
                self.cpu = cpu;
                return Taken::Yes;
            };
            self.waiting.pop_front();
            (self.holder, self.until, self.sleeps) = (to, clock + PATIENCE, true);
            self.waiting.push_back((task, clock));
            return Taken::HandedOn { to, until: clock + PATIENCE + GRACE };
        }
        if clock >= self.until {
            self.leave(task);
            (self.holder, self.cpu) = (task, cpu);
            return Taken::Yes;
        }
        if !self.sleeps && self.cpu != cpu && busy(self.cpu) {
            return Taken::Spins { until: self.until };
        }
        if !self.waiting.iter().any(|(waits, _)| *waits == task) {
            self.waiting.push_back((task, clock));
        }
        Taken::No { until: self.until }
    }

    /// A task no longer waits.
    pub(crate) fn leave(&mut self, task: i32) {
        self.waiting.retain(|(at, _)| *at != task);
    }

    /// The holder's call is over at a time.
    pub(crate) fn ends(&mut self, until: Ps) {
        (self.until, self.sleeps) = (until, false);
    }

    /// The holder sleeps with the lock until a time.
    pub(crate) fn hold(&mut self, until: Ps) {
        (self.until, self.sleeps) = (until, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: Ps = 20_000_000;

    #[test]
    fn who_finds_the_owner_at_work_spins() {
        let mut lock = Lock::default();
        assert_eq!(lock.take(1, 0, 0, |_| true), Taken::Yes);
        lock.ends(CALL);
        assert_eq!(lock.take(2, CALL - 1, 1, |_| true), Taken::Spins { until: CALL });
        assert_eq!(lock.take(2, CALL, 1, |_| true), Taken::Yes, "it was between two calls");
        lock.ends(2 * CALL);
        assert_eq!(lock.take(1, 2 * CALL - 1, 1, |_| true), Taken::No { until: 2 * CALL }, "on the same CPU");
        assert_eq!(lock.take(1, 2 * CALL - 1, 0, |_| false), Taken::No { until: 2 * CALL }, "it is not on its CPU");
    }

    #[test]
    fn who_has_slept_for_long_is_handed_the_lock() {
        let mut lock = Lock::default();
        assert_eq!(lock.take(1, 0, 0, |_| true), Taken::Yes);
        lock.hold(3 * PATIENCE);
        assert_eq!(lock.take(2, PATIENCE, 1, |_| true), Taken::No { until: 3 * PATIENCE });
        assert_eq!(lock.take(1, 3 * PATIENCE, 0, |_| true), Taken::HandedOn { to: 2, until: 4 * PATIENCE + GRACE });
        assert_eq!(lock.take(2, 3 * PATIENCE, 1, |_| true), Taken::Yes);
        lock.ends(3 * PATIENCE + 5);
        // It has ended: any task may write.
        assert_eq!(lock.take(1, 4 * PATIENCE, 0, |_| true), Taken::Yes);
        assert_eq!(lock.take(1, 9 * PATIENCE, 0, |_| true), Taken::Yes, "no task waits");
    }

    #[test]
    fn a_task_that_has_left_is_not_given_the_lock() {
        let mut lock = Lock::default();
        assert_eq!(lock.take(1, 0, 0, |_| true), Taken::Yes);
        lock.hold(3 * PATIENCE);
        assert_eq!(lock.take(2, PATIENCE, 1, |_| true), Taken::No { until: 3 * PATIENCE });
        lock.leave(2);
        assert_eq!(lock.take(1, 9 * PATIENCE, 0, |_| true), Taken::Yes);
    }
}
