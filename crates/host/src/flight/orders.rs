//! Which recordings are to be written: those that somebody asks for, at once, and one for each incident, when the time
//! after it is over.

use super::Options;
use super::control::Request;
use super::watch::Cause;
use std::collections::VecDeque;
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;

/// A recording that is to be written.
pub struct Order {
    /// Why.
    pub cause: Cause,
    /// Of what time on, in nanoseconds of the trace clock.
    pub from: u64,
    /// Who waits for it; `None`: a condition asked.
    pub requests: Option<Vec<Request>>,
}

/// What is ordered. Times are nanoseconds of the trace clock.
pub struct Orders {
    before: u64,
    after: u64,
    cool_down: u64,
    /// That of a condition, and when it is due.
    pending: Option<(u64, Order)>,
    /// To be written now.
    waiting: VecDeque<Order>,
    /// That of a condition is being written.
    busy: bool,
    /// Until then conditions order nothing.
    cool: u64,
    /// Conditions that held meanwhile.
    ignored: u64,
}

impl Orders {
    /// Nothing is ordered yet.
    pub fn new(options: &Options) -> Orders {
        let [before, after, cool_down] =
            [options.before, options.after, options.cool_down].map(|time| time.as_nanos() as u64);
        let (pending, waiting) = Default::default();
        Orders { before, after, cool_down, pending, waiting, busy: false, cool: 0, ignored: 0 }
    }

    /// Somebody asks for a recording of what there is now, whatever conditions ordered. Several who ask before one is
    /// begun get the same.
    pub fn ask(&mut self, name: &'static str, text: &str, requests: Vec<Request>, now: u64) {
        match self.waiting.iter_mut().find_map(|order| order.requests.as_mut()) {
            Some(others) => others.extend(requests),
            None => {
                let cause = Cause { name, text: text.into() };
                let from = now.saturating_sub(self.before);
                self.waiting.push_back(Order { cause, from, requests: Some(requests) });
            }
        }
    }

    /// A condition holds. Returns what the user is told, for the first one that orders nothing too.
    pub fn held(&mut self, cause: Cause, now: u64) -> Option<String> {
        let is_written = self.busy || self.pending.is_some() || self.waiting.iter().any(|o| o.requests.is_none());
        let text = cause.text.clone();
        if !is_written && now >= self.cool {
            let order = Order { cause, from: now.saturating_sub(self.before), requests: None };
            self.pending = Some((now.saturating_add(self.after), order));
            return Some(format!("{text}: a recording is written in {:?}", Duration::from_nanos(self.after)));
        }
        self.ignored += 1;
        match (self.ignored, is_written) {
            (2.., _) => None,
            (_, true) => Some(format!("{text}: a recording of this time is written already")),
            (_, false) => {
                let left = Duration::from_secs((self.cool - now).div_ceil(SECOND));
                Some(format!("{text}: the last recording was too short ago for another (--cool-down, {left:?} left)"))
            }
        }
    }

    /// When something is to be done: 0 at once, `u64::MAX` never.
    pub fn due(&self) -> u64 {
        let pending = self.pending.as_ref().map_or(u64::MAX, |(due, _)| *due);
        if self.waiting.is_empty() { pending } else { 0 }
    }

    /// What is to be written now, whose [`Orders::written`] follows.
    pub fn next(&mut self, now: u64) -> Option<Order> {
        if self.pending.as_ref().is_some_and(|(due, _)| now >= *due) {
            self.waiting.extend(self.pending.take().map(|(_, order)| order));
        }
        let order = self.waiting.pop_front()?;
        self.busy = order.requests.is_none();
        Some(order)
    }

    /// It was written, or could not be.
    pub fn written(&mut self, order: &Order, now: u64) {
        if order.requests.is_none() {
            self.busy = false;
            self.cool = now.saturating_add(self.cool_down);
        }
    }

    /// What was not told of conditions, when the time is over in which they ordered nothing.
    pub fn untold(&mut self, now: u64) -> Option<String> {
        if self.ignored == 0 || self.busy || self.pending.is_some() || now < self.cool {
            return None;
        }
        let more = std::mem::take(&mut self.ignored) - 1;
        (more > 0).then(|| format!("conditions held {more} more times, for which no recording was written"))
    }

    /// The recorder ends: what is pending is written now.
    pub fn hurry(&mut self) {
        self.waiting.extend(self.pending.take().map(|(_, order)| order));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn orders() -> Orders {
        Orders {
            before: 10 * SECOND,
            after: 5 * SECOND,
            cool_down: 60 * SECOND,
            pending: None,
            waiting: VecDeque::new(),
            busy: false,
            cool: 0,
            ignored: 0,
        }
    }

    fn held(orders: &mut Orders, second: u64) -> Option<String> {
        orders.held(Cause { name: "oom", text: "it happened".into() }, second * SECOND)
    }

    #[test]
    fn one_incident_orders_one_recording() {
        let mut orders = orders();
        assert_eq!((orders.due(), orders.next(0).is_none()), (u64::MAX, true));
        assert_eq!(held(&mut orders, 100).unwrap(), "it happened: a recording is written in 5s");
        assert_eq!((orders.due(), orders.next(104 * SECOND).is_none()), (105 * SECOND, true));
        assert_eq!(held(&mut orders, 101).unwrap(), "it happened: a recording of this time is written already");
        assert_eq!(held(&mut orders, 102), None, "the first is told, the others are counted");
        let order = orders.next(106 * SECOND).unwrap();
        assert_eq!((order.from, order.cause.name, orders.due()), (90 * SECOND, "oom", u64::MAX));
        assert_eq!(held(&mut orders, 107), None);
        orders.written(&order, 108 * SECOND);
        assert_eq!((held(&mut orders, 167), orders.untold(167 * SECOND)), (None, None));
        let told = "conditions held 3 more times, for which no recording was written";
        assert_eq!((orders.untold(168 * SECOND).as_deref(), orders.untold(168 * SECOND)), (Some(told), None));
        assert!(held(&mut orders, 168).unwrap().ends_with("in 5s"));
        orders.hurry();
        let order = orders.next(169 * SECOND).unwrap();
        orders.written(&order, 170 * SECOND);
        let cooling = held(&mut orders, 171).unwrap();
        assert!(cooling.ends_with("too short ago for another (--cool-down, 59s left)"), "{cooling}");
        assert_eq!(orders.untold(230 * SECOND), None, "all of them were told");
    }

    #[test]
    fn who_asks_gets_a_recording_at_once() {
        let mut orders = orders();
        held(&mut orders, 100);
        orders.ask("snap", "mmtwin snap", Vec::new(), 101 * SECOND);
        orders.ask("signal", "SIGUSR1", Vec::new(), 102 * SECOND);
        assert_eq!(orders.due(), 0);
        let order = orders.next(102 * SECOND).unwrap();
        assert_eq!((order.cause.name, order.from), ("snap", 91 * SECOND));
        orders.written(&order, 103 * SECOND);
        assert!(orders.next(104 * SECOND).is_none(), "both get the same");
        assert!(orders.next(105 * SECOND).is_some_and(|order| order.requests.is_none()));
        orders.ask("snap", "mmtwin snap", Vec::new(), 101 * SECOND);
        assert!(orders.next(106 * SECOND).is_some(), "also while one of a condition is written");
    }
}
