//! What a trace.dat holds beside its buffers. The reader fills it, the writer takes it.

use super::id;
use crate::Place;
use crate::format::symbols::{parse_kallsyms, parse_printk};
use crate::format::{Format, Formats};
use crate::ring::{PageLayout, TimeMap};
use std::borrow::Cow;
use std::sync::Arc;

/// Everything of a trace.dat but the buffers.
#[derive(Clone, Debug, Default)]
pub struct Meta<'a> {
    /// Numbers are big endian.
    pub big_endian: bool,
    /// Bytes of a `long` in the traced user space, 4 or 8.
    pub long_size: u8,
    /// Page size of the traced machine in bytes.
    pub page_size: u32,
    /// Number of CPUs of the traced machine; 0 if unknown.
    pub cpus: u32,
    /// Text of `events/header_page`.
    pub header_page: String,
    /// Text of `events/header_event`.
    pub header_event: String,
    /// Format texts; those of the system `ftrace` first.
    pub formats: Vec<FormatText>,
    /// Text of `/proc/kallsyms`.
    pub kallsyms: Cow<'a, [u8]>,
    /// Text of `printk_formats`.
    pub printk: Cow<'a, [u8]>,
    /// Text of `saved_cmdlines`.
    pub cmdlines: Cow<'a, [u8]>,
    /// Options that are neither buffers nor pointers to sections, nor the number of CPUs, in order.
    pub options: Vec<Opt>,
}

/// The text of one `format` file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatText {
    /// Trace system.
    pub system: String,
    /// Text of the file.
    pub text: String,
    /// Where it lies in the file it came from; if that part is compressed, where the part begins.
    pub offset: u64,
}

impl FormatText {
    /// The texts of formats that come from elsewhere, those of the system `ftrace` first.
    pub(crate) fn all(formats: &Formats) -> Vec<FormatText> {
        let text = |f: &Format| FormatText { system: f.system.clone(), text: f.text.clone(), offset: 0 };
        let mut texts: Vec<_> = formats.iter().map(text).collect();
        texts.sort_by_key(|t| t.system != "ftrace");
        texts
    }
}

/// An option as it is in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opt {
    /// Its number, see [`id`].
    pub id: u16,
    /// Its data.
    pub data: Vec<u8>,
}

/// What the kernel said of one CPU's buffer when the recording ended (`per_cpu/cpuN/stats`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuStat {
    /// Instance; empty for the top buffer.
    pub buffer: String,
    /// CPU.
    pub cpu: u32,
    /// Events in the buffer.
    pub entries: Option<u64>,
    /// Events read from it before.
    pub read: Option<u64>,
    /// Events overwritten by newer ones.
    pub overrun: Option<u64>,
    /// Events lost because an interrupted writer held the page.
    pub commit_overrun: Option<u64>,
    /// Events dropped because the buffer was full and not to be overwritten.
    pub dropped: Option<u64>,
}

impl Meta<'_> {
    /// Data of the first option with this number.
    pub fn option(&self, id: u16) -> Option<&[u8]> {
        self.options.iter().find(|o| o.id == id).map(|o| o.data.as_slice())
    }

    /// Text of the first option with this number, without its NUL.
    pub fn option_text(&self, id: u16) -> Option<Cow<'_, str>> {
        let data = self.option(id)?;
        Some(String::from_utf8_lossy(data.split(|&b| b == 0).next().unwrap_or_default()))
    }

    /// Bytes of a `long` of the traced kernel, 4 or 8: `header_page` says it; the file only knows user space.
    pub fn kernel_long_size(&self) -> u8 {
        let place = Place::file("");
        let page_size = usize::try_from(self.page_size).unwrap_or(0);
        match PageLayout::parse(&self.header_page, page_size, self.big_endian, &place) {
            Ok(layout) => layout.commit_size as u8,
            Err(_) => self.long_size,
        }
    }

    /// Name of the trace clock.
    pub fn clock(&self) -> Option<String> {
        chosen_clock(&self.option_text(id::TRACECLOCK)?)
    }

    /// Kernel release: the third word of `System node release machine`.
    pub fn kernel(&self) -> Option<String> {
        self.option_text(id::UNAME)?.split_whitespace().nth(2).map(str::to_string)
    }

    /// Gives formats the symbols and strings of the kernel. Returns address to symbol, sorted by address.
    pub(crate) fn complete(&self, formats: &mut Formats) -> Arc<Vec<(u64, String)>> {
        let symbols = Arc::new(parse_kallsyms(&self.kallsyms));
        formats.set_symbols(symbols.clone());
        formats.set_printk(parse_printk(&self.printk));
        symbols
    }

    /// Task names: (pid, comm), in the order of the file.
    pub fn tasks(&self) -> Vec<(i32, Vec<u8>)> {
        let line = |line: &[u8]| {
            let space = memchr::memchr(b' ', line)?;
            let pid = std::str::from_utf8(&line[..space]).ok()?.parse().ok()?;
            Some((pid, line[space + 1..].to_vec()))
        };
        self.cmdlines.split(|&b| b == b'\n' || b == 0).filter_map(line).collect()
    }

    /// From recorded to shown time: DATE and OFFSET are added, a TSC2NSEC scale is applied before. The offset
    /// of TSC2NSEC is not added, as trace-cmd does not.
    pub fn time(&self) -> TimeMap {
        let number = |option| self.option_text(option).and_then(|t| integer(&t)).unwrap_or(0);
        let offset = number(id::DATE).wrapping_mul(1000).wrapping_add(number(id::OFFSET));
        let scale = self.option(id::TSC2NSEC).and_then(|data| {
            let word = |at: usize| {
                let bytes: [u8; 4] = data.get(at..at + 4)?.try_into().ok()?;
                Some(if self.big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
            };
            Some((word(0).filter(|mult| *mult != 0)?, word(4)?))
        });
        TimeMap { scale, offset }
    }

    /// Losses as the kernel counted them, for every buffer and CPU that has them in the file.
    pub fn cpu_stats(&self) -> Vec<CpuStat> {
        let mut stats: Vec<CpuStat> = Vec::new();
        let mut buffer = String::new();
        for option in self.options.iter().filter(|o| o.id == id::CPUSTAT) {
            for line in String::from_utf8_lossy(&option.data).lines() {
                let Some((key, value)) = line.trim_end_matches('\0').split_once(':') else { continue };
                let number = value.trim().parse::<u64>().ok();
                match (key, stats.last_mut()) {
                    ("Buffer", _) => buffer = value.trim().to_string(),
                    ("CPU", _) => {
                        let cpu = number.and_then(|n| u32::try_from(n).ok());
                        stats.extend(cpu.map(|cpu| CpuStat { buffer: buffer.clone(), cpu, ..CpuStat::default() }));
                    }
                    ("entries", Some(stat)) => stat.entries = number,
                    ("read events", Some(stat)) => stat.read = number,
                    ("overrun", Some(stat)) => stat.overrun = number,
                    ("commit overrun", Some(stat)) => stat.commit_overrun = number,
                    ("dropped events", Some(stat)) => stat.dropped = number,
                    _ => {}
                }
            }
        }
        stats
    }
}

/// The name in brackets of a `trace_clock` text.
pub(super) fn chosen_clock(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    rest.split_once(']').map(|(name, _)| name.trim().to_string())
}

/// A decimal or, with `0x`, hexadecimal number with an optional sign.
fn integer(text: &str) -> Option<i64> {
    let text = text.trim();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let number = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some(if negative { (number as i64).wrapping_neg() } else { number as i64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(options: &[(u16, &[u8])]) -> Meta<'static> {
        let options = options.iter().map(|(id, data)| Opt { id: *id, data: data.to_vec() }).collect();
        Meta { options, ..Meta::default() }
    }

    #[test]
    fn time_is_scaled_then_shifted() {
        let plain = meta(&[(id::UNAME, b"Linux host 6.18.1 x86_64\0"), (id::TRACECLOCK, b"local [mono] x86-tsc\n\0")]);
        assert_eq!(plain.time(), TimeMap::default());
        assert_eq!(plain.kernel().as_deref(), Some("6.18.1"));
        assert_eq!(plain.clock().as_deref(), Some("mono"));
        let shifted = meta(&[(id::DATE, b"0x10\0"), (id::OFFSET, b"-5\0")]);
        assert_eq!(shifted.time().ns(100), 100 + 16_000 - 5);
        let data = [2u32.to_le_bytes(), 1u32.to_le_bytes(), [9; 4], [9; 4]].concat();
        let scaled = meta(&[(id::TSC2NSEC, &data), (id::OFFSET, b"7")]);
        assert_eq!(scaled.time().ns(100), 107);
    }

    #[test]
    fn names_of_tasks_may_hold_spaces() {
        let meta = Meta { cmdlines: b"58 kworker/1:1H\n7 a b\nx y\n12\n".into(), ..Meta::default() };
        assert_eq!(meta.tasks(), [(58, b"kworker/1:1H".to_vec()), (7, b"a b".to_vec())]);
    }

    #[test]
    fn losses_are_kept_by_buffer_and_cpu() {
        let stats = meta(&[
            (id::CPUSTAT, b"CPU: 0\nentries: 5\noverrun: 3\ncommit overrun: 0\ndropped events: 1\n\0"),
            (id::CPUSTAT, b"\nBuffer: lab\n\n\0"),
            (id::CPUSTAT, b"CPU: 1\noverrun: x\n\0"),
        ])
        .cpu_stats();
        let counted = CpuStat { entries: Some(5), overrun: Some(3), ..CpuStat::default() };
        let top = CpuStat { cpu: 0, commit_overrun: Some(0), dropped: Some(1), ..counted };
        assert_eq!(stats, [top, CpuStat { buffer: "lab".into(), cpu: 1, ..CpuStat::default() }]);
    }
}
