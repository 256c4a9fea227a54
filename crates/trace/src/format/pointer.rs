//! The kernel's extensions of `%p`: symbols, addresses of network and hardware, UUIDs, bit masks, bytes.
//!
//! Covers `%p %px %pK %pS %ps %pF %pf %pB %pM %pm %pI %pi %pU %ph %pb %pbl` and their modifiers. Not supported: what needs
//! memory of the recorded kernel (`%pd`, `%pV`, ...); formats with those are printed field by field. A plain `%p` is
//! hashed by kernels from 4.15 on; the hash cannot be reproduced, so the recorded address is printed.
//! The address of a page structure needs the start of `vmemmap`, which is not recorded: x86-64's usual start is taken,
//! so the address is true for kernels that do not randomise their layout, and names the page as well as a hash does
//! for the others. trace-cmd adds the frame number to the address of the variable `vmemmap_base`, if it has symbols.

use super::eval::{Memory, Num};
use super::expr::Expr;
use super::out::Out;
use super::scope::{Rules, Scope};
use super::text::{Memo, PrintContext, Text};

/// What a `%p` conversion prints.
#[derive(Debug)]
pub enum Pointer {
    /// An address.
    Address(Num),
    /// An address without leading zeros.
    Hex(Num),
    /// The symbol that holds an address, with the offset in it or without.
    Symbol(Num, bool, Memo),
    /// A hardware address, its separator, and whether its bytes are reversed.
    Mac(Memory, Option<u8>, bool),
    /// An IPv4 address, with leading zeros or without.
    Ipv4(Memory, bool),
    /// An IPv6 address, compressed or not, with colons or without.
    Ipv6(Memory, bool, bool),
    /// A socket address, IPv6 compressed or not, with its port or without.
    Socket(Memory, bool, bool),
    /// A UUID: its bytes are little endian, its letters are capitals.
    Uuid(Memory, bool, bool),
    /// Something that `%s` could print too.
    Text(Text),
}

impl Scope<'_> {
    /// Compiles a `%p` conversion whose letters begin `letters`. Gives the number of letters it takes.
    /// `width` is the argument of a `*` before.
    pub fn pointer(&self, letters: &[u8], width: Option<&Expr>, arg: &Expr) -> Result<(Pointer, usize), String> {
        let after = |n: usize| letters.get(n).copied().unwrap_or(0);
        let memory = || self.memory_of(arg).map(|(memory, _)| memory);
        let c = self.rules == Rules::C;
        Ok(match after(0) {
            b'S' | b'F' | b'B' if c => {
                let reversible = usize::from(after(1) == b'R');
                (Pointer::Symbol(self.number(arg)?.num, true, Memo::new(8)), 1 + reversible)
            }
            b'S' | b'F' => (Pointer::Symbol(self.number(arg)?.num, true, Memo::new(8)), 1),
            b's' | b'f' => (Pointer::Symbol(self.number(arg)?.num, false, Memo::new(8)), 1),
            b'x' if c => (Pointer::Hex(self.number(arg)?.num), 1),
            b'K' if c => (Pointer::Address(self.number(arg)?.num), 1),
            b'M' => match after(1) {
                b'F' => (Pointer::Mac(memory()?, Some(b'-'), false), 2),
                b'R' => (Pointer::Mac(memory()?, Some(b':'), true), 2),
                _ => (Pointer::Mac(memory()?, Some(b':'), false), 1),
            },
            b'm' if after(1) == b'R' => (Pointer::Mac(memory()?, None, true), 2),
            b'm' => (Pointer::Mac(memory()?, None, false), 1),
            b'I' | b'i' => self.internet(letters, memory()?)?,
            b'U' => match after(1) {
                b'l' => (Pointer::Uuid(memory()?, true, false), 2),
                b'L' => (Pointer::Uuid(memory()?, true, true), 2),
                b'b' => (Pointer::Uuid(memory()?, false, false), 2),
                b'B' => (Pointer::Uuid(memory()?, false, true), 2),
                _ => (Pointer::Uuid(memory()?, false, false), 1),
            },
            b'h' => {
                let (separator, taken): (&[u8], _) = match after(1) {
                    b'C' => (b":", 2),
                    b'D' => (b"-", 2),
                    b'N' => (b"", 2),
                    _ => (b" ", 1),
                };
                (Pointer::Text(self.hex(arg, width, separator)?), taken)
            }
            b'b' if c => {
                let count = width.map(|w| self.number(w)).transpose()?.map(|w| w.num);
                match after(1) {
                    b'l' => (Pointer::Text(Text::BitList(memory()?, count)), 2),
                    _ => (Pointer::Text(Text::Bitmask(memory()?)), 1),
                }
            }
            letter if c && letter.is_ascii_alphabetic() => {
                return Err(format!("unknown conversion %p{}", char::from(letter)));
            }
            // trace-cmd prints the address and then the letters it does not know.
            _ => (Pointer::Address(self.address(arg)?), 0),
        })
    }

    /// A pointer as a number. The address of an array of the record is not known.
    fn address(&self, arg: &Expr) -> Result<Num, String> {
        match self.number(arg) {
            Ok(typed) => Ok(typed.num),
            Err(_) if self.rules == Rules::TraceCmd && self.memory_of(arg).is_ok() => Ok(Num::Const(0)),
            Err(why) => Err(why),
        }
    }

    fn internet(&self, letters: &[u8], memory: Memory) -> Result<(Pointer, usize), String> {
        let dense = letters[0] == b'i';
        let flags = letters.iter().skip(2).take_while(|b| b"cpfshnbl".contains(b)).count();
        let has = |flag: u8| letters[2..2 + flags].contains(&flag);
        match letters.get(1) {
            Some(b'4') => {
                let order = usize::from(letters.get(2).is_some_and(|b| b"hnbl".contains(b)));
                if order == 1 && matches!(letters[2], b'h' | b'l') {
                    return Err("IPv4 addresses in host order are not supported".into());
                }
                Ok((Pointer::Ipv4(memory, dense), 2 + order))
            }
            Some(b'6') => {
                let compressed = letters.get(2) == Some(&b'c');
                Ok((Pointer::Ipv6(memory, compressed, !dense), 2 + usize::from(compressed)))
            }
            Some(b'S') if !dense => Ok((Pointer::Socket(memory, has(b'c'), has(b'p')), 2 + flags)),
            _ => Err("an unknown form of an internet address".into()),
        }
    }
}

impl Pointer {
    /// Prints it for one record.
    pub fn print(&self, raw: &[u8], env: PrintContext<'_>, out: &mut Out) {
        let bytes = |memory: &Memory| memory.of(raw, env.big_endian);
        match self {
            Pointer::Address(address) => {
                let address = address.eval(raw, env.big_endian);
                match env.rules {
                    Rules::C => out.hex_digits(address, usize::from(env.long_size) * 2),
                    Rules::TraceCmd if address == 0 => out.extend(b"(nil)"),
                    Rules::TraceCmd => {
                        out.extend(b"0x");
                        out.hex(address);
                    }
                }
            }
            Pointer::Hex(address) => out.hex(address.eval(raw, env.big_endian)),
            Pointer::Symbol(address, offset, memo) => {
                memo.print(address.eval(raw, env.big_endian), out, |address, out| symbol(address, *offset, env, out));
            }
            Pointer::Mac(memory, separator, reversed) => {
                let bytes = bytes(memory);
                let bytes = &bytes[..bytes.len().min(6)];
                for i in 0..bytes.len() {
                    if i > 0 {
                        separator.iter().for_each(|s| out.push(*s));
                    }
                    out.hex_digits(u64::from(bytes[if *reversed { bytes.len() - 1 - i } else { i }]), 2);
                }
            }
            Pointer::Ipv4(memory, zeros) => ipv4(bytes(memory), *zeros, out),
            Pointer::Ipv6(memory, compressed, colons) => ipv6(bytes(memory), *compressed, *colons, out),
            Pointer::Socket(memory, compressed, port) => socket(bytes(memory), *compressed, *port, env, out),
            Pointer::Uuid(memory, little, capitals) => uuid(bytes(memory), *little, *capitals, out),
            Pointer::Text(text) => text.print(raw, env, out),
        }
    }
}

/// `name+0x0/0x210` as the kernel prints it, `name+0x0` as trace-cmd does.
fn symbol(address: u64, with_offset: bool, env: PrintContext<'_>, out: &mut Out) {
    let found = match env.rules {
        Rules::C => env.symbols.find(address),
        Rules::TraceCmd => env.symbols.find_bisecting(address),
    };
    let Some(found) = found else {
        out.extend(b"0x");
        return out.hex(address);
    };
    out.extend(found.name.as_bytes());
    if with_offset {
        out.extend(b"+0x");
        out.hex(found.offset);
        if let (Rules::C, Some(size)) = (env.rules, found.size) {
            out.extend(b"/0x");
            out.hex(size);
        }
    }
}

fn ipv4(bytes: &[u8], zeros: bool, out: &mut Out) {
    for (i, byte) in bytes.iter().take(4).enumerate() {
        if i > 0 {
            out.push(b'.');
        }
        out.padded(u64::from(*byte), b'0', if zeros { 3 } else { 1 });
    }
}

fn ipv6(bytes: &[u8], compressed: bool, colons: bool, out: &mut Out) {
    let Some(bytes) = bytes.first_chunk::<16>() else { return };
    if compressed {
        return out.extend(std::net::Ipv6Addr::from(*bytes).to_string().as_bytes());
    }
    for (i, byte) in bytes.iter().enumerate() {
        if colons && i > 0 && i % 2 == 0 {
            out.push(b':');
        }
        out.hex_digits(u64::from(*byte), 2);
    }
}

/// `struct sockaddr_in` or `sockaddr_in6`: family in the kernel's byte order, the rest in the network's.
fn socket(bytes: &[u8], compressed: bool, with_port: bool, env: PrintContext<'_>, out: &mut Out) {
    let family = super::eval::number_of(bytes.get(..2).unwrap_or_default(), env.big_endian);
    let port = super::eval::number_of(bytes.get(2..4).unwrap_or_default(), true);
    match family {
        2 => ipv4(bytes.get(4..).unwrap_or_default(), false, out),
        10 if with_port => {
            out.push(b'[');
            ipv6(bytes.get(8..).unwrap_or_default(), compressed, true, out);
            out.push(b']');
        }
        10 => ipv6(bytes.get(8..).unwrap_or_default(), compressed, true, out),
        _ if env.rules == Rules::C => return out.extend(b"(einval)"),
        _ => return,
    }
    if with_port {
        out.push(b':');
        out.decimal(port);
    }
}

fn uuid(bytes: &[u8], little: bool, capitals: bool, out: &mut Out) {
    const LITTLE: [usize; 16] = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
    let start = out.len();
    for (i, &swapped) in LITTLE.iter().enumerate().take(bytes.len()) {
        if matches!(i, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        let byte = bytes.get(if little { swapped } else { i }).copied().unwrap_or(0);
        out.hex_digits(u64::from(byte), 2);
    }
    if capitals {
        out.capitalise(start);
    }
}
