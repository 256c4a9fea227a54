//! `convert` to OpenMetrics: the counters of a recording.

use crate::Failure;
use crate::args::Samples;
use mmtwin_event::{CounterRow, Event, Sink, Source};
use mmtwin_report::openmetrics::Exposition;
use mmtwin_trace::recording::Recording;

/// Most values that are kept, 24 bytes each: some 3,000 counters for an hour.
const MOST: u64 = 10_000_000;

/// When the trace clock of a recording was 0, in nanoseconds since 1970; `None`: not recorded.
pub fn epoch(recording: &Recording) -> Option<i128> {
    let started = recording.run.as_ref()?.started;
    Some(i128::from(started) * 1_000_000_000 - i128::from(recording.manifest.start))
}

/// Takes the counters of a stream.
pub struct Counters {
    exposition: Exposition,
    samples: Samples,
    /// Without one, times are those of the trace clock.
    epoch: i128,
    values: u64,
    name: String,
}

impl Counters {
    /// Takes the last sample or all.
    pub fn new(samples: Samples, epoch: Option<i128>) -> Counters {
        let exposition = Exposition::new(usize::MAX);
        Counters { exposition, samples, epoch: epoch.unwrap_or(0), values: 0, name: String::new() }
    }

    /// The text.
    pub fn text(&self) -> Result<Vec<u8>, Failure> {
        let name = &self.name;
        if self.exposition.series() == 0 {
            return Err(Failure::Error(format!("{name}: no counters were recorded")));
        }
        if self.values > MOST {
            let message = format!("{name}: more than {MOST} samples of counters; --from and --to take a part of it");
            return Err(Failure::Error(message));
        }
        let mut text = Vec::new();
        self.exposition.write(&mut text)?;
        Ok(text)
    }
}

impl Sink for Counters {
    fn start(&mut self, source: &Source) {
        self.name.clone_from(&source.name);
        let about =
            [("name", Some(source.name.clone())), ("arm", Some(source.arm.clone())), ("kernel", source.kernel.clone())];
        self.exposition.about(about.into_iter().filter_map(|(label, value)| Some((label, value?))).collect());
    }

    fn event(&mut self, _: &Event<'_>) {}

    fn counters(&mut self, row: &CounterRow<'_>) {
        if self.samples == Samples::Last {
            return self.exposition.add(row, None);
        }
        self.values += row.names.len() as u64;
        if self.values <= MOST {
            let since_1970 = (self.epoch + i128::from(row.at)).max(0) / 1_000_000;
            self.exposition.add(row, Some(since_1970 as u64));
        }
    }
}
