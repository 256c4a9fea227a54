//! A contended cache line: one server that passes the line from core to core.
//!
//! Models the price of a locked read-modify-write (`lock xadd` and the like) on one line that many CPUs contend for:
//! the operations are served one at a time, each needs the line in its own core first, and a CPU that waits does
//! nothing else (such an operation cannot overlap with another one of the same thread). So a line is a closed queue: a
//! number of customers, a service time, and the time each spends elsewhere between two operations.
//!
//! Two forms that share the service time: [`response`] solves the mean values of the closed queue, [`Line`] serves
//! single operations in the order in which they arrive.
//!
//! Not modelled: arbitration that prefers near cores beyond the siblings of one, retries of compare-and-swap loops, and
//! what other traffic does to the interconnect.
//!
//! Validated: both forms agree (tests), the saturated form is the textbook bound N S - Z; measured curves of `lock
//! xadd` on Skylake and Ice Lake clients are flat in operations per second from 2 to 4 cores, as here.

/// Transfer time of a line from another core, by the distance of that core.
#[derive(Clone, Debug, PartialEq)]
pub struct HandOff {
    /// Hardware threads per core, at least 1.
    pub threads_per_core: u32,
    /// Nanoseconds between two threads of one core.
    pub sibling_ns: f64,
    /// Other cores as one core sees them: (number of cores, nanoseconds), in any order.
    pub cores: Vec<(u32, f64)>,
}

impl HandOff {
    /// Nanoseconds per operation of a line that all threads of all cores contend for all the time.
    ///
    /// The next core is any other one with equal chance. A miss of one thread fetches the line for its siblings too
    /// (they share the core's miss buffers), so all waiting threads of a core are served before the line moves on.
    pub fn service_ns(&self) -> f64 {
        let others: f64 = self.cores.iter().map(|&(n, _)| f64::from(n)).sum();
        let way: f64 = self.cores.iter().map(|&(n, ns)| f64::from(n) * ns).sum();
        let threads = f64::from(self.threads_per_core.max(1));
        let between = if others > 0.0 { way / others } else { self.sibling_ns };
        (between + (threads - 1.0) * self.sibling_ns) / threads
    }
}

/// Customers of a line that behave alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Customers {
    /// How many, as a mean: a thread that has half a CPU counts half.
    pub count: f64,
    /// Operations on the line per round.
    pub operations: f64,
    /// Nanoseconds per round spent elsewhere.
    pub elsewhere_ns: f64,
}

/// Mean nanoseconds from the start to the end of an operation, for a service time in nanoseconds.
///
/// Saturated, the response is the time at which all rounds together issue one operation per service time. Otherwise it
/// is that of an open queue with steady service, S (1 + u / 2 / (1 - u)) cut off at 2 S, where u is the utilisation
/// that undelayed customers would cause: few customers cannot queue much behind each other.
pub fn response(service_ns: f64, customers: &[Customers]) -> f64 {
    let asked = |response: f64| -> f64 {
        let of = |c: &Customers| c.count * c.operations / (c.operations * response + c.elsewhere_ns);
        customers.iter().filter(|c| c.operations > 0.0 && c.count > 0.0).map(of).sum()
    };
    let utilisation = (asked(service_ns) * service_ns).min(1.0);
    let unsaturated = service_ns / (1.0 - utilisation / 2.0);
    let most: f64 = customers.iter().map(|c| c.count).sum::<f64>() * service_ns;
    let bounded = unsaturated.min(most.max(service_ns));
    if asked(bounded) * service_ns <= 1.0 {
        return bounded;
    }
    // The rate of operations falls with the response and is convex, so Newton's steps from below never pass the root.
    let mut low = bounded;
    for _ in 0..64 {
        let slope = |c: &Customers| {
            let round = c.operations * low + c.elsewhere_ns;
            c.count * c.operations * c.operations / (round * round)
        };
        let falls: f64 = customers.iter().filter(|c| c.operations > 0.0 && c.count > 0.0).map(slope).sum();
        let step = (asked(low) - 1.0 / service_ns) / falls;
        low += step.max(0.0);
        if step <= low * 1e-12 {
            break;
        }
    }
    low
}

/// A line that serves single operations first come, first served. Times are picoseconds.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    service: u64,
    free_at: u64,
    served: u64,
}

impl Line {
    /// An idle line with a service time in nanoseconds.
    pub fn new(service_ns: f64) -> Line {
        Line { service: (service_ns * 1e3) as u64, free_at: 0, served: 0 }
    }

    /// Serves an operation that needs the line at `now`; returns when it ends. Calls must come in order of `now`.
    #[inline]
    pub fn serve(&mut self, now: u64) -> u64 {
        self.free_at = self.free_at.max(now) + self.service;
        self.served += 1;
        self.free_at
    }

    /// Operations served.
    pub fn served(&self) -> u64 {
        self.served
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Mean response of a closed queue of customers that all do the same, by serving single operations.
    fn served(service_ns: f64, customers: usize, elsewhere_ns: u64) -> f64 {
        let mut line = Line::new(service_ns);
        let mut arrivals: std::collections::VecDeque<u64> = (0..customers as u64).collect();
        let (mut sum, rounds) = (0, 200 * customers);
        for round in 0..rounds {
            // Equal times elsewhere keep the order.
            let Some(at) = arrivals.pop_front() else { break };
            let done = line.serve(at);
            sum += if round >= rounds / 2 { done - at } else { 0 };
            arrivals.push_back(done + elsewhere_ns * 1000);
        }
        assert_eq!(line.served(), rounds as u64);
        sum as f64 / (rounds - rounds / 2) as f64 / 1e3
    }

    proptest! {
        #[test]
        fn saturated_both_forms_agree(service in 10u32..200, n in 2usize..100, load in 2.0..20.0f64) {
            let service = f64::from(service);
            let elsewhere = (n as f64 * service / load) as u64;
            let customers = [Customers { count: n as f64, operations: 1.0, elsewhere_ns: elsewhere as f64 }];
            let (mean, single) = (response(service, &customers), served(service, n, elsewhere));
            let textbook = (n as f64 * service - elsewhere as f64).max(service);
            prop_assert!((single - textbook).abs() <= 0.02 * textbook + 1.0, "{} for {}", single, textbook);
            prop_assert!(mean >= single * 0.98 && mean <= single.max(2.0 * service) * 1.02, "{} for {}", mean, single);
        }

        #[test]
        fn responses_grow_with_customers(service in 1.0..300.0f64, counts in prop::collection::vec(0.0..50.0f64, 1..5)) {
            let of = |scale: f64| -> Vec<Customers> {
                let one = |(i, &count): (usize, &f64)| {
                    Customers { count: count * scale, operations: 1.0 + i as f64, elsewhere_ns: 100.0 * i as f64 }
                };
                counts.iter().enumerate().map(one).collect()
            };
            let (less, more) = (response(service, &of(1.0)), response(service, &of(1.5)));
            prop_assert!(less >= service * (1.0 - 1e-9) && less <= more * (1.0 + 1e-9));
        }
    }

    #[test]
    fn few_customers_hardly_wait() {
        let one = |count| [Customers { count, operations: 1.0, elsewhere_ns: 10_000.0 }];
        assert_eq!(response(50.0, &one(1.0)), 50.0);
        assert!(response(50.0, &one(20.0)) < 55.0);
        assert_eq!(response(50.0, &[]), 50.0);
    }

    #[test]
    fn a_line_moves_from_core_to_core_and_serves_siblings_on_the_way() {
        let cores = vec![(7, 35.0), (8, 200.0)];
        let between = (7.0 * 35.0 + 8.0 * 200.0) / 15.0;
        let service =
            |threads_per_core| HandOff { threads_per_core, sibling_ns: 8.0, cores: cores.clone() }.service_ns();
        assert_eq!(service(1), between);
        assert_eq!(service(2), (between + 8.0) / 2.0);
        assert_eq!(HandOff { threads_per_core: 2, sibling_ns: 8.0, cores: vec![] }.service_ns(), 8.0);
    }
}
