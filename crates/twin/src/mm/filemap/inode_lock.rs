//! Writers of one file: `inode_lock`, `rwsem_down_write_slowpath` (4.3 to 6.12).
//!
//! Calls that write to a file exclude each other. A waiter is handed the lock once it has waited for 4 ms; before that
//! the last owner takes it again. Here a task runs for some time before another one does, so that the lock changes
//! hands once per such slice. Waiting takes no CPU time: a CPU that spins yields to the other CPUs of an emulator.
//! Checked by a test.

use crate::time::Ps;
use std::collections::VecDeque;

/// Time after which a waiter is handed the lock (`RWSEM_WAIT_TIMEOUT`): 4 ms.
const PATIENCE: Ps = 4_000_000_000;
/// Interval after which a waiter without the lock checks again: the owner may have ended.
const GRACE: Ps = 1_000_000_000;

/// A file's lock for writing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lock {
    /// Last owner, start of its ownership, and end of its last call.
    holder: i32,
    since: Ps,
    until: Ps,
    waiting: VecDeque<i32>,
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
    /// Another task writes; try again at this time.
    No {
        until: Ps,
    },
}

impl Lock {
    /// A task is about to write.
    pub(crate) fn take(&mut self, task: i32, clock: Ps) -> Taken {
        if self.holder == task {
            if clock < self.since + PATIENCE {
                return Taken::Yes;
            }
            let Some(to) = self.waiting.pop_front() else { return Taken::Yes };
            (self.holder, self.since, self.until) = (to, clock, clock + PATIENCE);
            self.waiting.push_back(task);
            return Taken::HandedOn { to, until: clock + PATIENCE + GRACE };
        }
        if clock >= self.until {
            self.leave(task);
            (self.holder, self.since) = (task, clock);
            return Taken::Yes;
        }
        if !self.waiting.contains(&task) {
            self.waiting.push_back(task);
        }
        Taken::No { until: self.until.max(self.since + PATIENCE) + GRACE }
    }

    /// A task no longer waits.
    pub(crate) fn leave(&mut self, task: i32) {
        self.waiting.retain(|at| *at != task);
    }

    /// The holder has it until a time.
    pub(crate) fn hold(&mut self, until: Ps) {
        self.until = until;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_goes_round() {
        let mut lock = Lock::default();
        assert_eq!(lock.take(1, 0), Taken::Yes);
        lock.hold(3 * PATIENCE);
        assert_eq!(lock.take(2, PATIENCE), Taken::No { until: 3 * PATIENCE + GRACE });
        // The first owner has held it for long enough.
        assert_eq!(lock.take(1, 3 * PATIENCE), Taken::HandedOn { to: 2, until: 4 * PATIENCE + GRACE });
        assert_eq!(lock.take(2, 3 * PATIENCE), Taken::Yes);
        lock.hold(3 * PATIENCE + 5);
        // It has ended: any task may write.
        assert_eq!(lock.take(1, 4 * PATIENCE), Taken::Yes);
        assert_eq!(lock.take(1, 9 * PATIENCE), Taken::Yes, "no task waits");
    }

    #[test]
    fn a_task_that_has_left_is_not_given_the_lock() {
        let mut lock = Lock::default();
        assert_eq!(lock.take(1, 0), Taken::Yes);
        lock.hold(3 * PATIENCE);
        assert_eq!(lock.take(2, PATIENCE), Taken::No { until: 3 * PATIENCE + GRACE });
        lock.leave(2);
        assert_eq!(lock.take(1, 3 * PATIENCE), Taken::Yes);
    }
}
