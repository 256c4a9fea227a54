//! Waits for congested devices (2.6.37 to 5.15), kswapd apart from everybody else.

use crate::tasks::Task;
use mmtwin_event::vocabulary::{WritebackCongestionWait, WritebackWaitIffCongested};
use mmtwin_event::{Event, Kind};

/// Sums of one kind of wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Waits, also those that did not sleep.
    pub count: u64,
    /// Microseconds slept.
    pub delayed_us: u64,
    /// Waits that slept the whole time-out.
    pub full: u64,
}

/// Waits by who waited and how.
#[derive(Clone, Debug, Default)]
pub struct Congestion {
    waits: [[Waits; 2]; 2],
    /// All but kswapd, by name.
    pub by_name: crate::waits::Waits,
}

impl Congestion {
    /// Waits of kswapd or of all others, conditional on congestion or not.
    pub fn of(&self, kswapd: bool, conditional: bool) -> Waits {
        self.waits[usize::from(kswapd)][usize::from(conditional)]
    }

    /// Takes one wait.
    pub fn event(&mut self, ev: &Event<'_>, task: &Task) {
        let (conditional, timeout, delayed) = match ev.kind {
            Kind::WritebackCongestionWait => {
                let e: WritebackCongestionWait = ev.typed();
                (false, e.usec_timeout, e.usec_delayed)
            }
            _ => {
                let e: WritebackWaitIffCongested = ev.typed();
                (true, e.usec_timeout, e.usec_delayed)
            }
        };
        let sums = &mut self.waits[usize::from(task.kswapd)][usize::from(conditional)];
        sums.count += 1;
        sums.delayed_us += u64::from(delayed);
        sums.full += u64::from(delayed >= timeout);
        self.by_name.add(task, u64::from(delayed) * 1000);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Analysis;
    use crate::testing::EventBuilder;
    use mmtwin_event::Sink;

    #[test]
    fn waits_are_full_from_the_timeout_on() {
        let mut analysis = Analysis::default();
        for (kind, comm, delayed) in [
            (Kind::WritebackCongestionWait, &b"kswapd0"[..], 100_000),
            (Kind::WritebackCongestionWait, b"kswapd0", 48_000),
            (Kind::WritebackWaitIffCongested, b"kswapd", 0),
            (Kind::WritebackWaitIffCongested, b"dd", 104_000),
        ] {
            let made = EventBuilder::new(kind).pid(comm.len() as i32).comm(comm);
            analysis.event(&made.set("usec_timeout", 100_000).set("usec_delayed", delayed).event());
        }
        assert_eq!(analysis.congestion.of(true, false), Waits { count: 2, delayed_us: 148_000, full: 1 });
        assert_eq!(analysis.congestion.of(false, true), Waits { count: 2, delayed_us: 104_000, full: 1 });
        assert_eq!(analysis.congestion.of(false, false), Waits::default());
    }
}
