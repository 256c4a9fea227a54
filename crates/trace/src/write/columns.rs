//! What stands before the event name in a line of the kernel's `trace` file, and the comments above the lines.
//!
//! Three layouts cover 2.6.36 to 6.18: without flags (to 3.1), with four flag characters (3.2 to 5.15), with five
//! (5.16 on). Left out: latency format, line layouts of the function_graph tracer. Validated byte for byte against the
//! `trace` file of a 6.18 kernel; the older ones against the kernel's documentation of their time.

use crate::format::Out;
use mmtwin_event::Event;

/// The columns of a kernel's lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Columns {
    /// 2.6.36 to 3.1.
    NoFlags,
    /// 3.2 to 5.15: irqs, resched, context, preempt depth.
    FourFlags {
        /// Resched tells three kinds (3.13 on), else one.
        preempt_resched: bool,
    },
    /// 5.16 on: also migrate-disable depth; with a column for the thread group or without.
    FiveFlags {
        /// Print the thread group.
        tgid: bool,
    },
}

/// What the comments above the lines say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// Events in the buffer and events written to it, where known; the line is left out else.
    pub entries: Option<(u64, u64)>,
    /// Number of CPUs; 0 if unknown.
    pub cpus: u32,
}

impl Columns {
    /// The columns of a kernel release such as `6.1.0-13-amd64`; today's if it is not known.
    pub fn of_release(release: Option<&str>) -> Columns {
        let mut numbers = release.unwrap_or_default().split(|c: char| !c.is_ascii_digit());
        let mut next = || numbers.next().and_then(|n| n.parse::<u32>().ok());
        match (next(), next()) {
            (Some(2), _) | (Some(3), Some(0 | 1)) => Columns::NoFlags,
            (Some(3), Some(2..=12)) => Columns::FourFlags { preempt_resched: false },
            (Some(3 | 4), _) | (Some(5), Some(0..=15)) => Columns::FourFlags { preempt_resched: true },
            _ => Columns::FiveFlags { tgid: false },
        }
    }

    /// Columns that `task` fills in a line: name and pid.
    pub(super) fn task(self, comm: &[u8], pid: i32, out: &mut Out) {
        let width = if let Columns::FiveFlags { .. } = self { 7 } else { 5 };
        task(comm, pid, width, out);
    }

    /// Everything between the task and the event name.
    pub(super) fn context(self, event: &Event<'_>, nanoseconds: bool, out: &mut Out) {
        if let Columns::FiveFlags { tgid: true } = self {
            match event.tgid {
                0 => out.extend(b"(-------) "),
                tgid => {
                    out.push(b'(');
                    out.padded(tgid as u64, b' ', 7);
                    out.extend(b") ");
                }
            }
        }
        out.push(b'[');
        out.padded(u64::from(event.cpu), b'0', 3);
        out.extend(b"] ");
        match self {
            Columns::NoFlags => {}
            Columns::FourFlags { preempt_resched } => {
                out.extend(&[
                    old_irqs(event.flags),
                    if preempt_resched { resched(event.flags & !NO_IRQS_OR_LAZY) } else { old_resched(event.flags) },
                    context(event.flags),
                    depth(event.preempt_count),
                    b' ',
                ]);
            }
            Columns::FiveFlags { .. } => {
                out.extend(&[
                    irqs(event.flags),
                    resched(event.flags),
                    context(event.flags),
                    depth(event.preempt_count & 15),
                    depth(event.preempt_count >> 4),
                    b' ',
                ]);
            }
        }
        if nanoseconds {
            let microseconds = event.ts / 1000;
            out.padded(microseconds / 1_000_000, b' ', 5);
            out.push(b'.');
            out.padded(microseconds % 1_000_000, b'0', 6);
        } else {
            out.padded(event.ts, b' ', 12);
        }
        out.extend(b": ");
    }

    /// The comments above the lines.
    pub(super) fn header(self, header: Header, out: &mut Out) {
        out.extend(b"# tracer: nop\n#\n");
        if let (Some((inside, written)), true) = (header.entries, self != Columns::NoFlags) {
            out.extend(b"# entries-in-buffer/entries-written: ");
            out.decimal(inside);
            out.push(b'/');
            out.decimal(written);
            out.extend(b"   #P:");
            out.decimal(header.cpus.into());
            out.extend(b"\n#\n");
        }
        out.extend(match self {
            Columns::NoFlags => {
                b"#           TASK-PID    CPU#    TIMESTAMP  FUNCTION\n#              | |       |          |         |\n"
                    .as_slice()
            }
            Columns::FourFlags { .. } => FOUR_FLAGS.as_bytes(),
            Columns::FiveFlags { tgid: false } => FIVE_FLAGS.as_bytes(),
            Columns::FiveFlags { tgid: true } => FIVE_FLAGS_TGID.as_bytes(),
        });
    }
}

/// Name, right-aligned in 16 columns, and pid, left-aligned in `width`, with a space behind.
pub(super) fn task(comm: &[u8], pid: i32, width: usize, out: &mut Out) {
    let start = out.len();
    out.extend(comm);
    out.align(start, 16, false);
    out.push(b'-');
    let start = out.len();
    out.signed(pid.into());
    out.align(start, width, true);
    out.push(b' ');
}

const IRQS_OFF: u8 = 1;
/// No irq flags on this architecture before 6.12, lazy resched from then on.
const NO_IRQS_OR_LAZY: u8 = 2;
const NEED_RESCHED: u8 = 4;
const HARDIRQ: u8 = 8;
const SOFTIRQ: u8 = 0x10;
const PREEMPT_RESCHED: u8 = 0x20;
const NMI: u8 = 0x40;
const BH_OFF: u8 = 0x80;

fn old_irqs(flags: u8) -> u8 {
    match flags & (IRQS_OFF | NO_IRQS_OR_LAZY) {
        0 => b'.',
        NO_IRQS_OR_LAZY => b'X',
        _ => b'd',
    }
}

fn old_resched(flags: u8) -> u8 {
    if flags & NEED_RESCHED == 0 { b'.' } else { b'N' }
}

fn irqs(flags: u8) -> u8 {
    match flags & (IRQS_OFF | BH_OFF) {
        0 => b'.',
        IRQS_OFF => b'd',
        BH_OFF => b'b',
        _ => b'D',
    }
}

fn resched(flags: u8) -> u8 {
    const BOTH: u8 = NEED_RESCHED | PREEMPT_RESCHED;
    const NEED_LAZY: u8 = NEED_RESCHED | NO_IRQS_OR_LAZY;
    const PREEMPT_LAZY: u8 = PREEMPT_RESCHED | NO_IRQS_OR_LAZY;
    match flags & (BOTH | NO_IRQS_OR_LAZY) {
        0 => b'.',
        NEED_RESCHED => b'n',
        PREEMPT_RESCHED => b'p',
        BOTH => b'N',
        NO_IRQS_OR_LAZY => b'l',
        NEED_LAZY => b'b',
        PREEMPT_LAZY => b'L',
        _ => b'B',
    }
}

fn context(flags: u8) -> u8 {
    let has = |bits| flags & bits == bits;
    match () {
        () if has(NMI | HARDIRQ) => b'Z',
        () if has(NMI) => b'z',
        () if has(HARDIRQ | SOFTIRQ) => b'H',
        () if has(HARDIRQ) => b'h',
        () if has(SOFTIRQ) => b's',
        () => b'.',
    }
}

/// A depth as one character; deeper ones than a digit holds print as the kernel's two would begin.
fn depth(depth: u8) -> u8 {
    match depth {
        0 => b'.',
        1..=15 => b"0123456789abcdef"[usize::from(depth)],
        _ => b"0123456789abcdef"[usize::from(depth >> 4)],
    }
}

const FOUR_FLAGS: &str = "\
#                              _-----=> irqs-off
#                             / _----=> need-resched
#                            | / _---=> hardirq/softirq
#                            || / _--=> preempt-depth
#                            ||| /     delay
#           TASK-PID   CPU#  ||||    TIMESTAMP  FUNCTION
#              | |       |   ||||       |         |
";

const FIVE_FLAGS: &str = "\
#                                _-----=> irqs-off/BH-disabled
#                               / _----=> need-resched
#                              | / _---=> hardirq/softirq
#                              || / _--=> preempt-depth
#                              ||| / _-=> migrate-disable
#                              |||| /     delay
#           TASK-PID     CPU#  |||||  TIMESTAMP  FUNCTION
#              | |         |   |||||     |         |
";

const FIVE_FLAGS_TGID: &str = "\
#                                          _-----=> irqs-off/BH-disabled
#                                         / _----=> need-resched
#                                        | / _---=> hardirq/softirq
#                                        || / _--=> preempt-depth
#                                        ||| / _-=> migrate-disable
#                                        |||| /     delay
#           TASK-PID       TGID    CPU#  |||||  TIMESTAMP  FUNCTION
#              | |           |       |   |||||     |         |
";
