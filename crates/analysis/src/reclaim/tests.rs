use super::places::PLACES;
use super::*;
use crate::Analysis;
use crate::testing::EventBuilder;
use mmtwin_event::Sink;

const DD: (i32, &[u8]) = (7, b"dd");
const KSWAPD: (i32, &[u8]) = (3, b"kswapd0");

fn made(kind: Kind, who: (i32, &'static [u8]), us: u64) -> EventBuilder {
    EventBuilder::new(kind).pid(who.0).comm(who.1).at(us * 1000 + 999)
}

fn begin(kind: Kind, who: (i32, &'static [u8]), us: u64, order: i64) -> EventBuilder {
    made(kind, who, us).set("order", order)
}

fn shrink(who: (i32, &'static [u8]), us: u64, scanned: i64, reclaimed: i64) -> EventBuilder {
    let made = made(Kind::MmVmscanLruShrinkInactive, who, us).set("nid", 1).set("priority", 12).set("flags", 10);
    made.set("nr_scanned", scanned).set("nr_reclaimed", reclaimed)
}

fn analysis(events: &[EventBuilder]) -> Analysis {
    let mut analysis = Analysis::default();
    events.iter().for_each(|made| analysis.event(&made.event()));
    analysis
}

fn process(analysis: &Analysis, pid: i32) -> &Process {
    analysis.reclaim.process(analysis.tasks.get(pid).unwrap()).unwrap()
}

#[test]
fn events_belong_to_the_reclaim_their_task_is_in() {
    let a = analysis(&[
        begin(Kind::MmVmscanDirectReclaimBegin, DD, 10, 3),
        shrink(KSWAPD, 11, 100, 40),
        shrink(DD, 12, 32, 8),
        made(Kind::MmVmscanDirectReclaimEnd, DD, 35).set("nr_reclaimed", 9),
        shrink(DD, 36, 5, 5),
        begin(Kind::MmVmscanMemcgReclaimBegin, DD, 40, 0),
        shrink(DD, 41, 64, 1),
        made(Kind::MmVmscanMemcgReclaimEnd, DD, 43).set("nr_reclaimed", 1),
    ]);
    let sums = |context| {
        let totals = a.reclaim.context(context);
        (totals.begins, totals.inactive.scanned.all, totals.inactive.reclaimed.file, totals.durations().sum)
    };
    assert_eq!(sums(Context::Direct), (1, 32, 8, 25_000));
    assert_eq!(sums(Context::Kswapd), (0, 100, 40, 0));
    assert_eq!(sums(Context::Memcg), (1, 64, 1, 3_000));
    assert_eq!(sums(Context::Other), (0, 5, 5, 0));
    assert_eq!(a.reclaim.context(Context::Direct).reclaimed_by_end, 9);
    let dd = process(&a, 7);
    assert_eq!((dd.begun(Context::Direct), dd.begun(Context::Memcg)), (1, 1));
    assert_eq!((dd.scanned.all, dd.reclaimed.all, dd.direct_us, dd.stalls.sum), (101, 14, 25, 28_000));
    assert_eq!(dd.direct_orders.iter().collect::<Vec<_>>(), [(3, 1)]);
    let places: Vec<_> = a.reclaim.places.sorted().iter().map(|v| (v.place.context, v.scanned)).collect();
    let expected = [(Context::Other, 5), (Context::Direct, 32), (Context::Kswapd, 100), (Context::Memcg, 64)];
    assert_eq!(places, expected);
}

#[test]
fn soft_limit_reclaim_is_nested() {
    let a = analysis(&[
        begin(Kind::MmVmscanKswapdWake, KSWAPD, 1, 0).set("nid", 0),
        begin(Kind::MmVmscanMemcgSoftlimitReclaimBegin, KSWAPD, 2, 0),
        shrink(KSWAPD, 3, 32, 30),
        made(Kind::MmVmscanMemcgSoftlimitReclaimEnd, KSWAPD, 4),
        shrink(KSWAPD, 5, 16, 15),
        begin(Kind::MmVmscanDirectReclaimBegin, DD, 10, 0),
        begin(Kind::MmVmscanMemcgSoftlimitReclaimBegin, DD, 12, 0),
        made(Kind::MmVmscanMemcgSoftlimitReclaimEnd, DD, 14),
        shrink(DD, 15, 8, 7),
        made(Kind::MmVmscanDirectReclaimEnd, DD, 20),
    ]);
    let scanned = |context| a.reclaim.context(context).inactive.scanned.all;
    assert_eq!(scanned(Context::MemcgSoftlimit), 32);
    assert_eq!(scanned(Context::Kswapd), 16);
    assert_eq!(scanned(Context::Direct), 8);
    assert_eq!(a.reclaim.context(Context::Direct).durations().sum, 10_000);
    assert_eq!(a.reclaim.context(Context::MemcgSoftlimit).durations().sum, 4_000);
    assert_eq!(process(&a, 7).stalls.sum, 10_000, "the nested time is not counted twice");
}

#[test]
fn a_lost_begin_or_end_has_no_duration() {
    let a = analysis(&[
        made(Kind::MmVmscanDirectReclaimEnd, DD, 5).set("nr_reclaimed", 3),
        begin(Kind::MmVmscanDirectReclaimBegin, DD, 10, 0),
        begin(Kind::MmVmscanDirectReclaimBegin, DD, 100, 1),
        made(Kind::MmVmscanDirectReclaimEnd, DD, 107),
        made(Kind::MmVmscanDirectReclaimEnd, DD, 200),
    ]);
    let direct = a.reclaim.context(Context::Direct);
    assert_eq!((direct.begins, direct.ends, direct.unpaired), (2, 3, 2));
    assert_eq!(a.reclaim.without_duration(Context::Direct), 3, "two without begin, one without end");
    assert_eq!((direct.durations().count(), direct.durations().sum), (1, 7_000));
    assert_eq!(direct.by_order().map(|(order, l)| (order, l.count())).collect::<Vec<_>>(), [(Some(1), 1)]);
}

#[test]
fn events_lost_on_the_way_leave_no_duration() {
    let mut a = analysis(&[begin(Kind::MmVmscanDirectReclaimBegin, DD, 10, 0).cpu(2)]);
    a.lost(2, Some(9), 50_000);
    a.event(&made(Kind::MmVmscanDirectReclaimEnd, DD, 90).cpu(1).event());
    a.event(&begin(Kind::MmVmscanDirectReclaimBegin, DD, 100, 0).cpu(2).event());
    a.event(&made(Kind::MmVmscanDirectReclaimEnd, DD, 101).cpu(2).event());
    let direct = a.reclaim.context(Context::Direct);
    assert_eq!((direct.unpaired, direct.durations().count(), direct.durations().sum), (1, 1, 1_000));
    assert_eq!(a.reclaim.without_duration(Context::Direct), 1, "begin and end are of one reclaim");
}

#[test]
fn what_is_open_at_the_end_has_no_duration() {
    let a = analysis(&[
        begin(Kind::MmVmscanDirectReclaimBegin, DD, 10, 0),
        made(Kind::MmVmscanDirectReclaimEnd, DD, 20),
        begin(Kind::MmVmscanDirectReclaimBegin, DD, 30, 0),
        begin(Kind::MmVmscanMemcgReclaimBegin, (8, b"cp"), 31, 0),
    ]);
    let open = |context| a.reclaim.without_duration(context);
    assert_eq!((open(Context::Direct), open(Context::Memcg), open(Context::Node)), (1, 1, 0));
}

#[test]
fn kswapd_is_awake_from_its_first_wake_to_its_sleep() {
    let wake = |us, order| begin(Kind::MmVmscanKswapdWake, KSWAPD, us, order).set("nid", 4);
    let sleep = |us| made(Kind::MmVmscanKswapdSleep, KSWAPD, us).set("nid", 4);
    let a = analysis(&[sleep(5), wake(10, 0), wake(20, 9), sleep(30), wake(50, 2)]);
    let kswapd = process(&a, 3).kswapd.as_ref().unwrap();
    assert_eq!((kswapd.nid, kswapd.wakes, kswapd.rewakes, kswapd.sleeps), (4, 2, 1, 2));
    assert_eq!((kswapd.awake_us, kswapd.awake.sum), (20, 20_000));
    assert_eq!((kswapd.first_sleep, kswapd.awake_since), (Some(5_999), Some(50_999)));
    assert_eq!(kswapd.rewake_orders.iter().collect::<Vec<_>>(), [(9, 1)]);
    assert_eq!(a.reclaim.without_duration(Context::Kswapd), 2, "awake before the trace, and at its end");
    let listed: Vec<_> = a.reclaim.listed(a.tasks.get(3).unwrap()).map(|l| (l.order, l.us)).collect();
    assert_eq!(listed, [(9, 20)], "the order is that of the last wake");
}

#[test]
fn a_kswapd_without_a_name_is_known_by_its_wake() {
    let who = (9, &b""[..]);
    let a = analysis(&[begin(Kind::MmVmscanKswapdWake, who, 1, 0), shrink(who, 2, 3, 2)]);
    assert_eq!(a.reclaim.context(Context::Kswapd).inactive.scanned.all, 3);
}

#[test]
fn orders_no_kernel_has_are_kept_apart() {
    let a = analysis(&[
        begin(Kind::MmVmscanDirectReclaimBegin, DD, 1, -1),
        made(Kind::MmVmscanDirectReclaimEnd, DD, 2),
        begin(Kind::MmVmscanDirectReclaimBegin, DD, 3, 1 << 20),
        made(Kind::MmVmscanDirectReclaimEnd, DD, 4),
    ]);
    assert_eq!(process(&a, 7).direct_orders.odd, 2);
    let orders: Vec<_> = a.reclaim.context(Context::Direct).by_order().map(|(order, l)| (order, l.count())).collect();
    assert_eq!(orders, [(None, 2)]);
}

#[test]
fn isolations_count_as_scanned_unless_from_active_lists() {
    let isolate = |kind, lru| made(kind, DD, 1).set("lru", lru).set("nr_scanned", 10).set("nr_taken", 4);
    let a = analysis(&[
        isolate(Kind::MmVmscanLruIsolate, 0),
        isolate(Kind::MmVmscanLruIsolate, 1),
        isolate(Kind::MmVmscanLruIsolate, 2),
        isolate(Kind::MmVmscanLruIsolate, 3),
        made(Kind::MmVmscanMemcgIsolate, DD, 2).set("isolate_mode", 0).set("contig_taken", 0).set("nr_scanned", 5),
    ]);
    assert_eq!(process(&a, 7).isolated, Pages { all: 20, file: 10, anon: 10 });
    assert_eq!(a.reclaim.context(Context::Other).isolated_inactive().scanned, 25);
}

/// Memory is bounded whatever the number of threads, nothing is lost of the sums, and it is said.
#[test]
fn processes_beyond_the_bound_are_counted_together() {
    let mut a = Analysis::default();
    let processes = MAX_PROCESSES as i32 + 10;
    for pid in 1..=processes {
        let us = pid as u64 * 10;
        for made in [
            begin(Kind::MmVmscanDirectReclaimBegin, (pid, b"p"), us, 0),
            shrink((pid, b"p"), us + 1, 32, 8),
            made(Kind::MmVmscanDirectReclaimEnd, (pid, b"p"), us + 2).set("nr_reclaimed", 8),
        ] {
            a.event(&made.event());
        }
    }
    assert_eq!((a.reclaimers().count(), a.reclaim.together()), (MAX_PROCESSES + 1, 10));
    let (task, others) = a.reclaim.others().unwrap();
    assert_eq!((task.name().as_str(), task.pid), (crate::tasks::OTHERS, -1));
    assert_eq!((others.begun(Context::Direct), others.reclaimed.all, others.stalls.count()), (10, 80, 10));
    let sum: u64 = a.reclaimers().map(|(_, process)| process.scanned.all).sum();
    assert_eq!(sum, 32 * processes as u64);
    assert_eq!(a.reclaim.context(Context::Direct).inactive.scanned.all, sum);
    // A kswapd that comes late still has a place of its own.
    a.event(&made(Kind::MmVmscanKswapdSleep, (processes + 1, b"kswapd0"), 1 << 30).event());
    assert_eq!(a.reclaimers().filter(|(_, process)| process.kswapd.is_some()).count(), 1);
}

#[test]
fn places_and_nodes_beyond_the_bound_are_counted_together() {
    let mut a = Analysis::default();
    let nodes = PLACES as i64 + 5;
    for nid in 0..nodes {
        a.event(&shrink(DD, 1, 1, 1).set("nid", nid).event());
    }
    let places = a.reclaim.places.sorted();
    assert_eq!(places.len(), PLACES as usize + 1);
    assert_eq!((places[0].place.nid, places[0].scanned), (-1, 5));
    for nid in 0..2000 {
        a.event(&made(Kind::MmVmscanWakeupKswapd, DD, 2).set("nid", nid).event());
    }
    assert_eq!(a.reclaim.nodes().len(), NODES as usize + 1);
    assert_eq!(a.reclaim.nodes().iter().map(|node| node.requests).sum::<u64>(), 2000);
}
