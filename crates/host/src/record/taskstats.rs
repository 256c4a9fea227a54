//! The kernel's delay accounting of tasks, over generic netlink (`taskstats`).
//!
//! The kernel sums the time that a task waited by what it waited for (`kernel/delayacct.c`), and sends the sums when a
//! task ends to whoever has asked for the ends on some CPUs (`taskstats_exit`); those of a task that lives it gives on
//! demand. Both need root. Constants and offsets are those of `include/uapi/linux/taskstats.h`: the structure only
//! grows at its end, but for version 15 (Linux 6.14), which has fields inserted and is not read.

use rustix::io::{read, write};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Ends of tasks that wait to be read may take so much memory, in bytes: some thousand of them. The kernel takes it only
/// while they wait.
const RECEIVE_BYTES: libc::c_int = 8 << 20;
/// No message is longer: the largest has two structures of some 500 bytes.
const LONGEST: usize = 8192;

const HEADERS: usize = 20;
const CONTROLLER: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
const COMMAND_GET: u8 = 1;
const OF_PID: u16 = 1;
const REGISTER_CPUS: u16 = 3;
const STATS: u16 = 3;
const ONE_TASK: u16 = 4;
/// The version whose fields are elsewhere.
const VERSION_APART: u16 = 15;

/// What a task waited in nanoseconds, and bytes, by [`NAMES`].
pub type Delays = [u64; NAMES.len()];

/// What is waited for: a disk (reads that it waited for, and writes), pages read from swap within the read itself,
/// reclaim, pages that came back and were in use when they were evicted, compaction, copies of pages on write. Last, bytes
/// that it had read from disks, where the kernel counts them (CONFIG_TASK_IO_ACCOUNTING).
pub const NAMES: [&str; 7] =
    ["blkio_ns", "swapin_ns", "freepages_ns", "thrashing_ns", "compact_ns", "wpcopy_ns", "read_bytes"];
/// Of these are times.
pub const TIMES: usize = 6;
/// Where each total is in the structure; those of older kernels end before some.
const OFFSETS: [usize; NAMES.len()] = [40, 56, 320, 336, 360, 408, 248];

/// What the kernel says of one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfTask {
    /// Thread id.
    pub pid: i32,
    /// Thread group id; `None` before Linux 5.19.
    pub tgid: Option<i32>,
    /// Process id of its parent; those of the kernel are children of `kthreadd`, 2.
    pub parent: i32,
    /// Name.
    pub comm: String,
    /// Totals since it was started.
    pub delays: Delays,
}

/// A connection to the kernel.
pub struct Taskstats {
    socket: OwnedFd,
    family: u16,
    buffer: Vec<u8>,
}

impl Taskstats {
    /// A connection; an error where the kernel has no such statistics.
    pub fn open() -> io::Result<Taskstats> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: socket takes three numbers and gives a descriptor or -1.
        let fd = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_GENERIC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was made here and belongs to nobody else.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        let mut stats = Taskstats { socket, family: CONTROLLER, buffer: vec![0; LONGEST] };
        stats.ask(GET_FAMILY, FAMILY_NAME, b"TASKSTATS\0")?;
        let message = stats.receive()?.ok_or(io::ErrorKind::NotFound)?;
        let id = attributes(message.get(HEADERS..).unwrap_or_default()).find(|(kind, _)| *kind == FAMILY_ID);
        let id = id.and_then(|(_, value)| number::<2>(value, 0)).map(u16::from_ne_bytes);
        stats.family = id.ok_or(io::ErrorKind::NotFound)?;
        Ok(stats)
    }

    /// From now on the kernel sends the statistics of tasks that end on CPUs of a list as `0-3,8`.
    pub fn listen(&mut self, cpus: &str) -> io::Result<()> {
        let bytes = RECEIVE_BYTES;
        let size = (&raw const bytes).cast();
        let length = size_of::<libc::c_int>() as libc::socklen_t;
        let fd = self.socket.as_raw_fd();
        // SAFETY: the option's value is a number that lives through the call. Without it less room is there.
        unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, size, length) };
        self.ask(COMMAND_GET, REGISTER_CPUS, format!("{cpus}\0").as_bytes())
    }

    /// What has come of tasks that ended since the last call, and whether some was lost.
    pub fn ended(&mut self, mut take: impl FnMut(OfTask)) -> bool {
        let mut lost = false;
        // As many as fit into the buffer; more come with the next call.
        for _ in 0..RECEIVE_BYTES as usize / 512 {
            match self.receive() {
                Ok(Some(message)) => of_message(message).into_iter().for_each(&mut take),
                Ok(None) => break,
                Err(e) if e.raw_os_error() == Some(libc::ENOBUFS) => lost = true,
                Err(_) => break,
            }
        }
        lost
    }

    /// What the kernel says of a task that lives.
    pub fn of(&mut self, pid: i32) -> Option<OfTask> {
        self.ask(COMMAND_GET, OF_PID, &pid.to_ne_bytes()).ok()?;
        of_message(self.receive().ok()??)
    }

    fn ask(&self, command: u8, attribute: u16, value: &[u8]) -> io::Result<()> {
        let message = request(self.family, command, attribute, value);
        write(&self.socket, &message)?;
        Ok(())
    }

    /// The next message that is there; the kernel answers a request before the request's call returns.
    fn receive(&mut self) -> io::Result<Option<&[u8]>> {
        match read(&self.socket, &mut self.buffer[..]) {
            Ok(length) => match message_type(&self.buffer[..length]) {
                Some(libc::NLMSG_ERROR) => Err(io::ErrorKind::PermissionDenied.into()),
                _ => Ok(Some(&self.buffer[..length])),
            },
            Err(rustix::io::Errno::AGAIN) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }
}

fn request(family: u16, command: u8, attribute: u16, value: &[u8]) -> Vec<u8> {
    let padded = value.len().next_multiple_of(4);
    let mut message = Vec::with_capacity(HEADERS + 4 + padded);
    message.extend(((HEADERS + 4 + padded) as u32).to_ne_bytes());
    message.extend(family.to_ne_bytes());
    message.extend((libc::NLM_F_REQUEST as u16).to_ne_bytes());
    message.extend([0; 8]);
    message.extend([command, 1, 0, 0]);
    message.extend(((4 + value.len()) as u16).to_ne_bytes());
    message.extend(attribute.to_ne_bytes());
    message.extend(value);
    message.resize(HEADERS + 4 + padded, 0);
    message
}

fn message_type(message: &[u8]) -> Option<libc::c_int> {
    number::<2>(message, 4).map(|bytes| u16::from_ne_bytes(bytes).into())
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// Attributes of a message: type and value.
fn attributes(mut rest: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(number(rest, 0)?));
        let kind = u16::from_ne_bytes(number(rest, 2)?) & 0x3fff;
        let value = rest.get(4..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// The task in a message. One of a whole process, which follows the last of its threads, is passed over.
fn of_message(message: &[u8]) -> Option<OfTask> {
    let (_, task) = attributes(message.get(HEADERS..)?).find(|(kind, _)| *kind == ONE_TASK)?;
    let (_, stats) = attributes(task).find(|(kind, _)| *kind == STATS)?;
    of_stats(stats)
}

fn of_stats(stats: &[u8]) -> Option<OfTask> {
    let word = |at| number(stats, at).map(u32::from_ne_bytes);
    let total = |at| number(stats, at).map(u64::from_ne_bytes);
    if number(stats, 0).map(u16::from_ne_bytes)? == VERSION_APART {
        return None;
    }
    let comm = stats.get(80..112)?.split(|byte| *byte == 0).next()?;
    Some(OfTask {
        pid: word(128)? as i32,
        tgid: word(368).map(|tgid| tgid as i32),
        parent: word(132)? as i32,
        comm: String::from_utf8_lossy(comm).into_owned(),
        delays: OFFSETS.map(|at| total(at).unwrap_or(0)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats() -> Vec<u8> {
        let mut stats = vec![0u8; 416];
        stats[0] = 13;
        stats[80..83].copy_from_slice(b"dd\0");
        stats[128..132].copy_from_slice(&7u32.to_ne_bytes());
        stats[368..372].copy_from_slice(&5u32.to_ne_bytes());
        stats[320..328].copy_from_slice(&9_000u64.to_ne_bytes());
        stats
    }

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        request(0, 0, kind, value)[HEADERS..].to_vec()
    }

    #[test]
    fn a_task_is_found_in_its_message() {
        let inner = [attribute(OF_PID, &7u32.to_ne_bytes()), attribute(STATS, &stats())].concat();
        let message = [vec![0; HEADERS], attribute(ONE_TASK, &inner)].concat();
        let task = of_message(&message).unwrap();
        assert_eq!((task.pid, task.tgid, task.comm.as_str(), task.parent), (7, Some(5), "dd", 0));
        assert_eq!(task.delays, [0, 0, 9_000, 0, 0, 0, 0]);
        (0..message.len()).for_each(|cut| _ = of_message(&message[..cut]));
        let process = [vec![0; HEADERS], attribute(5, &inner)].concat();
        assert_eq!(of_message(&process), None);
    }

    #[test]
    fn the_version_with_other_offsets_is_not_read() {
        let mut stats = stats();
        stats[0] = 15;
        assert_eq!(of_stats(&stats), None);
        stats[0] = 8;
        assert_eq!(of_stats(&stats[..328]).unwrap().tgid, None, "an older one is shorter");
    }
}
