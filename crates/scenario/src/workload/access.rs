//! Memory accesses: which pages, in which order, how often, and how.

use super::Sharing;
use crate::kernel::variant;
use crate::units::{Bytes, List, Share, Time};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// Cache lines of a page.
const LINES_PER_PAGE: u32 = 64;

/// Accesses of some threads to one region. Threads are busy: between two accesses a thread computes for `think` of its
/// own CPU time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "AccessText", into = "AccessText")]
pub struct Access {
    /// Region of the same process.
    pub region: String,
    /// Which threads.
    pub threads: Threads,
    /// Which pages in which order.
    pub pattern: Pattern,
    /// CPU time between two accesses.
    pub think: Time,
    /// Time asleep between two accesses.
    pub sleep: Time,
    /// Share of the accesses that write.
    pub write: Share,
    /// Way of access.
    pub via: Via,
    /// Cache lines of the page that an access reads, one after the other.
    pub lines: u32,
    /// Part of the region that a thread uses; `None`: by the region's sharing.
    pub sharing: Option<Sharing>,
    /// Accesses per thread; `None`: as many as fit into the phase.
    pub count: Option<u64>,
    /// A thread that has reached the end of its pages frees them and begins again, with new memory or a new file.
    pub recycle: bool,
    /// When accesses arrive; `None`: each follows the one before.
    pub arrival: Option<Arrival>,
}

/// Arrivals of an open loop: a thread begins an access when it has arrived, or when it is done with those before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Mean time from one to the next.
    pub interval: Time,
    /// How these times vary.
    pub law: ArrivalLaw,
}

/// Order of the pages. Each thread follows it in its part of the region on its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// One page after the other, from the beginning again at the end.
    Sequential,
    /// At this distance in bytes.
    Strided {
        /// Distance; a multiple of a page.
        stride: Bytes,
    },
    /// Every page is equally likely.
    Uniform,
    /// The page of rank r has a probability in proportion to r^-skew; ranks are spread over the region.
    Zipf {
        /// Exponent, above 0.
        skew: f64,
    },
    /// Some pages have most accesses.
    HotCold {
        /// Part of the pages that is hot, spread over the region.
        hot: Share,
        /// Share of the accesses to them.
        access_share: Share,
    },
}

/// Threads of a process: `"all"` or a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Threads {
    /// All of them.
    #[default]
    All,
    /// These, numbered from 0.
    These(List),
}

variant! {
    /// Way of access.
    pub enum Via {
        /// By the program itself, through its page tables.
        Mmap = "mmap",
        /// By `read(2)` and `write(2)` on the file.
        Syscall = "syscall",
    }
}

variant! {
    /// Times between arrivals.
    pub enum ArrivalLaw {
        /// All alike.
        Regular = "regular",
        /// Exponentially distributed: requests of many independent clients.
        Poisson = "poisson",
    }
}

variant! {
    /// Names of the patterns.
    pub enum PatternName {
        /// One page after the other.
        Sequential = "sequential",
        /// Every `stride` bytes.
        Strided = "strided",
        /// Every page is equally likely.
        Uniform = "uniform",
        /// By rank with exponent `skew`.
        Zipf = "zipf",
        /// A part `hot` of the pages has a part `access_share` of the accesses.
        HotCold = "hot-cold",
    }
}

/// An access as a scenario writes it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AccessText {
    /// Region of the same process.
    region: String,
    /// Threads that do it: "all" or a list such as "0-3".
    #[serde(default, skip_serializing_if = "Threads::is_all")]
    threads: Threads,
    /// Which pages in which order.
    pattern: PatternName,
    /// Distance of two accesses (pattern "strided").
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stride: Option<Bytes>,
    /// Exponent of the popularity of pages (pattern "zipf").
    #[serde(default, skip_serializing_if = "Option::is_none")]
    skew: Option<f64>,
    /// Part of the pages that is hot (pattern "hot-cold").
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hot: Option<Share>,
    /// Share of the accesses to hot pages (pattern "hot-cold").
    #[serde(default, skip_serializing_if = "Option::is_none")]
    access_share: Option<Share>,
    /// CPU time between two accesses.
    #[serde(default)]
    think: Time,
    /// Time asleep between two accesses.
    #[serde(default)]
    sleep: Time,
    /// Share of the accesses that write.
    #[serde(default)]
    write: Share,
    /// Way of access.
    #[serde(default = "mmap")]
    via: Via,
    /// Cache lines of the page that an access reads, one after the other, each after a miss: 1 to 64.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    lines: u32,
    /// Part of the region that a thread uses; absent: by the region's sharing. With "shared" a thread uses the parts of
    /// all threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sharing: Option<Sharing>,
    /// Accesses per thread; absent: as many as fit into the phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    /// A thread that has reached the end of its pages frees them and begins again (pattern "sequential"): memory as of
    /// a program that ends and runs again, a file as one that is deleted and made again.
    #[serde(default, skip_serializing_if = "is_false")]
    recycle: bool,
    /// Mean time from one request to the next, of each thread (open loop). A request waits until the thread is done with
    /// those before; its latency counts from its arrival. Absent: each access follows the one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    arrival: Option<Time>,
    /// How the times between arrivals vary (with `arrival`; default regular): poisson stands for many independent clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    arrivals: Option<ArrivalLaw>,
}

fn mmap() -> Via {
    Via::Mmap
}

fn one() -> u32 {
    1
}

fn is_one(lines: &u32) -> bool {
    *lines == 1
}

fn is_false(value: &bool) -> bool {
    !value
}

/// A key that the pattern does not have. The text begins with the key, by which its place is found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// The pattern needs a key.
    #[error("pattern: \"{0}\" needs `{1}`")]
    Needs(PatternName, &'static str),
    /// A key of another pattern.
    #[error("{0}: pattern \"{1}\" has no such key")]
    Foreign(&'static str, PatternName),
    /// A value out of range.
    #[error("{0}: {1}")]
    Range(&'static str, &'static str),
}

impl TryFrom<AccessText> for Access {
    type Error = AccessError;

    fn try_from(text: AccessText) -> Result<Access, AccessError> {
        use PatternName::{HotCold, Sequential, Strided, Uniform, Zipf};
        let name = text.pattern;
        let given = [
            ("stride", text.stride.is_some(), Strided),
            ("skew", text.skew.is_some(), Zipf),
            ("hot", text.hot.is_some(), HotCold),
            ("access_share", text.access_share.is_some(), HotCold),
        ];
        if let Some((key, ..)) = given.iter().find(|(_, given, of)| *given && *of != name) {
            return Err(AccessError::Foreign(key, name));
        }
        let needs = |key| AccessError::Needs(name, key);
        let pattern = match name {
            Sequential => Pattern::Sequential,
            Uniform => Pattern::Uniform,
            Strided => {
                let stride = text.stride.ok_or_else(|| needs("stride"))?;
                if stride.0 == 0 || stride.0 % crate::units::PAGE != 0 {
                    return Err(AccessError::Range("stride", "a stride is a multiple of a page of 4 KiB"));
                }
                Pattern::Strided { stride }
            }
            Zipf => {
                let skew = text.skew.ok_or_else(|| needs("skew"))?;
                if !(skew > 0.0 && skew <= 10.0) {
                    return Err(AccessError::Range("skew", "a skew is above 0 and at most 10; 0 is \"uniform\""));
                }
                Pattern::Zipf { skew }
            }
            HotCold => Pattern::HotCold {
                hot: text.hot.ok_or_else(|| needs("hot"))?,
                access_share: text.access_share.ok_or_else(|| needs("access_share"))?,
            },
        };
        if !(1..=LINES_PER_PAGE).contains(&text.lines) {
            return Err(AccessError::Range("lines", "a page has 64 cache lines, and an access reads at least one"));
        }
        if text.recycle && name != Sequential {
            return Err(AccessError::Range("recycle", "only pattern \"sequential\" reaches the end of its pages"));
        }
        if text.arrival.is_none() && text.arrivals.is_some() {
            return Err(AccessError::Range("arrivals", "they need `arrival`, the mean time between them"));
        }
        if text.arrival == Some(Time(0)) {
            return Err(AccessError::Range("arrival", "a time between arrivals is above 0"));
        }
        if text.arrival.is_some() && text.sleep > Time(0) {
            return Err(AccessError::Range("sleep", "a thread whose accesses arrive sleeps until the next one"));
        }
        let law = text.arrivals.unwrap_or(ArrivalLaw::Regular);
        let arrival = text.arrival.map(|interval| Arrival { interval, law });
        let AccessText { region, threads, think, sleep, write, via, lines, sharing, count, recycle, .. } = text;
        Ok(Access { region, threads, pattern, think, sleep, write, via, lines, sharing, count, recycle, arrival })
    }
}

impl From<Access> for AccessText {
    fn from(access: Access) -> AccessText {
        let Access { region, threads, pattern, think, sleep, write, via, lines, sharing, count, .. } = access;
        let name = match pattern {
            Pattern::Sequential => PatternName::Sequential,
            Pattern::Strided { .. } => PatternName::Strided,
            Pattern::Uniform => PatternName::Uniform,
            Pattern::Zipf { .. } => PatternName::Zipf,
            Pattern::HotCold { .. } => PatternName::HotCold,
        };
        let (mut stride, mut skew, mut hot, mut access_share) = (None, None, None, None);
        match pattern {
            Pattern::Strided { stride: s } => stride = Some(s),
            Pattern::Zipf { skew: s } => skew = Some(s),
            Pattern::HotCold { hot: h, access_share: t } => (hot, access_share) = (Some(h), Some(t)),
            Pattern::Sequential | Pattern::Uniform => {}
        }
        AccessText {
            region,
            threads,
            pattern: name,
            stride,
            skew,
            hot,
            access_share,
            think,
            sleep,
            write,
            via,
            lines,
            sharing,
            count,
            recycle: access.recycle,
            arrival: access.arrival.map(|arrival| arrival.interval),
            arrivals: access.arrival.map(|arrival| arrival.law),
        }
    }
}

impl JsonSchema for Access {
    fn schema_name() -> Cow<'static, str> {
        "Access".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        AccessText::json_schema(generator)
    }
}

impl Threads {
    pub(crate) fn is_all(&self) -> bool {
        *self == Threads::All
    }

    /// True if a thread is one of them.
    pub fn contain(&self, number: u32) -> bool {
        match self {
            Threads::All => true,
            Threads::These(list) => list.contains(number),
        }
    }

    /// The numbers of the threads, of a process with this many.
    pub fn numbers(&self, threads: u32) -> Vec<u32> {
        match self {
            Threads::All => (0..threads).collect(),
            Threads::These(list) => list.numbers().to_vec(),
        }
    }
}

impl fmt::Display for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Threads::All => f.write_str("all"),
            Threads::These(list) => list.fmt(f),
        }
    }
}

impl Serialize for Threads {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Threads {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Threads;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"all\" or a list of threads such as \"0-3\"")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Threads, E> {
                match text {
                    "all" => Ok(Threads::All),
                    _ => text.parse().map(Threads::These).map_err(E::custom),
                }
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Threads, E> {
                self.visit_str(&number.to_string())
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Threads, E> {
                self.visit_str(&number.to_string())
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl JsonSchema for Threads {
    fn schema_name() -> Cow<'static, str> {
        "Threads".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let list = generator.subschema_for::<List>();
        json_schema!({ "anyOf": [{ "const": "all" }, list] })
    }
}
