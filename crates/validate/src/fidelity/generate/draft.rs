//! A scenario as it is drawn, and its text. Sizes are in MiB, times in the unit of the field's name.

use super::machine::Machine;
use std::fmt::Write;

/// Largest region in percent of the memory that is free after the boot: what a guest reads in time.
const LARGEST: u64 = 150;

/// A scenario.
pub struct Draft {
    /// Its machine.
    pub machine: Machine,
    /// cgroups, a parent before its children.
    pub cgroups: Vec<Cgroup>,
    /// Processes.
    pub processes: Vec<Process>,
    /// MiB of anonymous and shared memory that still fit into memory and swap.
    room: u64,
    /// How much larger sizes are than those of a machine that has memory for all, in percent.
    pressure: u64,
}

/// A memory cgroup. Absent limits are not set.
#[derive(Clone, Default)]
pub struct Cgroup {
    /// Its path.
    pub name: String,
    /// Limits by the names of their files, in MiB.
    pub limits: Vec<(&'static str, u64)>,
}

/// A process.
#[derive(Clone, Default)]
pub struct Process {
    /// Its name.
    pub name: String,
    /// Threads; 0 stands for one.
    pub threads: u64,
    /// CPUs that it may run on, as a list.
    pub cpus: Option<String>,
    /// Each thread has a CPU of its own.
    pub pin: bool,
    /// Memory policy.
    pub policy: Option<String>,
    /// When it starts.
    pub start_ms: u64,
    /// Its cgroup.
    pub cgroup: Option<String>,
    /// Its memory.
    pub regions: Vec<Region>,
    /// Its work.
    pub phases: Vec<Phase>,
}

/// Memory of a process.
#[derive(Clone, Default)]
pub struct Region {
    /// Its name.
    pub name: &'static str,
    /// Its size.
    pub mib: u64,
    /// `file` or `shmem`; absent: anonymous memory.
    pub kind: Option<&'static str>,
    /// Name of a file that processes share.
    pub file: Option<String>,
    /// Each thread uses a part of its own.
    pub private: bool,
    /// Accessed once before the first phase.
    pub populate: bool,
    /// Policy meanwhile.
    pub populate_policy: Option<String>,
    /// Its policy.
    pub policy: Option<String>,
    /// `madvise` or `never`.
    pub huge: Option<&'static str>,
    /// Mapped executable.
    pub exec: bool,
    /// Locked in memory.
    pub locked: bool,
}

/// A part of a process's work.
#[derive(Clone, Default)]
pub struct Phase {
    /// How long it lasts; absent: until all counts are reached.
    pub duration_ms: Option<u64>,
    /// Accesses.
    pub accesses: Vec<Access>,
    /// Actions: keys and their values as TOML has them.
    pub actions: Vec<Vec<(&'static str, String)>>,
}

/// Accesses to a region.
#[derive(Clone, Default)]
pub struct Access {
    /// The region.
    pub region: &'static str,
    /// Threads that make them, as a list; absent: all.
    pub threads: Option<String>,
    /// Which pages.
    pub pattern: Pattern,
    /// By read(2) and write(2).
    pub syscall: bool,
    /// Percentage that writes.
    pub write: u64,
    /// Time of computing in between.
    pub think_us: u64,
    /// Time asleep in between.
    pub sleep_us: u64,
    /// How many per thread; absent: until the phase ends.
    pub count: Option<u64>,
}

/// Which pages are accessed in which order.
#[derive(Clone, Copy, Default)]
pub enum Pattern {
    /// All alike.
    #[default]
    Uniform,
    /// In order.
    Sequential,
    /// At a distance in KiB.
    Strided(u64),
    /// By rank, with an exponent in tenths.
    Zipf(u64),
    /// A hot part and its share of the accesses, in percent.
    HotCold(u64, u64),
}

/// Anonymous memory.
pub fn anon(name: &'static str, mib: u64) -> Region {
    Region { name, mib, ..Region::default() }
}

/// A file.
pub fn file(name: &'static str, mib: u64) -> Region {
    Region { name, mib: mib.max(1), kind: Some("file"), ..Region::default() }
}

/// Pages of a size.
pub fn pages(mib: u64) -> u64 {
    256 * mib
}

impl Draft {
    /// Without a workload.
    pub fn new(machine: Machine, pressure: u64) -> Draft {
        // Without swap page cache needs some of it.
        let room = match machine.swap_mib() {
            0 => machine.usable() * 85 / 100,
            swap => machine.usable() + swap * 75 / 100,
        };
        Draft { machine, cgroups: Vec::new(), processes: Vec::new(), room, pressure }
    }

    /// So many percent of the memory that is free after the boot, more under pressure, for files.
    pub fn part(&self, percent: u64) -> u64 {
        (self.machine.usable() * (percent * self.pressure / 100).min(LARGEST) / 100).max(2)
    }

    /// The same for anonymous memory, of which no more is given than memory and swap hold.
    pub fn anon(&mut self, percent: u64) -> u64 {
        self.take(self.part(percent))
    }

    /// So many MiB of anonymous memory, or what is left.
    pub fn take(&mut self, mib: u64) -> u64 {
        let given = mib.min(self.room).max(2);
        self.room = self.room.saturating_sub(given);
        given
    }

    /// The cgroups and processes as TOML.
    pub fn text(&self) -> String {
        let mut text = String::new();
        self.cgroups.iter().for_each(|cgroup| cgroup.text(&mut text));
        self.processes.iter().for_each(|process| process.text(&mut text));
        text
    }
}

/// A line `key = value`.
fn line(text: &mut String, key: &str, value: impl std::fmt::Display) {
    let _ = writeln!(text, "{key} = {value}");
}

/// A line `key = "value"` if there is a value.
fn word(text: &mut String, key: &str, value: Option<&str>) {
    if let Some(value) = value {
        line(text, key, format_args!("\"{value}\""));
    }
}

/// A line `key = true` if it is.
fn flag(text: &mut String, key: &str, value: bool) {
    if value {
        line(text, key, true);
    }
}

impl Cgroup {
    fn text(&self, text: &mut String) {
        text.push_str("\n[[cgroup]]\n");
        word(text, "name", Some(&self.name));
        for (file, mib) in &self.limits {
            line(text, file, format_args!("\"{mib} MiB\""));
        }
    }
}

impl Process {
    fn text(&self, text: &mut String) {
        text.push_str("\n[[process]]\n");
        word(text, "name", Some(&self.name));
        if self.threads > 1 {
            line(text, "threads", self.threads);
        }
        word(text, "cpus", self.cpus.as_deref());
        flag(text, "pin", self.pin);
        word(text, "policy", self.policy.as_deref());
        if self.start_ms > 0 {
            line(text, "start", format_args!("\"{} ms\"", self.start_ms));
        }
        word(text, "cgroup", self.cgroup.as_deref());
        self.regions.iter().for_each(|region| region.text(text));
        self.phases.iter().for_each(|phase| phase.text(text));
    }
}

impl Region {
    fn text(&self, text: &mut String) {
        text.push_str("\n[[process.region]]\n");
        word(text, "name", Some(self.name));
        line(text, "size", format_args!("\"{} MiB\"", self.mib));
        word(text, "kind", self.kind);
        word(text, "file", self.file.as_deref());
        word(text, "sharing", self.private.then_some("private"));
        flag(text, "populate", self.populate);
        word(text, "populate_policy", self.populate_policy.as_deref());
        word(text, "policy", self.policy.as_deref());
        word(text, "huge", self.huge);
        flag(text, "exec", self.exec);
        flag(text, "locked", self.locked);
    }
}

impl Phase {
    fn text(&self, text: &mut String) {
        text.push_str("\n[[process.phase]]\n");
        if let Some(ms) = self.duration_ms {
            line(text, "duration", format_args!("\"{ms} ms\""));
        }
        self.accesses.iter().for_each(|access| access.text(text));
        for action in &self.actions {
            text.push_str("[[process.phase.action]]\n");
            action.iter().for_each(|(key, value)| line(text, key, value));
        }
    }
}

impl Access {
    fn text(&self, text: &mut String) {
        text.push_str("[[process.phase.access]]\n");
        word(text, "region", Some(self.region));
        word(text, "threads", self.threads.as_deref());
        match self.pattern {
            Pattern::Uniform => word(text, "pattern", Some("uniform")),
            Pattern::Sequential => word(text, "pattern", Some("sequential")),
            Pattern::Strided(kib) => {
                word(text, "pattern", Some("strided"));
                line(text, "stride", format_args!("\"{kib} KiB\""));
            }
            Pattern::Zipf(tenths) => {
                word(text, "pattern", Some("zipf"));
                line(text, "skew", format_args!("{}.{}", tenths / 10, tenths % 10));
            }
            Pattern::HotCold(hot, share) => {
                word(text, "pattern", Some("hot-cold"));
                line(text, "hot", format_args!("\"{hot} %\""));
                line(text, "access_share", format_args!("\"{share} %\""));
            }
        }
        word(text, "via", self.syscall.then_some("syscall"));
        if self.write > 0 {
            line(text, "write", format_args!("\"{} %\"", self.write));
        }
        if self.think_us > 0 {
            line(text, "think", format_args!("\"{} us\"", self.think_us));
        }
        if self.sleep_us > 0 {
            line(text, "sleep", format_args!("\"{} us\"", self.sleep_us));
        }
        if let Some(count) = self.count {
            line(text, "count", count.max(1));
        }
    }
}
