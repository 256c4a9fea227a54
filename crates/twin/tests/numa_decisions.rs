//! The twin's own events of NUMA balancing agree with the counters and the kernel's events of the same run, with the
//! figures they hold, and change nothing.

use mmtwin_event::rules::Rule;
use mmtwin_event::vocabulary::{
    NumaHintFault, NumaMapping, NumaMigrateRefused, NumaPlacement, NumaScanPeriod, NumaSearchCpu, NumaTaskMigrate,
};
use mmtwin_event::{CounterRow, Event, Kind, Sink};
use mmtwin_twin::engine::{Options, State, kinds, run};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Counters at the end, and events of all kinds.
#[derive(Default)]
struct Seen {
    counters: BTreeMap<(String, String, String), u64>,
    counts: BTreeMap<Kind, u64>,
    regions: Vec<String>,
    faults: Vec<NumaHintFault>,
    refused: Vec<NumaMigrateRefused>,
    placements: Vec<NumaPlacement>,
    periods: Vec<NumaScanPeriod>,
    compared: Vec<NumaSearchCpu>,
    searches: Vec<NumaTaskMigrate>,
}

impl Sink for Seen {
    fn event(&mut self, event: &Event<'_>) {
        *self.counts.entry(event.kind).or_default() += 1;
        match event.kind {
            Kind::NumaMapping => {
                let of: NumaMapping = event.typed();
                self.regions.push(String::from_utf8_lossy(of.region.bytes(event)).into_owned());
            }
            Kind::NumaHintFault => self.faults.push(event.typed()),
            Kind::NumaMigrateRefused => self.refused.push(event.typed()),
            Kind::NumaPlacement => self.placements.push(event.typed()),
            Kind::NumaScanPeriod => self.periods.push(event.typed()),
            Kind::NumaSearchCpu => self.compared.push(event.typed()),
            Kind::NumaTaskMigrate => self.searches.push(event.typed()),
            _ => {}
        }
    }

    fn counters(&mut self, row: &CounterRow<'_>) {
        for (name, value) in row.names.iter().zip(row.values) {
            let key = (row.source.to_string(), row.key.to_string(), name.clone());
            value.map(|value| self.counters.insert(key, value));
        }
    }
}

impl Seen {
    fn vmstat(&self, name: &str) -> u64 {
        self.counters[&("vmstat".to_string(), String::new(), name.to_string())]
    }

    fn count(&self, kind: Kind) -> u64 {
        self.counts.get(&kind).copied().unwrap_or(0)
    }
}

/// Three threads that begin on node 0 with memory on node 1, beside a process that leaves few pages free there.
fn seen(release: &str, seed: u64, ballast: u32, sharing: &str, events: &str) -> Seen {
    let text = format!(
        "[machine]\nname = \"m\"\ndistance = [[10, 20], [20, 10]]\n[[machine.node]]\ncpus = \"0-1\"\nmemory = \"256 MiB\"\n\
         [[machine.node]]\ncpus = \"2-3\"\nmemory = \"256 MiB\"\n[kernel]\nrelease = \"{release}\"\nthp = \"never\"\n\
         [kernel.numa_balancing]\nscan_delay_ms = 50\nscan_period_min_ms = 50\nscan_size_mb = 2\n\
         [[process]]\nname = \"filler\"\nstart_node = 1\n[[process.region]]\nname = \"ballast\"\nsize = \"{ballast} MiB\"\n\
         populate = true\npopulate_policy = \"bind:0\"\n[[process.phase]]\nduration = \"2 s\"\n\
         [[process]]\nname = \"pair\"\nthreads = 3\nstart_node = 0\nstart = \"100 ms\"\n[[process.region]]\nname = \"heap\"\n\
         size = \"2 MiB\"\nsharing = \"{sharing}\"\npopulate = true\npopulate_policy = \"bind:1\"\n[[process.phase]]\n\
         duration = \"1500 ms\"\n[[process.phase.access]]\nregion = \"heap\"\npattern = \"uniform\"\nwrite = 0.5\n\
         think = \"100 us\"\n[run]\nseed = {seed}\nsample = \"1 s\"\nevents = [{events}]\n"
    );
    let scenario =
        mmtwin_scenario::parse("test", &text, Path::new(""), &[]).unwrap_or_else(|faults| panic!("{faults}"));
    let (state, events) = (State::default(), kinds(&scenario));
    let mut seen = Seen::default();
    let options = Options { state, explicit: false, trace: None, events, progress: &mut |_| {} };
    run(&scenario, options, &mut seen).unwrap_or_else(|error| panic!("{error}"));
    seen
}

const BUNDLES: [&str; 8] = ["3.13", "2014-v1", "2014-v4", "merged-3.15", "4.17", "4.17-staggered", "6.1", "6.12"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 0, ..ProptestConfig::default() })]

    #[test]
    fn decisions_agree_with_what_happened(
        release in prop::sample::select(BUNDLES.to_vec()),
        seed in 1..1000u64,
        full in any::<bool>(),
        sharing in prop::sample::select(vec!["shared", "private"]),
    ) {
        let ballast = if full { 248 } else { 8 };
        let of = seen(release, seed, ballast, sharing, "\"mmtwin:*\", \"sched:*\", \"migrate:*\"");
        let quiet = seen(release, seed, ballast, sharing, "");
        prop_assert_eq!(&of.counters, &quiet.counters, "events change nothing");
        prop_assert!(quiet.counts.is_empty());

        let modern = release.starts_with("6.");
        let pages = |wanted: fn(&NumaHintFault) -> bool| -> u64 {
            of.faults.iter().filter(|fault| wanted(fault)).map(|fault| u64::from(fault.nr_pages)).sum()
        };
        prop_assert_eq!(of.faults.len() as u64, of.vmstat("numa_hint_faults"));
        let local = of.faults.iter().filter(|fault| fault.src_nid == fault.dst_nid).count() as u64;
        prop_assert_eq!(local, of.vmstat("numa_hint_faults_local"));
        prop_assert_eq!(pages(|fault| fault.migrated), of.vmstat("numa_pages_migrated"));
        let refused = of.faults.iter().filter(|fault| fault.wanted && !fault.migrated).count();
        prop_assert_eq!(refused, of.refused.len(), "a page that cannot follow has a reason");
        // A page may wait for its list in the batch of a CPU.
        let unmovable = |of: &&NumaMigrateRefused| Rule::of(of.rule) == Some(Rule::Unmovable);
        prop_assert!(full || refused == of.refused.iter().filter(unmovable).count());

        for fault in &of.faults {
            let (src, dst) = (fault.src_nid, fault.dst_nid);
            let holds = match Rule::of(fault.rule) {
                Some(Rule::Local) => src == dst && !fault.wanted,
                Some(Rule::TwoStage) => fault.last_nid != dst && !fault.wanted,
                Some(Rule::Private | Rule::NoGroup | Rule::SrcInactive | Rule::NotDeferred) => fault.wanted,
                Some(Rule::FirstScans) => fault.wanted && (fault.preferred_nid < 0 || fault.scan_seq <= 4),
                Some(Rule::TripleCpu) => fault.cpu_dst > 3 * fault.cpu_src && fault.wanted,
                Some(Rule::ThreeQuarters) => {
                    (fault.cpu_dst * fault.mem_src * 3 > fault.cpu_src * fault.mem_dst * 4) == fault.wanted
                }
                Some(Rule::BothActive) => (fault.mem_dst < fault.mem_src * 3 / 4) == fault.wanted,
                Some(Rule::DstInactive | Rule::Deferred | Rule::NoMemory | Rule::OtherPolicy) => !fault.wanted,
                _ => false,
            };
            prop_assert!(holds, "{release}: {fault:?}");
            prop_assert!(fault.migrated == (fault.pfn != fault.new_pfn) && (fault.wanted || !fault.migrated));
        }
        for refused in &of.refused {
            prop_assert!(Rule::of(refused.rule) != Some(Rule::NodeFull) || refused.have <= refused.limit, "{refused:?}");
        }
        for period in &of.periods {
            let faster = Rule::of(period.rule) == Some(Rule::ScanFaster);
            prop_assert!(!faster || period.period <= period.old, "{period:?}");
        }
        for placement in &of.placements {
            let chosen = Rule::of(placement.rule) == Some(Rule::MostFaults) && modern;
            prop_assert!(!chosen || placement.nid == placement.best_nid && placement.best_faults > 0, "{placement:?}");
        }
        // A search that ends in a move or swap has compared a CPU with that result, or taken an idle one at once.
        let ended = |rule: Rule| of.searches.iter().filter(|search| Rule::of(search.rule) == Some(rule)).count() as u64;
        prop_assert_eq!(ended(Rule::MoveTask), of.count(Kind::SchedMoveNuma));
        prop_assert_eq!(ended(Rule::SwapTasks), of.count(Kind::SchedSwapNuma));
        if modern {
            prop_assert_eq!(ended(Rule::Stick), of.count(Kind::SchedStickNuma));
            let swaps = of.compared.iter().filter(|cpu| Rule::of(cpu.rule) == Some(Rule::Swap));
            prop_assert!(swaps.clone().all(|cpu| cpu.imp >= 30 && cpu.imp > cpu.best_imp + 15));
        }
    }
}

#[test]
fn every_region_is_named_once() {
    let of = seen("6.1", 1, 8, "private", "\"mmtwin:numa_mapping\", \"mmtwin:numa_hint_fault\"");
    let named: BTreeSet<&String> = of.regions.iter().collect();
    assert_eq!(named.len(), of.regions.len(), "{:?}", of.regions);
    assert!(["filler/ballast", "pair/heap"].iter().all(|name| named.contains(&name.to_string())), "{named:?}");
    assert_eq!(of.counts.len(), 2, "only what is asked for");
}
