//! Comparison of the events and counters of two runs, with the place of the first difference.
//!
//! Each event and counter row that leaves the twin is mixed into a rolling hash. The first run keeps the hash after
//! each of them (the first [`KEPT`]; of later ones only the last), and the second run compares with it.

use mmtwin_event::{CounterRow, Event, Fields, Kind, Sink, Source, Task};

/// Hashes kept one by one, 8 bytes each.
const KEPT: usize = 1 << 22;

/// Result of one run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Digest {
    hashes: Vec<u64>,
    /// Hash of everything.
    pub last: u64,
    /// Events and rows of counters.
    pub count: u64,
}

/// Where two runs differ.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Difference {
    /// This event or row of the second run was not in the first at this place, counted from 1.
    #[error("the runs differ at number {number}: the second run has {what}, the first does not")]
    At {
        /// Place in the stream.
        number: u64,
        /// The event or row of the second run.
        what: String,
    },
    /// The first run has more.
    #[error("the second run ends after {second} events and rows of counters, the first after {first}")]
    Shorter {
        /// Things of the first run.
        first: u64,
        /// Things of the second run.
        second: u64,
    },
    /// They differ behind what was kept one by one.
    #[error("the runs differ somewhere behind number {0}")]
    Later(u64),
}

/// Passes a stream on and hashes it; given the digest of an earlier run, it compares too.
pub struct Hashing<'s> {
    sink: &'s mut dyn Sink,
    digest: Digest,
    first: Option<Digest>,
    difference: Option<Difference>,
}

impl<'s> Hashing<'s> {
    /// Hashes all data that is passed to `sink`.
    pub fn new(sink: &'s mut dyn Sink, first: Option<Digest>) -> Hashing<'s> {
        Hashing { sink, digest: Digest::default(), first, difference: None }
    }

    /// The digest of this run, or how it differs from the first.
    pub fn finish(mut self) -> Result<Digest, Difference> {
        if let Some(difference) = self.difference.take() {
            return Err(difference);
        }
        match &self.first {
            Some(first) if first.count != self.digest.count => {
                Err(Difference::Shorter { first: first.count, second: self.digest.count })
            }
            Some(first) if first.last != self.digest.last => Err(Difference::Later(KEPT as u64)),
            _ => Ok(self.digest),
        }
    }

    fn note(&mut self, words: impl Iterator<Item = u64>, what: impl Fn() -> String) {
        let digest = &mut self.digest;
        for word in words {
            // Multiply and rotate: order matters, and every word changes all bits in a few steps.
            digest.last = (digest.last ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        }
        let at = digest.count as usize;
        digest.count += 1;
        match &self.first {
            None if at < KEPT => digest.hashes.push(digest.last),
            None => {}
            Some(first) if self.difference.is_none() => {
                let known = at >= first.hashes.len() && first.count > first.hashes.len() as u64;
                if !known && first.hashes.get(at) != Some(&digest.last) {
                    self.difference = Some(Difference::At { number: at as u64 + 1, what: what() });
                }
            }
            Some(_) => {}
        }
    }
}

/// The bytes of a text as words, its length first.
fn words(text: &[u8]) -> impl Iterator<Item = u64> {
    let padded = text.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    std::iter::once(text.len() as u64).chain(padded)
}

impl Sink for Hashing<'_> {
    fn start(&mut self, source: &Source) {
        self.sink.start(source);
    }
    fn task(&mut self, task: &Task<'_>) {
        self.sink.task(task);
    }
    fn order(&self, kind: Kind) -> mmtwin_event::Order {
        self.sink.order(kind)
    }
    fn event(&mut self, event: &Event<'_>) {
        let values: &[u64] = match (event.fields, event.kind.schema()) {
            (Fields::Text(slots), Some(schema)) => &slots.values[..schema.fields.len()],
            _ => &[],
        };
        let head = [event.ts, u64::from(event.cpu), event.pid as u64, event.kind as u64];
        let all = head.into_iter().chain(values.iter().copied()).chain(words(event.raw));
        self.note(all, || format!("{} on CPU {} at {} ns", event.name, event.cpu, event.ts));
        self.sink.event(event);
    }
    fn counters(&mut self, row: &CounterRow<'_>) {
        let head = std::iter::once(row.at).chain(words(row.source.as_bytes())).chain(words(row.key.as_bytes()));
        let values = row.values.iter().flat_map(|value| [u64::from(value.is_some()), value.unwrap_or(0)]);
        let names = row.names.iter().flat_map(|name| words(name.as_bytes()));
        self.note(head.chain(values).chain(names), || {
            format!("counters {} {:?} at {} ns", row.source, row.key, row.at)
        });
        self.sink.counters(row);
    }
    fn finish(&mut self) {
        self.sink.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe;
    use crate::probe::Probe;
    use mmtwin_event::NullSink;
    use mmtwin_event::vocabulary::MmVmscanKswapdSleep;

    fn run(nids: &[i32], counter: u64, first: Option<Digest>) -> Result<Digest, Difference> {
        let mut sink = NullSink;
        let mut hashing = Hashing::new(&mut sink, first);
        let mut probe = Probe::new([Kind::MmVmscanKswapdSleep]);
        for (at, &nid) in nids.iter().enumerate() {
            probe.write(at as u64, 0, probe::Task::default(), &MmVmscanKswapdSleep { nid }, b"");
        }
        probe.drain(u64::MAX, &mut hashing);
        let names = ["pgfree".to_string()];
        hashing.counters(&CounterRow { source: "vmstat", key: "", at: 9, names: &names, values: &[Some(counter)] });
        hashing.finish()
    }

    #[test]
    fn equal_runs_are_equal() {
        let first = run(&[1, 2, 3], 7, None).unwrap();
        assert_eq!(first.count, 4);
        assert_eq!(run(&[1, 2, 3], 7, Some(first.clone())).unwrap().last, first.last);
    }

    #[test]
    fn the_first_difference_is_named() {
        let first = || Some(run(&[1, 2, 3], 7, None).unwrap());
        let what = "mm_vmscan_kswapd_sleep on CPU 0 at 1 ns".to_string();
        assert_eq!(run(&[1, 5, 5], 7, first()), Err(Difference::At { number: 2, what }));
        let what = "counters vmstat \"\" at 9 ns".to_string();
        assert_eq!(run(&[1, 2, 3], 8, first()), Err(Difference::At { number: 4, what: what.clone() }));
        assert!(matches!(run(&[1, 2], 7, first()), Err(Difference::At { number: 3, .. })));
        assert!(matches!(run(&[1, 2, 3, 4], 7, first()), Err(Difference::At { number: 4, .. })));
    }
}
