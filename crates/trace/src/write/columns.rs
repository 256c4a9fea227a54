//! What stands before the event name in a line of the kernel's `trace` file, and the comments above the lines.
//!
//! Three layouts cover 2.6.36 to 6.18: without flags (to 3.1), with four flag characters (3.2 to 5.15), with five
//! (5.16 on). Not supported: latency format, line layouts of the function_graph tracer. Validated byte for byte against the
//! `trace` file of a 6.18 kernel; the older ones against the kernel's documentation of their time.

use crate::format::Out;
use mmtwin_event::{Event, KernelRelease};

/// The columns of a kernel's lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Columns {
    /// 2.6.36 to 3.1.
    NoFlags,
    /// 3.2 to 5.15: irqs, resched, context, preempt depth.
    FourFlags {
        /// Resched tells three kinds (3.13 on), else one.
        preempt_resched: bool,
        /// Room for pids of seven digits (5.10 on), else five.
        wide_pid: bool,
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
    /// Events in the buffer and events written to it, where known; the line is omitted else.
    pub entries: Option<(u64, u64)>,
    /// Number of CPUs; 0 if unknown.
    pub cpus: u32,
}

impl Columns {
    /// The columns of a kernel release such as `6.1.0-13-amd64`; today's if it is not known.
    pub fn of_release(release: Option<&str>) -> Columns {
        let Some(release) = release.and_then(KernelRelease::parse) else { return Columns::FiveFlags { tgid: false } };
        let since = |major, minor| release.is_at_least(major, minor);
        if since(5, 16) {
            Columns::FiveFlags { tgid: false }
        } else if since(3, 2) {
            Columns::FourFlags { preempt_resched: since(3, 13), wide_pid: since(5, 10) }
        } else {
            Columns::NoFlags
        }
    }

    /// Columns that `task` fills in a line: name and pid.
    pub(super) fn task(self, comm: &[u8], pid: i32, out: &mut Out) {
        let width = match self {
            Columns::NoFlags | Columns::FourFlags { wide_pid: false, .. } => 5,
            Columns::FourFlags { wide_pid: true, .. } | Columns::FiveFlags { .. } => 7,
        };
        task(comm, pid, width, out);
    }

    /// Everything between the task and the event name.
    #[inline]
    pub(super) fn context(self, event: &Event<'_>, clock: &mut Clock, out: &mut Out) {
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
        cpu(event.cpu, out);
        let (flags, depths) = (event.flags, event.preempt_count);
        match self {
            Columns::NoFlags => {}
            Columns::FourFlags { preempt_resched, .. } => {
                let resched = if preempt_resched { resched(flags & !NO_IRQS_OR_LAZY) } else { old_resched(flags) };
                out.extend(&[old_irqs(flags), resched, context(flags), depth(depths), b' ']);
            }
            Columns::FiveFlags { .. } => {
                let (preempt, migrate) = (depth(depths & 15), depth(depths >> 4));
                out.extend(&[irqs(flags), resched(flags), context(flags), preempt, migrate, b' ']);
            }
        }
        clock.print(event.ts, out);
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
            Columns::FourFlags { wide_pid: false, .. } => FOUR_FLAGS.as_bytes(),
            Columns::FourFlags { wide_pid: true, .. } => FOUR_FLAGS_WIDE.as_bytes(),
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

/// `[007] `.
#[inline]
pub(super) fn cpu(cpu: u32, out: &mut Out) {
    if cpu < 1000 {
        let digit = |n: u32| b'0' + (n % 10) as u8;
        return out.extend(&[b'[', digit(cpu / 100), digit(cpu / 10), digit(cpu), b']', b' ']);
    }
    out.push(b'[');
    out.decimal(cpu.into());
    out.extend(b"] ");
}

/// Prints times. The text of a second is kept, for the next event is mostly in the same.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    /// Times are nanoseconds; else plain numbers.
    nanoseconds: bool,
    second: Option<u64>,
    text: Vec<u8>,
}

impl Clock {
    /// For the trace clock of a name. Some count cycles or events.
    pub(super) fn new(name: Option<&str>) -> Clock {
        let nanoseconds = !matches!(name, Some("counter" | "uptime" | "x86-tsc" | "ppc-tb"));
        Clock { nanoseconds, second: None, text: Vec::new() }
    }

    /// Seconds, rounded to microseconds, or the plain number; `: ` behind it.
    #[inline]
    pub(super) fn print(&mut self, ts: u64, out: &mut Out) {
        if !self.nanoseconds {
            out.padded(ts, b' ', 12);
            return out.extend(b": ");
        }
        let microseconds = ts.saturating_add(500) / 1000;
        let second = microseconds / 1_000_000;
        if self.second != Some(second) {
            let mut text = Out::default();
            text.padded(second, b' ', 5);
            text.push(b'.');
            self.second = Some(second);
            self.text = text.into();
        }
        out.extend(&self.text);
        out.fraction((microseconds % 1_000_000) as u32);
    }
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

const FOUR_FLAGS_WIDE: &str = "\
#                                _-----=> irqs-off
#                               / _----=> need-resched
#                              | / _---=> hardirq/softirq
#                              || / _--=> preempt-depth
#                              ||| /     delay
#           TASK-PID     CPU#  ||||   TIMESTAMP  FUNCTION
#              | |         |   ||||      |         |
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

#[cfg(test)]
mod tests {
    use super::*;
    use mmtwin_event::{Fields, Kind};

    fn event(flags: u8, preempt_count: u8) -> Event<'static> {
        Event {
            ts: 52_035_057_500,
            cpu: 7,
            pid: 211,
            tgid: 0,
            flags,
            preempt_count,
            kind: Kind::Other,
            id: 0,
            comm: b"",
            name: "",
            raw: b"",
            fields: Fields::Untyped,
        }
    }

    fn line(columns: Columns, event: &Event<'_>, clock: Option<&str>) -> String {
        let mut out = Out::default();
        columns.task(b"tail", event.pid, &mut out);
        columns.context(event, &mut Clock::new(clock), &mut out);
        String::from_utf8(out.into()).unwrap()
    }

    const FIVE: Columns = Columns::FiveFlags { tgid: false };

    #[test]
    fn lines_of_every_layout() {
        let e = event(1, 0x12);
        assert_eq!(line(Columns::NoFlags, &e, None), "            tail-211   [007]    52.035058: ");
        let four = |wide_pid| Columns::FourFlags { preempt_resched: false, wide_pid };
        assert_eq!(line(four(false), &event(1, 2), None), "            tail-211   [007] d..2    52.035058: ");
        assert_eq!(line(four(true), &event(1, 2), None), "            tail-211     [007] d..2    52.035058: ");
        assert_eq!(line(FIVE, &e, None), "            tail-211     [007] d..21    52.035058: ");
        let tgid = Columns::FiveFlags { tgid: true };
        assert_eq!(line(tgid, &e, None), "            tail-211     (-------) [007] d..21    52.035058: ");
        let known = Event { tgid: 210, cpu: 1024, ..e };
        assert_eq!(line(tgid, &known, None), "            tail-211     (    210) [1024] d..21    52.035058: ");
        assert_eq!(line(FIVE, &e, Some("x86-tsc")), "            tail-211     [007] d..21  52035057500: ");
        assert_eq!(line(FIVE, &e, Some("mono")), line(FIVE, &e, None));
    }

    #[test]
    fn flags_are_those_of_their_kernels() {
        let flags = |columns, bits| {
            let line = line(columns, &event(bits, 0), None);
            line.split_whitespace().nth(2).unwrap()[..3].to_string()
        };
        let four = |preempt_resched| Columns::FourFlags { preempt_resched, wide_pid: false };
        for (bits, five, newer_four, older_four) in [
            (0, "...", "...", "..."),
            (1 | 0x80 | 8, "D.h", "d.h", "d.h"),
            (0x80 | 0x10, "b.s", "..s", "..s"),
            (4, ".n.", ".n.", ".N."),
            (4 | 0x20, ".N.", ".N.", ".N."),
            (0x20, ".p.", ".p.", "..."),
            (2, ".l.", "X..", "X.."),
            (2 | 4, ".b.", "Xn.", "XN."),
            (2 | 0x20, ".L.", "Xp.", "X.."),
            (2 | 4 | 0x20, ".B.", "XN.", "XN."),
            (8 | 0x10, "..H", "..H", "..H"),
            (0x40, "..z", "..z", "..z"),
            (0x40 | 8, "..Z", "..Z", "..Z"),
        ] {
            assert_eq!(flags(FIVE, bits), five, "{bits:#x}");
            assert_eq!(flags(four(true), bits), newer_four, "{bits:#x}");
            assert_eq!(flags(four(false), bits), older_four, "{bits:#x}");
        }
    }

    #[test]
    fn releases_choose_their_layout() {
        assert_eq!(Columns::of_release(Some("2.6.36-rc4")), Columns::NoFlags);
        assert_eq!(Columns::of_release(Some("3.1.10")), Columns::NoFlags);
        let four = |preempt_resched, wide_pid| Columns::FourFlags { preempt_resched, wide_pid };
        assert_eq!(Columns::of_release(Some("3.4.0")), four(false, false));
        assert_eq!(Columns::of_release(Some("4.19.0-27-amd64")), four(true, false));
        assert_eq!(Columns::of_release(Some("5.10.0-28-amd64")), four(true, true));
        assert_eq!(Columns::of_release(Some("5.16.0")), FIVE);
        assert_eq!(Columns::of_release(Some("6.1.0-13-amd64")), FIVE);
        assert_eq!(Columns::of_release(Some("unknown")), FIVE);
        assert_eq!(Columns::of_release(None), FIVE);
    }

    #[test]
    fn seconds_change_within_a_stream() {
        let mut clock = Clock::new(None);
        let mut out = Out::default();
        for ts in [999_999_499, 999_999_500, 1_000_000_000, 123_456_000_001_000, u64::MAX] {
            clock.print(ts, &mut out);
        }
        let expected = "    0.999999:     1.000000:     1.000000: 123456.000001: 18446744073.709551: ";
        assert_eq!(std::str::from_utf8(out.as_bytes()).unwrap(), expected);
    }

    #[test]
    fn headers_have_the_columns_of_their_lines() {
        let header = |columns: Columns, entries| {
            let mut out = Out::default();
            columns.header(Header { entries, cpus: 8 }, &mut out);
            String::from_utf8(out.into()).unwrap()
        };
        let four = |wide_pid| Columns::FourFlags { preempt_resched: true, wide_pid };
        for columns in [FIVE, Columns::FiveFlags { tgid: true }, four(false), four(true)] {
            let text = header(columns, Some((5, 7)));
            assert!(text.starts_with("# tracer: nop\n#\n# entries-in-buffer/entries-written: 5/7   #P:8\n#\n"));
            assert!(!header(columns, None).contains("entries"));
            assert!(text.lines().all(|l| l.starts_with('#')));
            // The bars of the last comment stand above the CPU and the flags.
            let bars = text.lines().last().unwrap();
            let line = line(columns, &event(1, 0), None);
            let flags = line.find(" d").unwrap() + 1;
            assert_eq!(&bars[flags..flags + 4], "||||");
            assert_eq!(&bars[flags - 4..flags - 3], "|");
        }
        assert!(!header(Columns::NoFlags, Some((5, 7))).contains("entries"));
    }
}
