//! Counters from `counters/SOURCE.arrows`, rows of all sources in time order.
//!
//! Reads the Arrow IPC streams that [`super::CounterWriter`] leaves: framing and record batches of columns u64, utf8
//! and nullable u64, not compressed. Every offset is checked against the file, so a cut file gives its whole batches
//! and a damaged one those before the damage. Other column types are refused.

use crate::{Error, Place, Warnings};
use arrow_ipc::{Endianness, Message, MessageHeader, Type, root_as_message};
use mmtwin_event::CounterRow;
use std::sync::Arc;

/// Counters of one source and key at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledRow {
    /// Source (`vmstat`).
    pub source: Arc<str>,
    /// Key within the source.
    pub key: String,
    /// Nanoseconds of the trace clock.
    pub at: u64,
    /// Names of the counters.
    pub names: Arc<[String]>,
    /// Values, parallel to `names`.
    pub values: Vec<Option<u64>>,
}

impl SampledRow {
    /// As sinks take it.
    pub fn as_row(&self) -> CounterRow<'_> {
        CounterRow { source: &self.source, key: &self.key, at: self.at, names: &self.names, values: &self.values }
    }
}

/// Rows of several streams, merged by time; at equal times in order of the streams.
pub struct Counters<'a> {
    streams: Vec<(CounterStream<'a>, Option<SampledRow>)>,
    warnings: Warnings,
}

impl<'a> Counters<'a> {
    /// Merges streams. Those of one source follow each other.
    pub fn new(streams: Vec<CounterStream<'a>>) -> Counters<'a> {
        let mut warnings = Warnings::default();
        let streams = streams.into_iter().map(|mut s| {
            let head = s.next_row(&mut warnings);
            (s, head)
        });
        Counters { streams: streams.collect(), warnings }
    }

    /// Time of the next row.
    pub fn next_at(&self) -> Option<u64> {
        self.streams.iter().filter_map(|(_, head)| Some(head.as_ref()?.at)).min()
    }

    /// What was wrong and stepped over so far.
    pub fn into_warnings(self) -> Warnings {
        self.warnings
    }
}

impl Iterator for Counters<'_> {
    type Item = SampledRow;
    fn next(&mut self) -> Option<SampledRow> {
        let at = self.next_at()?;
        let (stream, head) = self.streams.iter_mut().find(|(_, head)| head.as_ref().is_some_and(|r| r.at == at))?;
        let next = stream.next_row(&mut self.warnings);
        std::mem::replace(head, next)
    }
}

/// One file of counters.
pub struct CounterStream<'a> {
    source: Arc<str>,
    file: String,
    bytes: &'a [u8],
    /// Offset of the next message.
    at: usize,
    /// The stream must end with its mark, for its writer ended well.
    whole: bool,
    ended: bool,
    names: Arc<[String]>,
    batch: Option<Batch<'a>>,
}

struct Batch<'a> {
    rows: usize,
    next: usize,
    /// A key is no text: this row and those behind it are omitted.
    damaged: bool,
    times: &'a [u8],
    key_ends: &'a [u8],
    keys: &'a [u8],
    /// Validity (empty: all valid) and values of each counter.
    counters: Vec<(&'a [u8], &'a [u8])>,
}

impl<'a> CounterStream<'a> {
    /// Opens a stream; `None` with a warning if not even its schema is there. `whole`: its writer ended well, so that a
    /// stream without the mark of its end is cut.
    pub fn open(
        source: &str,
        file: &str,
        bytes: &'a [u8],
        whole: bool,
        warnings: &mut Warnings,
    ) -> Result<Option<CounterStream<'a>>, Error> {
        let names = Arc::from([]);
        let (source, file_name) = (source.into(), file.into());
        let (at, batch, ended) = (0, None, false);
        let mut stream = CounterStream { source, file: file_name, bytes, at, whole, ended, names, batch };
        let Some((message, _)) = stream.message()? else {
            warnings.cut(|| Place::file(file), "no counters: the recording was truncated before the first sample");
            return Ok(None);
        };
        let schema = message.header_as_schema().filter(|s| s.endianness() == Endianness::Little);
        let fields =
            schema.and_then(|s| s.fields()).ok_or_else(|| stream.malformed("expected a little-endian schema"))?;
        let mut names = Vec::new();
        for (i, field) in fields.iter().enumerate() {
            let is_u64 = field.type_as_int().is_some_and(|t| t.bitWidth() == 64 && !t.is_signed());
            let fits = if i == 1 { field.type_type() == Type::Utf8 } else { is_u64 };
            match field.name() {
                Some(name) if fits => names.push(name.to_string()),
                _ => return Err(stream.malformed("expected the columns time (u64), key (utf8) and counters (u64)")),
            }
        }
        if names.len() < 2 {
            return Err(stream.malformed("expected the columns time and key"));
        }
        stream.names = names.split_off(2).into();
        Ok(Some(stream))
    }

    /// The next row; damage ends the stream with a warning.
    fn next_row(&mut self, warnings: &mut Warnings) -> Option<SampledRow> {
        loop {
            if let Some(batch) = &mut self.batch
                && let Some((at, key, values)) = batch.row()
            {
                return Some(SampledRow { source: self.source.clone(), key, at, names: self.names.clone(), values });
            }
            if self.batch.as_ref().is_some_and(|batch| batch.damaged) {
                let message = "rows with damaged keys are skipped";
                warnings.cut(|| Place::offset(&self.file, self.at as u64), message);
            }
            let start = self.at as u64;
            self.batch = match self.next_batch() {
                Ok(Some(batch)) => Some(batch),
                Ok(None) => {
                    if self.at < self.bytes.len() && !self.ended {
                        let message = "the last sample is incomplete and skipped: the recording was truncated";
                        warnings.cut(|| Place::offset(&self.file, start), message);
                    } else if self.whole && !self.ended {
                        let message = "the samples have no end marker: the recording was truncated";
                        warnings.cut(|| Place::offset(&self.file, start), message);
                    }
                    self.at = self.bytes.len();
                    self.ended = true;
                    return None;
                }
                Err(error) => {
                    warnings.cut_error(&self.file, error);
                    self.at = self.bytes.len();
                    self.ended = true;
                    return None;
                }
            };
        }
    }

    fn next_batch(&mut self) -> Result<Option<Batch<'a>>, Error> {
        let start = self.at;
        let Some((message, body)) = self.message()? else { return Ok(None) };
        let batch = match message.header_type() {
            MessageHeader::RecordBatch => Batch::of(&message, body, self.names.len()),
            _ => None,
        };
        match batch {
            Some(batch) => Ok(Some(batch)),
            None => {
                self.at = start;
                Err(self.malformed("damaged record batch; this and the rest are skipped"))
            }
        }
    }

    /// The message at the current offset and its body; `None` at the end, before an incomplete message and at an
    /// end-of-stream mark.
    fn message(&mut self) -> Result<Option<(Message<'a>, &'a [u8])>, Error> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let Some((head, rest)) = rest.split_first_chunk::<8>() else { return Ok(None) };
        let (mark, length) = (number::<4>(head, 0), number::<4>(head, 1));
        if mark != Some(u64::from(u32::MAX)) {
            return Err(self.malformed("expected the start of an Arrow message"));
        }
        let length = length.unwrap_or(0) as usize;
        if length == 0 {
            self.at += 8;
            self.ended = true;
            return Ok(None);
        }
        let Some((metadata, rest)) = rest.split_at_checked(length) else { return Ok(None) };
        let message = root_as_message(metadata).map_err(|e| self.malformed(&format!("damaged Arrow message: {e}")))?;
        let body = usize::try_from(message.bodyLength()).map_err(|_| self.malformed("impossible body length"))?;
        let Some(body) = rest.get(..body) else { return Ok(None) };
        self.at += 8 + length + body.len();
        Ok(Some((message, body)))
    }

    fn malformed(&self, message: &str) -> Error {
        Error::at(Place::offset(&self.file, self.at as u64), message)
    }
}

impl<'a> Batch<'a> {
    /// Slices the body; `None` if a buffer is missing, too short or outside.
    fn of(message: &Message<'_>, body: &'a [u8], counters: usize) -> Option<Batch<'a>> {
        let batch = message.header_as_record_batch().filter(|b| b.compression().is_none())?;
        let rows = usize::try_from(batch.length()).ok()?;
        let mut buffers = batch.buffers()?.iter().map(|buffer| {
            let start = usize::try_from(buffer.offset()).ok()?;
            body.get(start..start.checked_add(usize::try_from(buffer.length()).ok()?)?)
        });
        let mut next = |least: usize| buffers.next().flatten().filter(|b| b.len() >= least);
        let (wide, bits) = (rows.checked_mul(8)?, rows.div_ceil(8));
        next(0)?;
        let times = next(wide)?;
        next(0)?;
        let key_ends = next(rows.checked_add(1)?.checked_mul(4)?)?;
        let keys = next(0)?;
        let counter = |_| {
            let validity = next(0)?;
            (validity.is_empty() || validity.len() >= bits).then_some((validity, next(wide)?))
        };
        let counters = (0..counters).map(counter).collect::<Option<_>>()?;
        Some(Batch { rows, next: 0, damaged: false, times, key_ends, keys, counters })
    }

    /// The next row: time, key, values. A key that is no text is damage, and so are those behind it.
    fn row(&mut self) -> Option<(u64, String, Vec<Option<u64>>)> {
        let i = self.next;
        if i >= self.rows {
            return None;
        }
        self.next += 1;
        let (start, end) = (number::<4>(self.key_ends, i)? as usize, number::<4>(self.key_ends, i + 1)? as usize);
        let Some(key) = self.keys.get(start..end) else {
            self.damaged = true;
            return None;
        };
        let key = String::from_utf8_lossy(key).into_owned();
        let value = |(validity, values): &(&[u8], &[u8])| {
            let valid = validity.is_empty() || validity[i / 8] & (1 << (i % 8)) != 0;
            if valid { number::<8>(values, i) } else { None }
        };
        Some((number::<8>(self.times, i)?, key, self.counters.iter().map(value).collect()))
    }
}

/// The `i`-th little-endian number of `N` bytes.
fn number<const N: usize>(bytes: &[u8], i: usize) -> Option<u64> {
    let raw = bytes.get(i.checked_mul(N)?..)?.first_chunk::<N>()?;
    Some(raw.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b)))
}
