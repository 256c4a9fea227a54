//! The tracks of a trace, made as they are needed: of CPUs, of threads below their processes, and of counters below
//! the cgroup, node, zone or file that has them.

use super::packets::Packets;
use super::proto::Message;
use mmtwin_event::{CounterRow, Source};
use rustc_hash::FxHashMap;
use std::io::Write;

/// Children of a track stand in the order of their ranks.
const BY_RANK: u64 = 3;

/// Tracks by what they are of, and what is known of tasks.
#[derive(Default)]
pub(super) struct Tracks {
    last: u64,
    cpus: Option<u64>,
    cpu: FxHashMap<u32, u64>,
    processes: FxHashMap<i32, u64>,
    threads: FxHashMap<i32, u64>,
    tasks: FxHashMap<i32, Known>,
    groups: FxHashMap<(String, String), u64>,
    counters: FxHashMap<String, Counter>,
    /// Key of a counter, used again.
    key: String,
}

/// What was announced of a task.
#[derive(Clone, Default)]
pub(super) struct Known {
    /// Thread group, 0: not known.
    pub tgid: i32,
    /// Name.
    pub comm: Vec<u8>,
    /// Path.
    pub cgroup: Option<String>,
}

/// A counter: its track, once it had a value other than 0, and its last value.
#[derive(Clone, Copy, Default)]
struct Counter {
    track: Option<u64>,
    value: u64,
}

impl Tracks {
    /// A number that no other track has.
    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Notes a task.
    pub fn task(&mut self, pid: i32, known: Known) {
        self.tasks.insert(pid, known);
    }

    /// What is known of a task.
    pub fn known(&self, pid: i32) -> Option<&Known> {
        self.tasks.get(&pid)
    }

    /// The track above those of all CPUs.
    pub fn cpus<W: Write>(&mut self, packets: &mut Packets<W>) -> u64 {
        if let Some(track) = self.cpus {
            return track;
        }
        let track = self.next();
        self.cpus = Some(track);
        let mut descriptor = Message::default();
        descriptor.number(1, track).text(2, b"CPUs").number(11, BY_RANK);
        packets.track(&mut descriptor);
        track
    }

    /// The track of a CPU.
    pub fn cpu<W: Write>(&mut self, cpu: u32, source: &Source, packets: &mut Packets<W>) -> u64 {
        if let Some(track) = self.cpu.get(&cpu) {
            return *track;
        }
        let (parent, track) = (self.cpus(packets), self.next());
        self.cpu.insert(cpu, track);
        let name = match source.cpu_nodes.get(cpu as usize) {
            Some(node) => format!("CPU {cpu}, node {node}"),
            None => format!("CPU {cpu}"),
        };
        let mut descriptor = Message::default();
        descriptor.number(1, track).text(2, name.as_bytes()).number(5, parent).number(12, cpu.into());
        packets.track(&mut descriptor);
        track
    }

    /// The track of a thread. `tgid` and `comm` are those of the event, 0 and empty where it has none.
    pub fn thread<W: Write>(&mut self, pid: i32, tgid: i32, comm: &[u8], packets: &mut Packets<W>) -> u64 {
        if let Some(track) = self.threads.get(&pid) {
            return *track;
        }
        let known = self.tasks.get(&pid);
        let group = Some(tgid).filter(|t| *t > 0).or(known.map(|k| k.tgid).filter(|t| *t > 0)).unwrap_or(pid);
        let name = match (comm, known) {
            (b"" | b"<...>", Some(known)) => known.comm.clone(),
            (comm, _) => comm.to_vec(),
        };
        let parent = self.process(group, if group == pid { &name } else { b"" }, packets);
        let track = self.next();
        self.threads.insert(pid, track);
        let (mut descriptor, mut thread) = (Message::default(), Message::default());
        thread.signed(1, group.into()).signed(2, pid.into());
        if !name.is_empty() {
            thread.text(5, &name);
        }
        descriptor.number(1, track).message(4, &mut thread).number(5, parent);
        packets.track(&mut descriptor);
        track
    }

    fn process<W: Write>(&mut self, pid: i32, name: &[u8], packets: &mut Packets<W>) -> u64 {
        if let Some(track) = self.processes.get(&pid) {
            return *track;
        }
        let track = self.next();
        self.processes.insert(pid, track);
        let (mut descriptor, mut process) = (Message::default(), Message::default());
        process.signed(1, pid.into());
        let name =
            if name.is_empty() { self.tasks.get(&pid).map_or(b"".as_slice(), |known| &known.comm) } else { name };
        if !name.is_empty() {
            process.text(6, name);
        }
        descriptor.number(1, track).message(3, &mut process);
        packets.track(&mut descriptor);
        track
    }

    /// The values of a row that have changed, with their tracks.
    pub fn changed<W: Write>(&mut self, row: &CounterRow<'_>, packets: &mut Packets<W>) -> Vec<(u64, u64)> {
        let mut changed = Vec::new();
        for (name, value) in row.names.iter().zip(row.values) {
            let Some(value) = *value else { continue };
            self.key.clear();
            for part in [row.source, "\0", row.key, "\0", name] {
                self.key.push_str(part);
            }
            // Most counters of a machine are 0 and stay so: they have no track.
            let last = self.counters.get(&self.key).copied().unwrap_or_default();
            if last.value == value {
                continue;
            }
            let track = last.track.unwrap_or_else(|| self.counter(row, name, packets));
            self.counters.insert(self.key.clone(), Counter { track: Some(track), value });
            changed.push((track, value));
        }
        changed
    }

    fn counter<W: Write>(&mut self, row: &CounterRow<'_>, name: &str, packets: &mut Packets<W>) -> u64 {
        let parent = self.group(row, packets);
        let track = self.next();
        let (mut descriptor, mut counter) = (Message::default(), Message::default());
        // Of no unit that it names.
        counter.number(3, 0);
        descriptor.number(1, track).text(2, name.as_bytes()).number(5, parent).message(8, &mut counter);
        packets.track(&mut descriptor);
        track
    }

    fn group<W: Write>(&mut self, row: &CounterRow<'_>, packets: &mut Packets<W>) -> u64 {
        let key = (row.source.to_string(), row.key.to_string());
        if let Some(track) = self.groups.get(&key) {
            return *track;
        }
        let track = self.next();
        self.groups.insert(key, track);
        let name = match row.source {
            "cgroup" => format!("cgroup {}", row.key),
            "zoneinfo" => format!("zone {}", row.key),
            source if row.key.is_empty() => source.into(),
            source => format!("node {} {source}", row.key),
        };
        let mut descriptor = Message::default();
        descriptor.number(1, track).text(2, name.as_bytes());
        packets.track(&mut descriptor);
        track
    }
}
