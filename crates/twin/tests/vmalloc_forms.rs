//! The stress tests as single events and over rates: one set of rules, two ways to run them.

use mmtwin_event::vocabulary::{AllocVmapArea, FreeVmapAreaNoflush, Kind, PurgeVmapAreaLazy};
use mmtwin_event::{Event, Sink};
use mmtwin_twin::probe::Probe;
use mmtwin_twin::vmalloc::params::{Counters, Machine, PurgeAccounting, Rules, TlbFlush, Workload};
use mmtwin_twin::vmalloc::{Outcome, Params, stress, stress_over_rates};

fn params(cpus: u32, rules: Rules) -> Params {
    Params {
        machine: Machine {
            online_cpus: cpus,
            possible_cpus: cpus,
            line_ns: 60.0,
            purge_local_us: 0.2,
            worker_share: 0.9,
            slice_us: 300.0,
            wake_us: 100.0,
            tlb_flush: TlbFlush::Ipi { base_us: 2.0, per_cpu_us: 0.1 },
        },
        // A short limit makes many passes of few areas.
        rules: Rules { lazy_max: Some(2048), nodes: rules.nodes, ..rules },
        workload: Workload { threads: cpus, tests: 1, loops: 6000, repeats: 1, pages: 1, loop_us: [0.9, 1.0, 11.8] },
    }
}

fn single(params: &Params) -> Outcome {
    stress(params, &mut Probe::off(), 7).unwrap()
}

fn near(name: &str, single: f64, rates: f64, factor: f64) {
    assert!(single / rates < factor && rates / single < factor, "{name}: {single} as events, {rates} over rates");
}

#[test]
fn both_forms_agree() {
    for rules in [Rules::V6_11, Rules::V6_12, Rules::V6_18, Rules { counters: Counters::Aligned, ..Rules::V6_11 }] {
        for cpus in [2, 12, 40] {
            let params = params(cpus, rules);
            let (events, rates) = (single(&params), stress_over_rates(&params, 7).unwrap());
            assert_eq!(events.freed, rates.freed, "{cpus} CPUs, {rules:?}");
            near("duration", events.ran_ns as f64, rates.ran_ns as f64, 1.15);
            near("us per area", events.us_per_area().unwrap(), rates.us_per_area().unwrap(), 1.25);
            assert!(events.passes_again > 0 && events.passes_again < events.passes, "{cpus} CPUs, {rules:?}");
            near("mean latency", events.calls.mean_us(), rates.calls.mean_us(), 2.0);
        }
    }
}

#[test]
fn every_area_freed_is_purged_or_still_lazy() {
    for rules in [Rules::V6_1, Rules::V6_11, Rules::V6_12, Rules::V6_18] {
        let mut params = params(3, rules);
        (params.workload.tests, params.workload.loops) = (5, 500);
        let outcome = single(&params);
        // 500 and 1,000 areas, 15,000 kept ones and their array, per thread.
        assert_eq!(outcome.freed, 3 * 16_501, "{rules:?}");
        assert!(outcome.purged <= outcome.freed && outcome.purged > 0);
        assert_eq!(single(&params), outcome, "the same again");
    }
}

#[test]
fn batched_accounting_shortens_calls() {
    let before = single(&params(24, Rules::V6_11)).calls.mean_us();
    let after = single(&params(24, Rules::V6_12)).calls.mean_us();
    assert!(after < before / 2.0, "{before} us before, {after} after");
}

#[test]
fn an_override_of_nodes_and_limit_counts() {
    let mut params = params(8, Rules { nodes: Some(3), ..Rules::V6_12 });
    assert_eq!(single(&params).nr_purged.len(), 3);
    let low = single(&params).passes;
    params.rules.lazy_max = Some(20_000);
    assert!(single(&params).passes < low);
}

#[test]
fn extremes_end() {
    let mut params = params(3, Rules::V6_11);
    (params.rules.lazy_max, params.machine.wake_us) = (Some(0), 0.0);
    params.machine.tlb_flush = TlbFlush::Broadcast { flush_us: 0.0 };
    (params.workload.tests, params.workload.loops) = (5, 100);
    for share in [1e-3, 1.0] {
        params.machine.worker_share = share;
        let (events, rates) = (single(&params), stress_over_rates(&params, 7).unwrap());
        assert_eq!((events.freed, rates.freed), (3 * 15_301, 3 * 15_301));
        assert!(events.passes > 0 && rates.passes > 0);
    }
    // More threads than CPUs share them; only rates can.
    params.workload.threads = 9;
    assert_eq!(stress_over_rates(&params, 7).unwrap().freed, 9 * 15_301);
}

#[derive(Default)]
struct Seen {
    kinds: [u64; 3],
    lazy_max: u64,
    over: u64,
    last_lazy: u64,
    purged: u64,
    empty: u64,
}

impl Sink for Seen {
    fn event(&mut self, event: &Event<'_>) {
        match event.kind {
            Kind::AllocVmapArea => {
                let e: AllocVmapArea = event.typed();
                assert_eq!((e.failed, e.align, e.va_start % 4096, e.size % 4096), (0, 1, 0, 0));
                self.kinds[0] += 1;
            }
            Kind::FreeVmapAreaNoflush => {
                let e: FreeVmapAreaNoflush = event.typed();
                self.kinds[1] += 1;
                self.lazy_max = e.nr_lazy_max;
                self.over += u64::from(e.nr_lazy > e.nr_lazy_max);
                self.last_lazy = e.nr_lazy;
            }
            _ => {
                let e: PurgeVmapAreaLazy = event.typed();
                assert!(self.over > 0, "a pass before the limit was crossed");
                assert_eq!(e.num_purged == 0, (e.start, e.end) == (u64::MAX, 0));
                self.kinds[2] += 1;
                self.purged += u64::from(e.num_purged);
                self.empty += u64::from(e.num_purged == 0);
            }
        }
    }
}

#[test]
fn the_trace_agrees_with_the_outcome() {
    for purge_accounting in [PurgeAccounting::PerArea, PurgeAccounting::Batched] {
        let mut params = params(4, Rules { purge_accounting, ..Rules::V6_12 });
        (params.workload.tests, params.workload.loops) = (5, 500);
        let kinds = [Kind::AllocVmapArea, Kind::FreeVmapAreaNoflush, Kind::PurgeVmapAreaLazy];
        let (mut probe, mut seen) = (Probe::new(kinds), Seen::default());
        let outcome = stress(&params, &mut probe, 3).unwrap();
        probe.drain(u64::MAX, &mut seen);
        assert_eq!(seen.kinds, [outcome.freed, outcome.freed, outcome.passes]);
        assert_eq!((seen.purged, seen.lazy_max), (outcome.purged, 2048));
        assert!(seen.over > 0 && seen.last_lazy > 0);
    }
    let mut probe = Probe::new([Kind::AllocVmapArea, Kind::FreeVmapAreaNoflush, Kind::PurgeVmapAreaLazy]);
    stress(&params(4, Rules::V6_1), &mut probe, 3).unwrap();
    assert_eq!(probe.written(), 0, "6.1 has no such events");
}

#[test]
fn impossible_parameters_are_refused() {
    let good = params(4, Rules::V6_12);
    let refused = |change: fn(&mut Params), message: &str| {
        let mut bad = good.clone();
        change(&mut bad);
        assert_eq!(stress(&bad, &mut Probe::off(), 1).unwrap_err().to_string(), message);
    };
    refused(|p| p.machine.online_cpus = 0, "online_cpus: 0 is not from 1 to 65,536");
    refused(|p| p.machine.possible_cpus = 3, "possible_cpus: 3 is not at least the CPUs online");
    refused(|p| p.machine.line_ns = f64::NAN, "line_ns: NaN is not from 0.001 to 1e9");
    refused(|p| p.machine.worker_share = 0.0, "worker_share: 0 is not in (0, 1]");
    refused(|p| p.rules.nodes = Some(0), "nodes: 0 is not from 1 to 65,536");
    refused(|p| p.workload.threads = 5, "threads: 5 is not at most one per CPU online");
    refused(|p| p.workload.tests = 9, "tests: 9 is not a mask of the bits 1, 2 and 4");
}
