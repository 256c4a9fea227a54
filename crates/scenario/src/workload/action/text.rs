//! An action as a scenario writes it: one flat table, whose keys depend on `kind`.

use super::{Action, ActionKind, Advice, Discard, Gfp, Limit, ReadFile, VmallocTest};
use crate::kernel::variant;
use crate::units::{Bytes, List, PageRate, Share, Time};
use crate::workload::{Policy, Threads};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

variant! {
    /// Names of the actions.
    pub enum ActionName {
        /// Allocates pages and frees them.
        PageLoop = "page-loop",
        /// Allocates pages and keeps them.
        PageHog = "page-hog",
        /// Tries to allocate blocks and keeps them.
        HighOrderAlloc = "high-order-alloc",
        /// The kernel's vmalloc stress test.
        VmallocTest = "vmalloc-test",
        /// Reads a statistics file.
        Read = "read",
        /// Takes CPUs offline.
        CpuOffline = "cpu-offline",
        /// Brings CPUs online.
        CpuOnline = "cpu-online",
        /// Writes a sysctl.
        Sysctl = "sysctl",
        /// Loads a kernel module and unloads it again.
        ModuleCycle = "module-cycle",
        /// Looks up names that do not exist.
        Lookup = "lookup",
        /// Gives pages of a region back.
        Madvise = "madvise",
        /// Unmaps pages of a region and maps the place again.
        Munmap = "munmap",
        /// Writes a limit of a cgroup.
        CgroupLimit = "cgroup-limit",
        /// Reclaims memory of a cgroup.
        MemoryReclaim = "memory-reclaim",
        /// Does nothing for a time.
        Sleep = "sleep",
    }
}

/// An action as a scenario writes it.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ActionText {
    /// Kind of the action.
    kind: ActionName,
    /// Threads that do it: "all" or a list such as "0-3".
    #[serde(default, skip_serializing_if = "Threads::is_all")]
    threads: Threads,
    /// Order of each allocation, 0 to 10 (page-loop, page-hog; default 0), or 1 to 13 (high-order-alloc).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    order: Option<u32>,
    /// Allocation flags (page-loop, page-hog; default GFP_KERNEL; high-order-alloc; default GFP_HIGHUSER_MOVABLE).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gfp: Option<Gfp>,
    /// Preferred node (page-loop, page-hog), or node whose file is read (read).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    node: Option<u32>,
    /// Memory policy (page-loop, page-hog; default that of the process).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    policy: Option<Policy>,
    /// Allocations held before they are freed (page-loop; default 1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hold: Option<u64>,
    /// Allocations, attempts, readings, cycles or names per thread (page-loop, page-hog, high-order-alloc, read, module-cycle,
    /// lookup); absent: until the phase ends. Calls per thread (madvise, munmap; default 1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    /// Pages per second and thread (page-loop, page-hog); absent: as fast as possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rate: Option<PageRate>,
    /// Tests that each thread runs (vmalloc-test).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tests: Option<Vec<VmallocTest>>,
    /// Rounds of each test (vmalloc-test; default 1000000).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    loops: Option<u64>,
    /// Runs of each test (vmalloc-test; default 1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    repeat: Option<u32>,
    /// Pages of each allocation of fix_size_alloc_test (vmalloc-test; default 1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pages: Option<u32>,
    /// File (read).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    file: Option<ReadFile>,
    /// Time from one reading to the next (read), or from the start of one attempt or call to that of the next
    /// (high-order-alloc, madvise, munmap); default without a pause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    interval: Option<Time>,
    /// Every attempt is retried as long as reclaim makes progress (high-order-alloc): `__GFP_REPEAT`, since 4.13
    /// `__GFP_RETRY_MAYFAIL`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gfp_retry_mayfail: Option<bool>,
    /// CPUs (cpu-offline, cpu-online).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cpus: Option<List>,
    /// Name of the sysctl, such as vm.numa_stat (sysctl), of the module, such as xfs (module-cycle), or of the cgroup
    /// (cgroup-limit, memory-reclaim).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Value (sysctl).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    value: Option<u64>,
    /// Region of which pages are freed (madvise, munmap).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    region: Option<String>,
    /// Advice (madvise): dontneed frees at once, free lets reclaim free what is not written before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    advice: Option<Advice>,
    /// Where the pages begin, as a share of the thread's part of the region (madvise, munmap; default 0).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<Share>,
    /// Where they end (madvise, munmap; default 1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    to: Option<Share>,
    /// Limit that is written, by its file (cgroup-limit).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    limit: Option<Limit>,
    /// Value of the limit (cgroup-limit; absent: no limit, or no protection), or memory to reclaim (memory-reclaim).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<Bytes>,
    /// How long (sleep).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    time: Option<Time>,
}

/// A key that the action does not have. The text begins with the key, by which its place is found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ActionError {
    /// The action needs a key.
    #[error("kind: \"{0}\" needs `{1}`")]
    Needs(ActionName, &'static str),
    /// A key of another action.
    #[error("{0}: action \"{1}\" has no such key")]
    Foreign(&'static str, ActionName),
    /// A value out of range.
    #[error("{0}: {1}")]
    Range(&'static str, &'static str),
}

/// Keys of each action besides `kind` and `threads`.
fn keys(name: ActionName) -> &'static [&'static str] {
    match name {
        ActionName::PageLoop => &["order", "gfp", "node", "policy", "hold", "count", "rate"],
        ActionName::PageHog => &["order", "gfp", "node", "policy", "count", "rate"],
        ActionName::HighOrderAlloc => &["order", "gfp", "count", "interval", "gfp_retry_mayfail"],
        ActionName::VmallocTest => &["tests", "loops", "repeat", "pages"],
        ActionName::Read => &["file", "node", "count", "interval"],
        ActionName::CpuOffline | ActionName::CpuOnline => &["cpus"],
        ActionName::Sysctl => &["name", "value"],
        ActionName::ModuleCycle => &["name", "count"],
        ActionName::Lookup => &["count"],
        ActionName::Madvise => &["region", "advice", "from", "to", "count", "interval"],
        ActionName::Munmap => &["region", "from", "to", "count", "interval"],
        ActionName::CgroupLimit => &["name", "limit", "size"],
        ActionName::MemoryReclaim => &["name", "size"],
        ActionName::Sleep => &["time"],
    }
}

impl ActionText {
    /// The keys that are given, besides `kind` and `threads`.
    fn given(&self) -> impl Iterator<Item = &'static str> {
        [
            ("order", self.order.is_some()),
            ("gfp", self.gfp.is_some()),
            ("node", self.node.is_some()),
            ("policy", self.policy.is_some()),
            ("hold", self.hold.is_some()),
            ("count", self.count.is_some()),
            ("rate", self.rate.is_some()),
            ("tests", self.tests.is_some()),
            ("loops", self.loops.is_some()),
            ("repeat", self.repeat.is_some()),
            ("pages", self.pages.is_some()),
            ("file", self.file.is_some()),
            ("interval", self.interval.is_some()),
            ("gfp_retry_mayfail", self.gfp_retry_mayfail.is_some()),
            ("cpus", self.cpus.is_some()),
            ("name", self.name.is_some()),
            ("value", self.value.is_some()),
            ("region", self.region.is_some()),
            ("advice", self.advice.is_some()),
            ("from", self.from.is_some()),
            ("to", self.to.is_some()),
            ("limit", self.limit.is_some()),
            ("size", self.size.is_some()),
            ("time", self.time.is_some()),
        ]
        .into_iter()
        .filter(|(_, given)| *given)
        .map(|(key, _)| key)
    }
}

/// A value within its limits, or an error that names the key.
fn within<T: PartialOrd>(
    key: &'static str,
    value: T,
    limits: std::ops::RangeInclusive<T>,
    message: &'static str,
) -> Result<T, ActionError> {
    if limits.contains(&value) { Ok(value) } else { Err(ActionError::Range(key, message)) }
}

impl TryFrom<ActionText> for Action {
    type Error = ActionError;

    fn try_from(text: ActionText) -> Result<Action, ActionError> {
        let name = text.kind;
        if let Some(key) = text.given().find(|key| !keys(name).contains(key)) {
            return Err(ActionError::Foreign(key, name));
        }
        let needs = |key| ActionError::Needs(name, key);
        let order = match name {
            ActionName::HighOrderAlloc => {
                let order = text.order.ok_or_else(|| needs("order"))?;
                within("order", order, 1..=13, "orders are 1 to 13")?
            }
            _ => within("order", text.order.unwrap_or(0), 0..=10, "orders are 0 to 10")?,
        };
        let gfp = text.gfp.unwrap_or(Gfp::Kernel);
        let ActionText { threads, node, policy, count, rate, .. } = text;
        if rate == Some(PageRate(0)) {
            return Err(ActionError::Range("rate", "a rate is above 0"));
        }
        let kind = match name {
            ActionName::PageLoop => {
                let hold = within("hold", text.hold.unwrap_or(1), 1..=1 << 32, "1 to 2^32 allocations are held")?;
                ActionKind::PageLoop { order, gfp, node, policy, hold, count, rate }
            }
            ActionName::PageHog => ActionKind::PageHog { order, gfp, node, policy, count, rate },
            ActionName::HighOrderAlloc => ActionKind::HighOrderAlloc {
                order,
                gfp: text.gfp.unwrap_or(Gfp::HighuserMovable),
                count: within("count", count.ok_or_else(|| needs("count"))?, 1..=1 << 32, "1 to 2^32 attempts")?,
                interval: text.interval.unwrap_or_default(),
                gfp_retry_mayfail: text.gfp_retry_mayfail.unwrap_or_default(),
            },
            ActionName::VmallocTest => {
                let tests = text.tests.ok_or_else(|| needs("tests"))?;
                if tests.is_empty() || (1..tests.len()).any(|i| tests[..i].contains(&tests[i])) {
                    return Err(ActionError::Range("tests", "at least one test, and none twice"));
                }
                let positive = "at least 1";
                ActionKind::VmallocTest {
                    tests,
                    loops: within("loops", text.loops.unwrap_or(1_000_000), 1..=u64::MAX, positive)?,
                    repeat: within("repeat", text.repeat.unwrap_or(1), 1..=u32::MAX, positive)?,
                    pages: within("pages", text.pages.unwrap_or(1), 1..=u32::MAX, positive)?,
                }
            }
            ActionName::Read => {
                let file = text.file.ok_or_else(|| needs("file"))?;
                if node.is_some() && !matches!(file, ReadFile::Numastat | ReadFile::NodeVmstat) {
                    return Err(ActionError::Range("node", "only numastat and node-vmstat are files of a node"));
                }
                ActionKind::Read { file, node, count, interval: text.interval.unwrap_or_default() }
            }
            ActionName::CpuOffline => ActionKind::CpuOffline { cpus: text.cpus.ok_or_else(|| needs("cpus"))? },
            ActionName::CpuOnline => ActionKind::CpuOnline { cpus: text.cpus.ok_or_else(|| needs("cpus"))? },
            ActionName::Sysctl => ActionKind::Sysctl {
                name: text.name.ok_or_else(|| needs("name"))?,
                value: text.value.ok_or_else(|| needs("value"))?,
            },
            ActionName::ModuleCycle => {
                let name = text.name.ok_or_else(|| needs("name"))?;
                if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-') {
                    return Err(ActionError::Range("name", "a module's name has letters, digits, _ and - only"));
                }
                ActionKind::ModuleCycle { name, count }
            }
            ActionName::Lookup => ActionKind::Lookup { count },
            ActionName::Madvise | ActionName::Munmap => {
                let how = match name {
                    ActionName::Munmap => Discard::Unmap,
                    _ => Discard::Advice(text.advice.ok_or_else(|| needs("advice"))?),
                };
                let range = [text.from.unwrap_or_default(), text.to.unwrap_or(Share::WHOLE)];
                if range[0] >= range[1] {
                    let key = if text.to.is_some() { "to" } else { "from" };
                    return Err(ActionError::Range(key, "the pages end behind their beginning"));
                }
                ActionKind::Discard {
                    region: text.region.ok_or_else(|| needs("region"))?,
                    how,
                    range,
                    count: within("count", count.unwrap_or(1), 1..=1 << 32, "1 to 2^32 calls")?,
                    interval: text.interval.unwrap_or_default(),
                }
            }
            ActionName::CgroupLimit => ActionKind::CgroupLimit {
                cgroup: text.name.ok_or_else(|| needs("name"))?,
                limit: text.limit.ok_or_else(|| needs("limit"))?,
                size: text.size,
            },
            ActionName::MemoryReclaim => ActionKind::MemoryReclaim {
                cgroup: text.name.ok_or_else(|| needs("name"))?,
                size: text.size.ok_or_else(|| needs("size"))?,
            },
            ActionName::Sleep => ActionKind::Sleep { time: text.time.ok_or_else(|| needs("time"))? },
        };
        Ok(Action { threads, kind })
    }
}

impl From<Action> for ActionText {
    fn from(action: Action) -> ActionText {
        let mut text = ActionText { threads: action.threads, ..ActionText::empty(ActionName::Sleep) };
        text.kind = match action.kind {
            ActionKind::PageLoop { order, gfp, node, policy, hold, count, rate } => {
                (text.order, text.gfp, text.hold) = (Some(order), Some(gfp), Some(hold));
                (text.node, text.policy, text.count, text.rate) = (node, policy, count, rate);
                ActionName::PageLoop
            }
            ActionKind::PageHog { order, gfp, node, policy, count, rate } => {
                (text.order, text.gfp) = (Some(order), Some(gfp));
                (text.node, text.policy, text.count, text.rate) = (node, policy, count, rate);
                ActionName::PageHog
            }
            ActionKind::HighOrderAlloc { order, gfp, count, interval, gfp_retry_mayfail } => {
                (text.order, text.gfp, text.count) = (Some(order), Some(gfp), Some(count));
                (text.interval, text.gfp_retry_mayfail) = (Some(interval), Some(gfp_retry_mayfail));
                ActionName::HighOrderAlloc
            }
            ActionKind::VmallocTest { tests, loops, repeat, pages } => {
                (text.tests, text.loops) = (Some(tests), Some(loops));
                (text.repeat, text.pages) = (Some(repeat), Some(pages));
                ActionName::VmallocTest
            }
            ActionKind::Read { file, node, count, interval } => {
                (text.file, text.node, text.count, text.interval) = (Some(file), node, count, Some(interval));
                ActionName::Read
            }
            ActionKind::CpuOffline { cpus } => {
                text.cpus = Some(cpus);
                ActionName::CpuOffline
            }
            ActionKind::CpuOnline { cpus } => {
                text.cpus = Some(cpus);
                ActionName::CpuOnline
            }
            ActionKind::Sysctl { name, value } => {
                (text.name, text.value) = (Some(name), Some(value));
                ActionName::Sysctl
            }
            ActionKind::ModuleCycle { name, count } => {
                (text.name, text.count) = (Some(name), count);
                ActionName::ModuleCycle
            }
            ActionKind::Lookup { count } => {
                text.count = count;
                ActionName::Lookup
            }
            ActionKind::Discard { region, how, range: [from, to], count, interval } => {
                (text.region, text.count, text.interval) = (Some(region), Some(count), Some(interval));
                (text.from, text.to) = (Some(from), Some(to));
                match how {
                    Discard::Advice(advice) => {
                        text.advice = Some(advice);
                        ActionName::Madvise
                    }
                    Discard::Unmap => ActionName::Munmap,
                }
            }
            ActionKind::CgroupLimit { cgroup, limit, size } => {
                (text.name, text.limit, text.size) = (Some(cgroup), Some(limit), size);
                ActionName::CgroupLimit
            }
            ActionKind::MemoryReclaim { cgroup, size } => {
                (text.name, text.size) = (Some(cgroup), Some(size));
                ActionName::MemoryReclaim
            }
            ActionKind::Sleep { time } => {
                text.time = Some(time);
                ActionName::Sleep
            }
        };
        text
    }
}

impl ActionText {
    /// An action without keys.
    fn empty(kind: ActionName) -> ActionText {
        ActionText {
            kind,
            threads: Threads::All,
            order: None,
            gfp: None,
            node: None,
            policy: None,
            hold: None,
            count: None,
            rate: None,
            tests: None,
            loops: None,
            repeat: None,
            pages: None,
            file: None,
            interval: None,
            gfp_retry_mayfail: None,
            cpus: None,
            name: None,
            value: None,
            region: None,
            advice: None,
            from: None,
            to: None,
            limit: None,
            size: None,
            time: None,
        }
    }
}

impl JsonSchema for Action {
    fn schema_name() -> Cow<'static, str> {
        "Action".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        ActionText::json_schema(generator)
    }
}
