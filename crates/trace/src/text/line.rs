//! The columns before an event: task, CPU, flags, time, in every style of ftrace, `trace-cmd report` and `perf script`.
//!
//! The usual line is `COMM-PID [TGID] [CPU] [FLAGS] TIME: `. Comms may hold spaces, dashes, colons and brackets, so
//! the general reader tries every `[CPU]` from the left and takes the first one around which everything fits. Lines
//! come from few tasks: [`Columns`] remembers the bytes up to the CPU and what they mean.

use super::values::{decimal, hex, word_at};
use std::ops::Range;

/// What the columns of a line say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Context {
    /// Where in the line the task name is.
    pub comm: Range<usize>,
    /// Task; -1 unknown.
    pub pid: i32,
    /// Thread group, 0 unknown.
    pub tgid: i32,
    /// CPU.
    pub cpu: u32,
    /// As in a record's `common_flags`.
    pub flags: u8,
    /// As in a record's `common_preempt_count`.
    pub preempt_count: u8,
    /// Nanoseconds.
    pub ts: u64,
    /// First byte of the event's name.
    pub event: usize,
    /// Where [`Columns`] remembers the task on its CPU; tasks may share a place.
    pub place: usize,
}

/// Places for remembered columns.
pub(super) const PLACES: usize = 256;

/// Longest columns up to the CPU that are remembered.
const COLUMNS: usize = 56;

/// What the bytes before the flags meant when they were met last.
#[derive(Clone)]
struct Seen {
    /// The first 32 bytes, as far as they belong to the columns.
    words: [u64; 4],
    masks: [u64; 4],
    /// Bytes from the 33rd on.
    rest: Box<[u8]>,
    /// Number of bytes; 0: nothing was seen yet.
    len: u8,
    comm: Range<u8>,
    pid: i32,
    tgid: i32,
    cpu: u32,
}

/// Remembers the columns of recent lines.
pub(super) struct Columns {
    seen: Vec<Seen>,
    second: Second,
}

/// The seconds of the last line as printed, with the spaces before and the point: many lines share them.
#[derive(Default)]
struct Second {
    word: u64,
    mask: u64,
    len: usize,
    ns: u64,
}

impl Columns {
    pub fn new() -> Columns {
        let rest = Box::default();
        let empty = Seen { words: [0; 4], masks: [0; 4], rest, len: 0, comm: 0..0, pid: 0, tgid: 0, cpu: 0 };
        Columns { seen: vec![empty; PLACES], second: Second::default() }
    }

    /// Reads the columns of a line. `None`: this is no line of an event.
    pub fn read(&mut self, line: &[u8]) -> Option<Context> {
        let skip = instance(line);
        let (mut context, flags_at) = bracketed(line, skip)
            .or_else(|| verbose(line, skip).map(|c| (c, 0)))
            .or_else(|| latency(line, skip).map(|c| (c, 0)))?;
        if let Some((words, index)) = first_words(line)
            && (1..=COLUMNS).contains(&flags_at)
        {
            let mask = |at: usize| match flags_at.saturating_sub(at) {
                0 => 0,
                n @ 1..8 => (1 << (8 * n)) - 1,
                _ => u64::MAX,
            };
            let masks = [mask(0), mask(8), mask(16), mask(24)];
            self.seen[index] = Seen {
                words,
                masks,
                rest: line[flags_at.min(32)..flags_at].into(),
                len: flags_at as u8,
                comm: context.comm.start as u8..context.comm.end as u8,
                pid: context.pid,
                tgid: context.tgid,
                cpu: context.cpu,
            };
            context.place = index;
        }
        Some(context)
    }

    /// The same for the line at the start of `text`, if it begins as a recent one did.
    #[inline(always)]
    pub fn remembered(&mut self, text: &[u8]) -> Option<Context> {
        let (words, index) = first_words(text)?;
        let seen = &self.seen[index];
        let differ = (0..4).fold(0, |all, i| all | (words[i] ^ seen.words[i]) & seen.masks[i]);
        if differ != 0 || seen.len == 0 {
            return None;
        }
        let end = usize::from(seen.len);
        if end > 32 && text.get(32..end)? != &*seen.rest {
            return None;
        }
        let ((flags, preempt_count), at) = flag_columns(text, end)?;
        let (ts, event) = self.second.time(text, at)?;
        let comm = usize::from(seen.comm.start)..usize::from(seen.comm.end);
        let (pid, tgid, cpu) = (seen.pid, seen.tgid, seen.cpu);
        Some(Context { comm, pid, tgid, cpu, flags, preempt_count, ts, event, place: index })
    }
}

impl Second {
    /// As [`time`].
    #[inline(always)]
    fn time(&mut self, text: &[u8], at: usize) -> Option<(u64, usize)> {
        if self.len > 0 && (word_at(text, at)? ^ self.word) & self.mask == 0 {
            let (fraction, end) = decimal(text, at + self.len)?;
            if end == at + self.len + 6
                && let Some([b':', b' ', name]) = text.get(end..end + 3)
                && !matches!(name, b' ' | b'(')
            {
                return Some((self.ns + fraction * 1000, end + 2));
            }
        }
        self.time_anew(text, at)
    }

    #[inline(never)]
    fn time_anew(&mut self, text: &[u8], at: usize) -> Option<(u64, usize)> {
        let read = time(text, at)?;
        let len = text.get(at..at + 8)?.iter().position(|b| *b == b'.').map_or(0, |point| point + 1);
        let mask = u64::MAX.checked_shr(64 - 8 * len as u32).unwrap_or(0);
        *self = Second { word: word_at(text, at)? & mask, mask, len, ns: read.0 / 1_000_000_000 * 1_000_000_000 };
        Some(read)
    }
}

/// The first 32 bytes and the place where lines that begin so are remembered: the task, its pid and the CPU stand in
/// bytes 8 to 32.
#[inline(always)]
fn first_words(text: &[u8]) -> Option<([u64; 4], usize)> {
    let words = [word_at(text, 0)?, word_at(text, 8)?, word_at(text, 16)?, word_at(text, 24)?];
    let mix = words[1] ^ words[2].rotate_left(23) ^ words[3].rotate_left(41);
    Some((words, (mix.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as usize % PLACES))
}

/// Length of the `NAME:` that `trace-cmd report` puts before the lines of an instance. A comm never begins in the
/// first column of that style, it is right-aligned in 16.
fn instance(line: &[u8]) -> usize {
    let word = line.iter().take_while(|b| **b != b' ').count();
    if word > 1 && line[word - 1] == b':' && line.get(word) == Some(&b' ') { word } else { 0 }
}

/// `COMM-PID [TGID] [CPU] [FLAGS] TIME: `, also perf's `COMM PID [CPU] TIME: `. Gives the offset behind `[CPU] ` too.
fn bracketed(line: &[u8], skip: usize) -> Option<(Context, usize)> {
    memchr::memchr_iter(b'[', line).find_map(|open| {
        let (cpu, close) = decimal(line, open + 1)?;
        if !line[close..].starts_with(b"] ") {
            return None;
        }
        let head = line.get(skip..open)?.trim_ascii_end();
        let (head, tgid) = thread_group(head);
        let (comm, pid) = task(head)?;
        let ((flags, preempt_count), at) = flag_columns(line, close + 2)?;
        let (ts, event) = time(line, at)?;
        let comm = skip + comm.start..skip + comm.end;
        let cpu = u32::try_from(cpu).ok()?;
        Some((Context { comm, pid, tgid, cpu, flags, preempt_count, ts, event, place: 0 }, close + 2))
    })
}

/// Splits `(TGID)` or `(-------)` off the end.
fn thread_group(head: &[u8]) -> (&[u8], i32) {
    let parts = head.strip_suffix(b")").and_then(|h| Some((h, h.iter().rposition(|&b| b == b'(')?)));
    let Some((inner, open)) = parts else { return (head, 0) };
    let number = inner[open + 1..].trim_ascii();
    let before = inner[..open].trim_ascii_end();
    match decimal(number, 0) {
        Some((tgid, end)) if end == number.len() => (before, i32::try_from(tgid).unwrap_or(0)),
        _ if !number.is_empty() && number.iter().all(|b| *b == b'-') => (before, 0),
        _ => (head, 0),
    }
}

/// `COMM-PID` or `COMM PID[/TID]`: the comm's place and the pid.
fn task(head: &[u8]) -> Option<(Range<usize>, i32)> {
    let digits = head.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    let mut name = &head[..head.len() - digits];
    let (pid, _) = decimal(head, name.len())?;
    if let [before @ .., b'/'] = name
        && before.last().is_some_and(u8::is_ascii_digit)
        && let process = before.iter().rev().take_while(|b| b.is_ascii_digit()).count()
        && before[..before.len() - process].ends_with(b" ")
    {
        name = &before[..before.len() - process];
    }
    let [comm @ .., b'-' | b' '] = name else { return None };
    let comm = comm.trim_ascii_end();
    let start = comm.iter().take_while(|b| **b == b' ').count();
    Some((start..comm.len(), i32::try_from(pid).ok()?))
}

/// `comm pid cpu flags preempt index [us] N.NNNms (+N.NNNms): ` of option `verbose` with latency-format.
fn verbose(line: &[u8], skip: usize) -> Option<Context> {
    memchr::memmem::find_iter(line, b" [").find_map(|open| {
        let (us, close) = hex(line, open + 2)?;
        let rest = line[close..].strip_prefix(b"] ")?;
        let mark = memchr::memmem::find(rest, b"ms (+")?;
        let event = close + 2 + mark + memchr::memmem::find(&rest[mark..], b"ms): ")? + 5;
        let (head, _index) = last_word(line.get(skip..open)?)?;
        let (head, preempt_count) = last_word(head)?;
        let (head, flags) = last_word(head)?;
        let (head, cpu) = last_word(head)?;
        let (comm, pid) = task(head)?;
        let number = |digits: &[u8]| u32::try_from(decimal(digits, 0)?.0).ok();
        let (cpu, flags, preempt_count) = (number(cpu)?, number(flags)? as u8, hex(preempt_count, 0)?.0 as u8);
        let comm = skip + comm.start..skip + comm.end;
        let ts = us.checked_mul(1000)?;
        Some(Context { comm, pid, tgid: 0, cpu, flags, preempt_count, ts, event, place: 0 })
    })
}

/// Splits the last word off, and the spaces before it.
fn last_word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = text.iter().rposition(|b| *b == b' ')?;
    Some((text[..space].trim_ascii_end(), &text[space + 1..]))
}

/// `COMM-PID CPU FLAGS TIMEus : ` of latency-format and `COMM-PID CPU FLAGS TIME: ` of `trace-cmd report -l`, CPU and
/// flags without a space between them.
fn latency(line: &[u8], skip: usize) -> Option<Context> {
    memchr::memchr_iter(b'-', line).filter(|dash| *dash >= skip).find_map(|dash| {
        let (_, end) = decimal(line, dash + 1)?;
        let (comm, pid) = task(&line[skip..end])?;
        let at = skip_spaces(line, end);
        let (cpu, at) = decimal(line, at)?;
        let width = line[at..].iter().take_while(|b| **b != b' ').count();
        let (flags, preempt_count) = flag_bits(line.get(at..at + width)?)?;
        let (ts, event) = time(line, at + width)?;
        let (comm, cpu) = (skip + comm.start..skip + comm.end, u32::try_from(cpu).ok()?);
        Some(Context { comm, pid, tgid: 0, cpu, flags, preempt_count, ts, event, place: 0 })
    })
}

#[inline(always)]
fn skip_spaces(text: &[u8], mut at: usize) -> usize {
    while text.get(at) == Some(&b' ') {
        at += 1;
    }
    at
}

/// A time and its colon at `at`, after spaces: seconds with a fraction, microseconds with `us` and a mark (latency
/// format), or a bare count (other clocks). Gives nanoseconds and the offset of what follows.
#[inline(always)]
fn time(text: &[u8], at: usize) -> Option<(u64, usize)> {
    let (whole, end) = decimal(text, skip_spaces(text, at))?;
    let (ts, end) = match text.get(end)? {
        b'.' => {
            let (fraction, behind) = decimal(text, end + 1)?;
            let unit = *[1_000_000_000, 100_000_000, 10_000_000, 1_000_000, 100_000, 10_000, 1000, 100, 10, 1]
                .get(behind - end - 1)?;
            (whole.checked_mul(1_000_000_000)?.checked_add(fraction * unit)?, behind)
        }
        b':' => (whole, end),
        b'u' if text.get(end + 1) == Some(&b's') => (whole.checked_mul(1000)?, end + 3),
        _ => return None,
    };
    if text.get(end) != Some(&b':') {
        return None;
    }
    let event = skip_spaces(text, end + 1);
    // trace-cmd report --ts-diff
    if text.get(event..)?.starts_with(b"(+") {
        let close = memchr::memchr(b')', &text[event..])?;
        return Some((ts, skip_spaces(text, event + close + 1)));
    }
    (event > end + 1).then_some((ts, event))
}

/// The flag characters at `at`, if there are any, and the offset behind them.
#[inline(always)]
fn flag_columns(text: &[u8], at: usize) -> Option<((u8, u8), usize)> {
    // Five characters since 5.16; the space behind them is column six.
    if let Some(&[a, b, c, d, e, b' ']) = text.get(at..at + 6)
        && a != b' '
        && e != b' '
        && !a.is_ascii_digit()
    {
        return Some((bits(a, b, c, d, e), at + 5));
    }
    other_flag_columns(text, at)
}

#[inline(never)]
fn other_flag_columns(text: &[u8], at: usize) -> Option<((u8, u8), usize)> {
    let width = text.get(at..)?.iter().take(8).take_while(|b| **b != b' ').count();
    let word = &text[at..at + width];
    if word.first().is_none_or(u8::is_ascii_digit) {
        return Some(((0, 0), at));
    }
    Some((flag_bits(word)?, at + width))
}

/// Four to six flag characters: the sixth of 2.6.36 is the lock depth, which no record of today has.
fn flag_bits(word: &[u8]) -> Option<(u8, u8)> {
    match *word {
        [a, b, c, d] if !a.is_ascii_digit() => Some(bits(a, b, c, d, b'.')),
        [a, b, c, d, e] | [a, b, c, d, e, _] if !a.is_ascii_digit() => Some(bits(a, b, c, d, e)),
        _ => None,
    }
}

/// `common_flags` and `common_preempt_count` of the flag characters. Characters of unknown meaning count as `.`.
#[inline(always)]
fn bits(irqs: u8, resched: u8, context: u8, depth: u8, migrate: u8) -> (u8, u8) {
    let [irqs, _, _, _] = MEANINGS[usize::from(irqs)];
    let [_, resched, _, _] = MEANINGS[usize::from(resched)];
    let [_, _, context, _] = MEANINGS[usize::from(context)];
    let [_, _, _, depth] = MEANINGS[usize::from(depth)];
    let [_, _, _, migrate] = MEANINGS[usize::from(migrate)];
    (irqs | resched | context, migrate << 4 | depth)
}

/// What a character means in the columns irqs, resched, context and depth.
static MEANINGS: [[u8; 4]; 256] = {
    const IRQS_OFF: u8 = 1;
    const LAZY: u8 = 2;
    const RESCHED: u8 = 4;
    const HARDIRQ: u8 = 8;
    const SOFTIRQ: u8 = 0x10;
    const PREEMPT: u8 = 0x20;
    const NMI: u8 = 0x40;
    const BH_OFF: u8 = 0x80;
    let mut table = [[0; 4]; 256];
    table[b'd' as usize][0] = IRQS_OFF;
    table[b'X' as usize][0] = LAZY; // the same bit: without irq support
    table[b'D' as usize][0] = IRQS_OFF | BH_OFF;
    table[b'b' as usize][0] = BH_OFF;
    table[b'N' as usize][1] = RESCHED | PREEMPT;
    table[b'n' as usize][1] = RESCHED;
    table[b'p' as usize][1] = PREEMPT;
    table[b'B' as usize][1] = RESCHED | PREEMPT | LAZY;
    table[b'L' as usize][1] = PREEMPT | LAZY;
    table[b'b' as usize][1] = RESCHED | LAZY;
    table[b'l' as usize][1] = LAZY;
    table[b'Z' as usize][2] = NMI | HARDIRQ;
    table[b'z' as usize][2] = NMI;
    table[b'H' as usize][2] = HARDIRQ | SOFTIRQ;
    table[b'h' as usize][2] = HARDIRQ;
    table[b's' as usize][2] = SOFTIRQ;
    let mut i = 0;
    while i < 16 {
        table[b"0123456789abcdef"[i] as usize][3] = i as u8;
        i += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    /// (comm, pid, tgid, cpu, flags, preempt count, ns, event text)
    type Read<'a> = (&'a str, i32, i32, u32, u8, u8, u64, &'a str);

    fn read(line: &str) -> Option<Read<'_>> {
        let mut columns = Columns::new();
        let c = columns.read(line.as_bytes())?;
        if let Some(again) = columns.remembered(line.as_bytes()) {
            assert_eq!(again, c, "remembered columns differ: {line}");
        }
        Some((&line[c.comm], c.pid, c.tgid, c.cpu, c.flags, c.preempt_count, c.ts, &line[c.event..]))
    }

    #[test]
    fn kernel_lines_of_all_eras() {
        let dd = |tgid, flags, depth, event| Some(("dd", 6917, tgid, 0, flags, depth, 2_820_173_095_000, event));
        assert_eq!(read("              dd-6917  [000]  2820.173095: e: nid=0"), dd(0, 0, 0, "e: nid=0"));
        assert_eq!(read("              dd-6917  [000] d.s1  2820.173095: e: nid=0"), dd(0, 0x11, 1, "e: nid=0"));
        assert_eq!(read("              dd-6917    [000] dNH21  2820.173095: e: nid=0"), dd(0, 0x3d, 0x12, "e: nid=0"));
        assert_eq!(read("              dd-6917    (   6900) [000] .....  2820.173095: e: x"), dd(6900, 0, 0, "e: x"));
        assert_eq!(read("              dd-6917    (-------) [000] .....  2820.173095: e: x"), dd(0, 0, 0, "e: x"));
        assert_eq!(read("              dd-6917    [000]   2820.173095: e: x"), dd(0, 0, 0, "e: x"));
    }

    #[test]
    fn recent_columns_are_remembered_and_others_are_not() {
        let mut columns = Columns::new();
        let tgid = "              dd-6917    (   6900) [000] .....  2820.173095: e: nid=0";
        for line in ["              dd-6917    [000] d.s1.  2820.173095: e: nid=0", tgid] {
            let first = columns.read(line.as_bytes());
            assert!(first.is_some());
            assert_eq!(columns.remembered(line.as_bytes()), first);
            assert_eq!(columns.remembered(line.replace("[000]", "[001]").as_bytes()), None);
        }
    }

    #[test]
    fn odd_task_names() {
        let line = |comm: &str| format!("{comm:>16}-12     [001] .....     1.000002: e: x");
        for comm in ["a b", "kworker/0:1-ev", "[x] (2)", "x-1 [000] y", "<...>", "<idle>", "-", "a:b: c", "7"] {
            assert_eq!(read(&line(comm)), Some((comm, 12, 0, 1, 0, 0, 1_000_002_000, "e: x")), "{comm}");
        }
    }

    #[test]
    fn other_clocks_and_precisions() {
        assert_eq!(read("  bash-1   [000] .....            2: e: x").unwrap().6, 2);
        assert_eq!(read("  bash-1   [000] ..... 4787823969852: e: x").unwrap().6, 4_787_823_969_852);
        assert_eq!(read("  bash-1   [000]  4856.340440781: e: x").unwrap().6, 4_856_340_440_781);
        assert_eq!(read("  bash-1   [000]  99999999999999.000000: e: x"), None);
    }

    #[test]
    fn trace_cmd() {
        let stream = |cpu, depth, flags| Some(("stream", 28765, 0, cpu, flags, depth, 4_856_340_447_000, "e:   x"));
        assert_eq!(read("lab:           stream-28765 [001]  4856.340447: e:   x"), stream(1, 0, 0));
        assert_eq!(read("          stream-28765 [001]  4856.340447: (+6)     e:   x"), stream(1, 0, 0));
        assert_eq!(read("          stream-28765 [001]  4856.340447:          e:   x"), stream(1, 0, 0));
        assert_eq!(read("lab:   stream-28765   1d..1.  4856.340447: e:   x"), stream(1, 1, 1));
        assert_eq!(read("  stream-28765 101.....  4856.340447: e:   x"), stream(101, 0, 0));
    }

    #[test]
    fn latency_formats() {
        assert_eq!(
            read("      dd-6917      0d..1. 49473us : e: x"),
            Some(("dd", 6917, 0, 0, 1, 1, 49_473_000, "e: x"))
        );
        assert_eq!(
            read("rcu_pree-16      12d..1 49473us!: e: x"),
            Some(("rcu_pree", 16, 0, 12, 1, 1, 49_473_000, "e: x"))
        );
        let verbose = "          ba sh   12341   3 1 00000003 00000011 [72634734] 1919108.916ms (+0.036ms): e: x";
        assert_eq!(read(verbose), Some(("ba sh", 12341, 0, 3, 1, 3, 1_919_108_916_000, "e: x")));
    }

    #[test]
    fn perf_script() {
        let got = Some(("my app", 77, 0, 2, 0, 0, 12_345_678_000, "vmscan:e: x"));
        assert_eq!(read("          my app      77 [002]    12.345678: vmscan:e: x"), got);
        assert_eq!(read("          my app   70/77 [002]    12.345678: vmscan:e: x"), got);
    }

    #[test]
    fn other_text() {
        for line in [
            "",
            " ",
            "hello",
            "a-1 [000]",
            "a-1 [000] 1.0",
            "[000] 1.000000: e",
            "-1 [",
            "x-1 [99999999999] ..... 1.0: e:",
        ] {
            assert_eq!(read(line), None, "{line}");
        }
    }
}
