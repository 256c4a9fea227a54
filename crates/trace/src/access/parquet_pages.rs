//! How large a Parquet file says its pages are, looked up before they are decoded.
//!
//! The crate `parquet` makes room for as many bytes as a page's header promises, up to 2 GiB, and a page may hold that many of
//! which the file has a thousandth. So each header is read here first: it is a struct in Thrift's compact protocol, of which
//! fields 2 and 3 are the bytes of the page after and before it is unpacked (`PageHeader` of parquet-format). What cannot be
//! read is left to the crate, which then reports it.

use parquet::file::metadata::ParquetMetaData;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Most bytes of a page; writers make them of 1 MiB.
pub(super) const MOST: u64 = 256 << 20;
/// Bytes in which a header ends, with its statistics.
const HEADER: usize = 64 << 10;
/// Structs within structs.
const DEPTH: u32 = 16;

/// Refuses a file with a page of more than so many bytes in one of some columns.
pub(super) fn check(file: &File, metadata: &ParquetMetaData, columns: &[&str], most: u64) -> Result<(), String> {
    let mut bytes = vec![0; HEADER];
    let chunks = metadata.row_groups().iter().flat_map(|group| group.columns());
    for chunk in chunks.filter(|chunk| columns.contains(&chunk.column_descr().name())) {
        let (start, length) = chunk.byte_range();
        let (mut at, end) = (start, start.saturating_add(length));
        while at < end {
            let Ok(read) = file.read_at(&mut bytes, at) else { break };
            let Some(page) = header(&bytes[..read]) else { break };
            if page.unpacked > most {
                let name = chunk.column_descr().name();
                return Err(format!(
                    "byte {at}: a page of column {name} has {} bytes, the most is {most}",
                    page.unpacked
                ));
            }
            at = at.saturating_add(page.header + page.packed);
        }
    }
    Ok(())
}

/// Bytes of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Page {
    header: u64,
    packed: u64,
    unpacked: u64,
}

/// The page whose header some bytes begin with.
fn header(bytes: &[u8]) -> Option<Page> {
    let (mut rest, mut id) = (bytes, 0i64);
    let (mut unpacked, mut packed) = (None, None);
    loop {
        let head = byte(&mut rest)?;
        if head == 0 {
            break;
        }
        id = if head >> 4 == 0 { number(&mut rest)? } else { id + i64::from(head >> 4) };
        match (id, head & 15) {
            (2, 5) => unpacked = Some(number(&mut rest)?),
            (3, 5) => packed = Some(number(&mut rest)?),
            (_, kind) => skip(&mut rest, kind, DEPTH)?,
        }
    }
    let header = (bytes.len() - rest.len()) as u64;
    Some(Page { header, packed: packed?.try_into().ok()?, unpacked: unpacked?.try_into().ok()? })
}

/// Passes over a value of a type.
fn skip(rest: &mut &[u8], kind: u8, depth: u32) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    match kind {
        // A field that is true or false has no more than its type.
        1 | 2 => {}
        3 => drop(byte(rest)?),
        4..=6 => drop(varint(rest)?),
        7 => *rest = rest.get(8..)?,
        8 => {
            let length = usize::try_from(varint(rest)?).ok()?;
            *rest = rest.get(length..)?;
        }
        9 | 10 => {
            let head = byte(rest)?;
            let count = if head >> 4 == 15 { varint(rest)? } else { u64::from(head >> 4) };
            for _ in 0..count {
                element(rest, head & 15, depth)?;
            }
        }
        11 => {
            let count = varint(rest)?;
            let kinds = if count > 0 { byte(rest)? } else { 0 };
            for _ in 0..count {
                element(rest, kinds >> 4, depth)?;
                element(rest, kinds & 15, depth)?;
            }
        }
        12 => loop {
            let head = byte(rest)?;
            if head == 0 {
                break;
            }
            if head >> 4 == 0 {
                varint(rest)?;
            }
            skip(rest, head & 15, depth)?;
        },
        _ => return None,
    }
    Some(())
}

/// Passes over a value of a list or map, where true and false take a byte.
fn element(rest: &mut &[u8], kind: u8, depth: u32) -> Option<()> {
    skip(rest, if kind <= 2 { 3 } else { kind }, depth)
}

fn byte(rest: &mut &[u8]) -> Option<u8> {
    let (first, others) = rest.split_first()?;
    *rest = others;
    Some(*first)
}

/// Seven bits in each byte, the lowest first.
fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let next = byte(rest)?;
        number |= u64::from(next & 127) << shift;
        if next < 128 {
            return Some(number);
        }
    }
    None
}

/// A number with its sign in the lowest bit.
fn number(rest: &mut &[u8]) -> Option<i64> {
    let number = varint(rest)?;
    Some((number >> 1) as i64 ^ -((number & 1) as i64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_as_thrift_writes_it() {
        // Type 0, 300 bytes of 20, a checksum, a struct with a list of flags, a text and a number, the end.
        let bytes = [
            0x15, 0, 0x15, 0xd8, 0x04, 0x15, 0x28, 0x15, 0x01, 0x1c, 0x19, 0x21, 1, 2, 0x18, 2, b'a', b'b', 0x16, 4, 0,
            0,
        ];
        let page = Page { header: bytes.len() as u64, packed: 20, unpacked: 300 };
        assert_eq!(header(&[&bytes[..], &[7; 30]].concat()), Some(page));
        for cut in 0..bytes.len() {
            assert_eq!(header(&bytes[..cut]), None, "{cut}");
        }
    }

    #[test]
    fn what_is_no_header_is_none() {
        assert_eq!(header(&[0]), None);
        assert_eq!(header(&[0x1d, 0]), None);
        assert_eq!(header(&[0x1c; 100]), None);
        assert_eq!(header(&[0x15, 0, 0x15, 1, 0x15, 0, 0]), None, "less than nothing");
        assert_eq!(header(&[[0x16].as_slice(), &[0xff; 20]].concat()), None);
    }
}
