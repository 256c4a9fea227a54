//! Building the parts of a file that are kept in memory until it is written.

use super::codec::Codec;
use super::meta::{FormatText, Meta};
use super::{COMPRESSED, id};

/// The lowest `size` bytes of a number, in a byte order.
pub(super) fn number(value: u64, size: usize, big_endian: bool) -> Vec<u8> {
    let mut bytes = value.to_le_bytes()[..size].to_vec();
    if big_endian {
        bytes.reverse();
    }
    bytes
}

/// Bytes that grow.
pub(super) struct Builder {
    /// What was written.
    pub bytes: Vec<u8>,
    big_endian: bool,
}

impl Builder {
    pub fn new(big_endian: bool) -> Builder {
        Builder { bytes: Vec::new(), big_endian }
    }

    /// Bytes so far.
    pub fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// A number of `size` bytes.
    pub fn number(&mut self, value: u64, size: usize) {
        self.bytes.extend(number(value, size, self.big_endian));
    }

    /// Puts a 64-bit number into the place kept for it at byte `at`.
    pub fn patch(&mut self, at: u64, value: u64) {
        let at = at as usize;
        self.bytes[at..at + 8].copy_from_slice(&number(value, 8, self.big_endian));
    }

    /// Characters and a NUL.
    pub fn string(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.push(0);
    }

    /// A length of `size` bytes and the bytes.
    pub fn sized(&mut self, bytes: &[u8], size: usize) {
        self.number(bytes.len() as u64, size);
        self.bytes.extend_from_slice(bytes);
    }

    /// An option.
    pub fn option(&mut self, id: u16, data: &[u8]) {
        self.number(id.into(), 2);
        self.sized(data, 4);
    }

    /// The options that both versions have in the same form; `clock` if the meta data have none.
    pub fn options(&mut self, meta: &Meta<'_>, clock: &str, cpus: u32) {
        for option in &meta.options {
            self.option(option.id, &option.data);
        }
        if meta.option(id::TRACECLOCK).is_none() {
            self.option(id::TRACECLOCK, format!("[{clock}]\n\0").as_bytes());
        }
        if cpus != 0 {
            self.option(id::CPUCOUNT, &number(cpus.into(), 4, self.big_endian));
        }
    }

    /// The header of a section of version 7.
    pub fn section_header(&mut self, id: u16, compressed: bool, name: u32, size: u64) {
        self.number(id.into(), 2);
        self.number(if compressed { COMPRESSED.into() } else { 0 }, 2);
        self.number(name.into(), 4);
        self.number(size, 8);
    }

    /// A section of version 7.
    pub fn section(&mut self, id: u16, codec: Codec, name: u32, body: &[u8]) -> std::io::Result<()> {
        if codec == Codec::None {
            self.section_header(id, false, name, body.len() as u64);
            self.bytes.extend_from_slice(body);
            return Ok(());
        }
        let packed = codec.compress(body)?;
        self.section_header(id, true, name, packed.len() as u64 + 8);
        self.number(packed.len() as u64, 4);
        self.number(body.len() as u64, 4);
        self.bytes.extend_from_slice(&packed);
        Ok(())
    }

    /// Texts of `events/header_page` and `events/header_event`.
    pub fn header_info(&mut self, meta: &Meta<'_>) {
        self.string("header_page");
        self.sized(meta.header_page.as_bytes(), 8);
        self.string("header_event");
        self.sized(meta.header_event.as_bytes(), 8);
    }

    /// Formats of the system `ftrace`.
    pub fn ftrace_formats(&mut self, meta: &Meta<'_>) {
        self.formats(meta.formats.iter().filter(|f| f.system == "ftrace"));
    }

    /// Formats of all other systems, by system in order of first occurrence.
    pub fn event_formats(&mut self, meta: &Meta<'_>) {
        let others = || meta.formats.iter().filter(|f| f.system != "ftrace");
        let mut systems: Vec<&str> = Vec::new();
        for format in others() {
            if !systems.contains(&format.system.as_str()) {
                systems.push(&format.system);
            }
        }
        self.number(systems.len() as u64, 4);
        for system in systems {
            self.string(system);
            self.formats(others().filter(|f| f.system == system));
        }
    }

    fn formats<'f>(&mut self, formats: impl Iterator<Item = &'f FormatText> + Clone) {
        self.number(formats.clone().count() as u64, 4);
        for format in formats {
            self.sized(format.text.as_bytes(), 8);
        }
    }
}

/// The strings section: names of sections, found by their offset.
#[derive(Default)]
pub(super) struct Strings(pub Vec<u8>);

impl Strings {
    /// Adds a name and gives its number.
    pub fn add(&mut self, name: &str) -> u32 {
        let at = self.0.len() as u32;
        self.0.extend_from_slice(name.as_bytes());
        self.0.push(0);
        at
    }
}
