//! Waiting for congested devices: `congestion_wait`, `wait_iff_congested` (2.6.36 and 2.6.37).
//!
//! Both end when a device takes requests again or when their time is over; here no device is ever congested, so that one
//! always takes its time and the other none. Times are whole ticks. Left out: waits that end early, and that a task lets
//! others run. Checked by a test of [`super`].

use super::Waits;
use crate::clock::Ns;
use crate::kernel::{PS_PER_NS, Ps};
use crate::reclaim::World;
use mmtwin_event::vocabulary::{WritebackCongestionWait, WritebackWaitIffCongested};

/// A wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    /// Tick in which it began, and how many it lasts.
    since: u64,
    ticks: u64,
}

impl World<'_> {
    /// Begins to wait for a part of a second; until when.
    pub(super) fn congestion_wait(&mut self, part: u64) -> (Wait, Ps) {
        let (since, ticks) = (self.now() / self.jiffy(), self.kernel.reclaim.rules.hz / part);
        let until: Ns = (since + ticks) * self.jiffy();
        (Wait { since, ticks }, until * PS_PER_NS)
    }

    /// A wait has ended.
    pub(super) fn end_wait(&mut self, wait: Wait) {
        let slept = (self.now() / self.jiffy()).saturating_sub(wait.since);
        let (usec_timeout, usec_delayed) = (self.microseconds(wait.ticks), self.microseconds(slept));
        let (at, task) = (self.now(), self.task);
        let event = WritebackCongestionWait { usec_timeout, usec_delayed };
        self.kernel.probe.write(at, self.cpu, task, &event, b"");
    }

    /// A task that reclaims may have to wait for a part of a second.
    pub(super) fn task_waits(&mut self, part: u64) -> Option<(Wait, Ps)> {
        let waits = self.kernel.reclaim.rules.by_zone.map(|variant| variant.waits);
        if waits != Some(Waits::IfCongested) {
            return Some(self.congestion_wait(part));
        }
        let usec_timeout = self.microseconds(self.kernel.reclaim.rules.hz / part);
        let (at, task) = (self.now(), self.task);
        let event = WritebackWaitIffCongested { usec_timeout, usec_delayed: 0 };
        self.kernel.probe.write(at, self.cpu, task, &event, b"");
        None
    }

    fn microseconds(&self, ticks: u64) -> u32 {
        (ticks * self.jiffy() / 1000) as u32
    }
}
