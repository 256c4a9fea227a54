//! `trace.dat`, the file of trace-cmd, version 6 (one part after another) and 7 (sections and options).
//!
//! [`open`] reads everything but the ring-buffer pages into [`Meta`] and [`Buffer`]s; pages are handed out as
//! [`CpuStream`](crate::ring::CpuStream)s, plain ones as slices of the mapped file. [`Writer`] takes the same
//! `Meta` and pages of any CPU in any order. [`DatWriter`] turns a stream of events into a file, [`copy`] one file
//! into another.
//!
//! Format: trace-cmd's manual pages trace-cmd.dat.v6(5) and v7(5), and what trace-cmd 3.1.6 does beyond them:
//! - version 6 has the chosen clock (u64 length, `[name]`) behind each table of CPUs if there is a TRACECLOCK option;
//! - the CPUCOUNT option replaces the number of CPUs in version 6 and decides the length of those tables;
//! - in version 7 the size of compressed CPU data omits the u32 number of chunks in front of them;
//! - CPUs without data are not listed in version 7, and a file may lack the top buffer;
//! - the strings section is found by walking all sections, no option points to it.
//!
//! Not supported: HOOK, PROCMAPS, GUEST, BTF and module options mean nothing to the reader; the writer copies those
//! options of a `Meta` that hold no file offsets. TIME_SHIFT (a guest's clock against its host's) is not applied, with a
//! warning. Validated against files written by trace-cmd 3.1.6, whose
//! report prints the same from files written here.

mod build;
mod bytes;
mod codec;
mod copy;
mod lines;
mod meta;
mod open;
mod pages;
mod recover;
mod sections;
mod sequential;
mod sink;
mod spool;
mod write;

pub(crate) use codec::Expander;
pub use codec::{Codec, MAX_PIECE};
pub use copy::copy;
pub use meta::{CpuStat, FormatText, Meta, Opt};
pub use open::{DatFile, is_dat, open};
pub use pages::{Buffer, Content, CpuData, Stored};
pub use sink::{DatWriter, Origin, Written};
pub use write::{Version, Writer};

/// First bytes of every trace.dat.
pub const MAGIC: &[u8; 10] = b"\x17\x08\x44tracing";

/// Numbers of options and, in version 7, of sections.
pub mod id {
    #![allow(missing_docs)] // the names are trace-cmd's; trace-cmd.dat.v7(5) explains each
    pub const DONE: u16 = 0;
    pub const DATE: u16 = 1;
    pub const CPUSTAT: u16 = 2;
    pub const BUFFER: u16 = 3;
    pub const TRACECLOCK: u16 = 4;
    pub const UNAME: u16 = 5;
    pub const OFFSET: u16 = 7;
    pub const CPUCOUNT: u16 = 8;
    pub const VERSION: u16 = 9;
    pub const TRACEID: u16 = 11;
    pub const TIME_SHIFT: u16 = 12;
    pub const TSC2NSEC: u16 = 14;
    pub const STRINGS: u16 = 15;
    pub const HEADER_INFO: u16 = 16;
    pub const FTRACE_EVENTS: u16 = 17;
    pub const EVENT_FORMATS: u16 = 18;
    pub const KALLSYMS: u16 = 19;
    pub const PRINTK: u16 = 20;
    pub const CMDLINES: u16 = 21;
    pub const BUFFER_TEXT: u16 = 22;
}

/// Flag of a section of version 7: its body is compressed.
const COMPRESSED: u16 = 1;

#[cfg(test)]
mod tests;
