//! Where the values of a payload stand: the general reader, which knows no order of fields.
//!
//! Most events print `key=value`. The keys are the names and other spellings of the vocabulary; unknown keys are
//! noticed so that a value before them ends. What is printed otherwise is spelt out in [`SPELLINGS`]. The general
//! reader runs once per shape of line: `template` remembers what it found.

use mmtwin_event::{Kind, Schema};

/// A label in a payload and where its value begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label {
    /// First byte of the label.
    pub start: usize,
    /// First byte of the value.
    pub value: usize,
    /// Slot of the field; `None`: a key that the vocabulary does not have.
    pub slot: Option<usize>,
}

/// Labels other than `name=`: (system, label, field). Tried before the plain keys.
static SPELLINGS: &[(&str, &str, &str)] = &[
    ("vmscan", "nid: ", "nid"),
    ("vmscan", "objects to shrink ", "nr_objects_to_shrink"),
    ("vmscan", "gfp_flags ", "gfp_flags"),
    ("vmscan", "pgs_scanned ", "pgs_scanned"),
    ("vmscan", "lru_pgs ", "lru_pgs"),
    ("vmscan", "cache items ", "cache_items"),
    ("vmscan", "delta ", "delta"),
    ("vmscan", "total_scan ", "total_scan"),
    ("vmscan", "priority ", "priority"),
    ("vmscan", "unused scan count ", "unused_scan"),
    ("vmscan", "new scan count ", "new_scan"),
    ("vmscan", "last shrinker return val ", "retval"),
    ("writeback", "bdi ", "bdi"),
    ("writeback", "sb_dev ", "sb_dev"),
    ("compaction", "range=(", "start_pfn"),
    ("compaction", "~ ", "end_pfn"),
    ("kmem", "upper_zone name=", "upper_name"),
    ("kmem", "zone name=", "name"),
    ("kmem", "watermark min=", "watermark_min"),
    ("filemap", "dev ", "dev"),
    ("filemap", "ino ", "ino"),
    ("vmalloc", "va_start: ", "va_start"),
    ("oom", "file-rss:", "file_rss"),
    ("oom", "shmem-rss:", "shmem_rss"),
];

/// The labels of a payload, in order; the first of each field counts.
pub(super) fn locate(schema: &Schema, payload: &[u8]) -> Vec<Label> {
    let mut labels = unlabelled(schema, payload);
    let mut at = labels.last().map_or(0, |l: &Label| l.value);
    let mut taken: u32 = labels.iter().filter_map(|l| l.slot).fold(0, |bits, slot| bits | 1 << slot);
    while at < payload.len() {
        if !starts_word(payload, at) {
            at += 1;
            continue;
        }
        let rest = &payload[at..];
        let known = spelt(schema, rest).or_else(|| keyed(schema, rest));
        let (len, slot) = match known {
            Some((len, slot)) => (len, slot.filter(|s| taken >> s & 1 == 0)),
            None => {
                at += 1;
                continue;
            }
        };
        if let Some(slot) = slot {
            taken |= 1 << slot;
        }
        labels.push(Label { start: at, value: at + len, slot });
        at += len;
    }
    labels
}

/// Where the value of a string ends: before the label that follows and what separates it.
pub(super) fn value_end(schema: &Schema, payload: &[u8], labels: &[Label], index: usize) -> usize {
    let label = &labels[index];
    let Some(next) = labels.get(index + 1) else { return payload.len() };
    let between = payload[label.value..next.start.max(label.value)].trim_ascii_end();
    // A comma closes a value; in `bdi NAME: key=` the colon does.
    let is_bdi = label.slot.is_some_and(|s| schema.fields[s].name == "bdi");
    let value = match between {
        [value @ .., b','] => value,
        [value @ .., b':'] if is_bdi => value,
        value => value,
    };
    label.value + value.len()
}

/// Values that come first without a label: `SYMBOL POINTER: ` of the shrinkers, the lone number of
/// `writeback_pages_written`.
fn unlabelled(schema: &Schema, payload: &[u8]) -> Vec<Label> {
    match schema.kind {
        Kind::WritebackPagesWritten if payload.first().is_some_and(|b| b.is_ascii_digit() || *b == b'-') => {
            vec![Label { start: 0, value: 0, slot: Some(0) }]
        }
        Kind::MmShrinkSlabStart | Kind::MmShrinkSlabEnd => {
            let head = payload.windows(2).position(|w| w == b": ").map_or(payload, |end| &payload[..end]);
            let Some(pointer) = head.iter().rposition(|&b| b == b' ') else { return Vec::new() };
            if head.contains(&b'=') {
                return Vec::new();
            }
            let slot = |name: &[u8]| schema.slot(name);
            vec![
                Label { start: 0, value: 0, slot: slot(b"shrink") },
                Label { start: pointer, value: pointer + 1, slot: slot(b"shr") },
            ]
        }
        _ => Vec::new(),
    }
}

fn starts_word(payload: &[u8], at: usize) -> bool {
    payload[at] != b' ' && (at == 0 || matches!(payload[at - 1], b' ' | b',' | b'('))
}

/// A label of [`SPELLINGS`] at the start of `rest`: its length and slot.
fn spelt(schema: &Schema, rest: &[u8]) -> Option<(usize, Option<usize>)> {
    SPELLINGS
        .iter()
        .filter(|(system, label, _)| *system == schema.system && rest.starts_with(label.as_bytes()))
        .find_map(|(_, label, field)| Some((label.len(), Some(schema.slot(field.as_bytes())?))))
}

/// A `key=` at the start of `rest`: its length, and its slot if the vocabulary has it.
fn keyed(schema: &Schema, rest: &[u8]) -> Option<(usize, Option<usize>)> {
    let is_key = |b: &&u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    let len = rest.iter().take_while(is_key).count();
    if len == 0 || rest[0].is_ascii_digit() || rest.get(len) != Some(&b'=') {
        return None;
    }
    Some((len + 1, schema.slot(&rest[..len])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(kind: Kind, payload: &str) -> Vec<(&'static str, &str)> {
        let schema = kind.schema().unwrap();
        let labels = locate(schema, payload.as_bytes());
        let name = |l: &Label| l.slot.map_or("?", |s| schema.fields[s].name);
        (0..labels.len())
            .map(|i| (name(&labels[i]), &payload[labels[i].value..value_end(schema, payload.as_bytes(), &labels, i)]))
            .collect()
    }

    #[test]
    fn plain_keys_and_unknown_ones() {
        let got = found(Kind::MmVmscanKswapdWake, "nid=1 colour=dark red order=3");
        assert_eq!(got, [("nid", "1"), ("?", "dark red"), ("order", "3")]);
    }

    #[test]
    fn names_of_devices_may_hold_colons() {
        let got = found(Kind::WritebackStart, "bdi 8:0: sb_dev 0:3 nr_pages=5");
        assert_eq!(got, [("bdi", "8:0"), ("sb_dev", "0:3"), ("nr_pages", "5")]);
        let got = found(Kind::WritebackDirtyFolio, "bdi (unknown): ino=7 index=1");
        assert_eq!(got, [("bdi", "(unknown)"), ("ino", "7"), ("index", "1")]);
    }

    #[test]
    fn shrinkers() {
        let got = found(
            Kind::MmShrinkSlabEnd,
            "scan+0x0/0x10 [ext4] 00000000b2b53b63: nid: 0 unused scan count 1 new scan count 2",
        );
        let head = [("shrink", "scan+0x0/0x10 [ext4]"), ("shr", "00000000b2b53b63:")];
        assert_eq!(got[..2], head);
        assert_eq!(got[2..], [("nid", "0"), ("unused_scan", "1"), ("new_scan", "2")]);
    }

    #[test]
    fn words_before_keys() {
        let got = found(
            Kind::MmSetupPerZoneLowmemReserve,
            "node_id=0 zone name=DMA upper_zone name=DMA32 lowmem_reserve_pages=5",
        );
        assert_eq!(got, [("node_id", "0"), ("name", "DMA"), ("upper_name", "DMA32"), ("lowmem_reserve", "5")]);
        let got = found(Kind::MmCompactionIsolateFreepages, "range=(0x10 ~ 0x20) nr_scanned=1 nr_taken=2");
        assert_eq!(got[0].0, "start_pfn");
        assert_eq!(got[1], ("end_pfn", "0x20)"));
    }
}
