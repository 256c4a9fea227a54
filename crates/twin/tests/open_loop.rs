//! Accesses that arrive: latency counts from the arrival.

use crate::common::scenario::{MACHINE, access, ran, region};

#[test]
fn requests_wait_for_those_before() {
    // 100 us of work each: below that rate nothing waits, above it every request waits longer than the one before.
    let latency = |arrival: &str| {
        let text = format!(
            "{MACHINE}[[process]]\nname = \"server\"\n{}[[process.phase]]\n{}arrival = \"{arrival}\"\ncount = 1000\n",
            region("heap", 4, "anon").replace("kind", "populate = true\nkind"),
            access("heap", "pattern = \"uniform\"\nthink = \"100 us\"\n")
        );
        let run = ran(&text);
        let phase = &run.results.phases[1];
        (phase.accesses[0].latency.clone().unwrap(), phase.end - phase.start)
    };
    let (idle, took) = latency("200 us");
    // A thread that sleeps has to be woken, which takes 5 us.
    assert!((5_000.0..6_000.0).contains(&idle.mean) && (195_000_000..205_000_000).contains(&took), "{idle:?} {took}");
    let (behind, took) = latency("50 us");
    // The last of a thousand waits 50 ms.
    assert!((23e6..27e6).contains(&behind.mean) && (100_000_000..102_000_000).contains(&took), "{behind:?} {took}");
    let (random, _) = latency("200 us\"\narrivals = \"poisson");
    // Half the time it is busy: an M/D/1 queue waits half of its service time, 50 us.
    assert!((35_000.0..70_000.0).contains(&random.mean), "{random:?}");
}
