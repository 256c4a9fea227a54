//! An analysis whose halves work at the same time has the sums of one that takes every event itself.

use mmtwin_analysis::Analysis;
use mmtwin_event::{Event, Kind, Order, Sink, Source};
use mmtwin_trace::dat;
use mmtwin_trace::format::Formats;
use mmtwin_trace::ring::{CpuStream, TimeMap, merge};
use mmtwin_trace::{Outcome, Place};

/// Hides that an analysis can be divided.
struct Undivided(Analysis);

impl Sink for Undivided {
    fn start(&mut self, source: &Source) {
        self.0.start(source);
    }
    fn order(&self, kind: Kind) -> Order {
        self.0.order(kind)
    }
    fn event(&mut self, event: &Event<'_>) {
        self.0.event(event);
    }
    fn lost(&mut self, cpu: u32, events: Option<u64>, at: u64) {
        self.0.lost(cpu, events, at);
    }
    fn finish(&mut self) {
        self.0.finish();
    }
}

/// What a recording of a CPU says if all of so many CPUs wrote it.
fn read(cpus: u32, sink: &mut dyn Sink) -> Outcome {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/host-6.18.dat");
    let bytes = std::fs::read(path).expect("a recording");
    let dat = dat::open(path, &bytes).expect("a trace.dat");
    let mut formats = Formats::new(false, dat.meta.kernel_long_size());
    for format in &dat.meta.formats {
        formats.add(&format.system, &format.text, &Place::file(path)).expect("a format");
    }
    let buffer = dat.buffers.iter().find(|b| !b.is_empty()).expect("a buffer");
    let layout = buffer.layout(&dat.meta, &Place::file(path)).expect("a layout");
    let streams = |cpu| buffer.streams(&layout).into_iter().map(move |stream| CpuStream { cpu, ..stream });
    let streams = (0..cpus).flat_map(streams).collect();
    sink.start(&Source { cpus, ..Source::default() });
    let mut outcome = Outcome::default();
    merge::deliver(streams, &layout, &formats, &TimeMap::default(), sink, &mut outcome, &mut |_| {}).expect("events");
    sink.finish();
    outcome
}

#[test]
fn the_sums_of_halves_are_those_of_one() {
    let (mut halves, mut one) = (Analysis::default(), Undivided(Analysis::default()));
    let outcome = read(8, &mut halves);
    assert!(outcome.events > 100_000, "too few for more threads: {}", outcome.events);
    assert_eq!(format!("{outcome:?}"), format!("{:?}", read(8, &mut one)));
    assert_eq!(format!("{halves:#?}"), format!("{:#?}", one.0));
}
