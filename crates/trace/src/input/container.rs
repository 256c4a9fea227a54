//! Files by their first bytes: trace.dat, text, compressed, archives.
//!
//! Text is decompressed as it is read. What needs random access (a trace.dat, an archive) is unpacked into an
//! unlinked temporary file or a temporary directory, in the bounds of `spool`, so memory stays bounded. Compressed
//! data that are cut or damaged end there: what could be unpacked is read, and that is said.

use super::spool::{self, Source};
use super::{Form, unpack};
use crate::map::map;
use crate::{Error, Place, dat};
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::rc::Rc;

/// What a file begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beginning {
    Dat,
    Gzip,
    Zstd,
    Xz,
    Tar,
    Other,
}

/// Bytes needed to tell: a tar header names itself at 257.
const HEAD: usize = 512;
/// Compressions one around the other. People have one; a file can be made that unpacks to itself for ever.
const LAYERS: usize = 4;

fn beginning(head: &[u8]) -> Beginning {
    match head {
        h if dat::is_dat(h) => Beginning::Dat,
        [0x1f, 0x8b, ..] => Beginning::Gzip,
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Beginning::Zstd,
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Beginning::Xz,
        h if h.get(257..262) == Some(b"ustar") => Beginning::Tar,
        _ => Beginning::Other,
    }
}

/// Why a stream ended before its end, once that is known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Broken(Rc<RefCell<Option<String>>>);

impl Broken {
    /// Notes why, the first time.
    pub fn note(&self, why: String) {
        self.0.borrow_mut().get_or_insert(why);
    }
    /// Why; `None`: nothing is broken so far.
    pub fn why(&self) -> Option<String> {
        self.0.borrow().clone()
    }
}

/// A stream whose first error is its end.
struct Tolerant<R> {
    stream: R,
    broken: Broken,
    ended: bool,
}

impl<R: Read> Read for Tolerant<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.ended {
            return Ok(0);
        }
        match self.stream.read(buffer) {
            Err(e) if e.kind() != io::ErrorKind::Interrupted => {
                let cut = "the compressed data are truncated or damaged; what could be unpacked is read";
                self.broken.note(format!("{cut}: {e}"));
                self.ended = true;
                Ok(0)
            }
            other => other,
        }
    }
}

/// Opens a file; `name` is for messages.
pub(super) fn file(name: &str, path: &Path) -> Result<(Form, Broken), Error> {
    let mut file = File::open(path).map_err(|e| Error::io(name, e))?;
    if !file.metadata().map_err(|e| Error::io(name, e))?.is_file() {
        return stream(name, Box::new(file));
    }
    let mut head = Vec::with_capacity(HEAD);
    (&mut file).take(HEAD as u64).read_to_end(&mut head).map_err(|e| Error::io(name, e))?;
    let mapped = || map(name, &file)?.ok_or_else(|| empty(name));
    match beginning(&head) {
        Beginning::Dat => Ok((Form::Dat(mapped()?), Broken::default())),
        Beginning::Other => Ok((Form::Text(mapped()?), Broken::default())),
        _ => {
            io::Seek::rewind(&mut file).map_err(|e| Error::io(name, e))?;
            stream(name, Box::new(file))
        }
    }
}

/// Opens a stream of bytes: standard input, a pipe, or a compressed file.
pub(super) fn stream(name: &str, input: Box<dyn Read>) -> Result<(Form, Broken), Error> {
    let (source, taken) = Source::new(input);
    let broken = Broken::default();
    let (kind, input) = peel(name, Box::new(source), Some(&broken))?;
    let cut = |broken: &Broken| broken.why().map(|why| Error::at(Place::file(name), why));
    let form = match kind {
        Beginning::Tar => unpack::unpack(name, input, &taken, &broken)?,
        Beginning::Dat => {
            let spool = spool::spool(name, input, &taken)?;
            Form::Dat(map(name, &spool)?.ok_or_else(|| empty(name))?)
        }
        _ => match input {
            Some(input) => Form::Stream(Some(input)),
            None => return Err(cut(&broken).unwrap_or_else(|| empty(name))),
        },
    };
    Ok((form, broken))
}

/// The text of a stream, decompressed; `None` if it is something else. Data that are cut are an error.
pub(crate) fn text(name: &str, input: Box<dyn Read>) -> Result<Option<Box<dyn Read>>, Error> {
    let (kind, input) = peel(name, input, None)?;
    match (kind, input) {
        (Beginning::Other, Some(input)) => Ok(Some(input)),
        (Beginning::Other, None) => Err(empty(name)),
        _ => Ok(None),
    }
}

/// Takes off compressions. Gives what is inside, from its start; `None` if that is empty. With `broken` an error in
/// compressed data is their end and is noted there.
fn peel(
    name: &str,
    mut input: Box<dyn Read>,
    broken: Option<&Broken>,
) -> Result<(Beginning, Option<Box<dyn Read>>), Error> {
    for _ in 0..=LAYERS {
        let (head, whole) = peek(name, input)?;
        let kind = beginning(&head);
        let unpacked: Box<dyn Read> = match kind {
            Beginning::Gzip => Box::new(flate2::read::MultiGzDecoder::new(whole)),
            Beginning::Zstd => Box::new(zstd::Decoder::new(whole).map_err(|e| Error::io(name, e))?),
            Beginning::Xz => Box::new(liblzma::read::XzDecoder::new_multi_decoder(whole)),
            _ => return Ok((kind, (!head.is_empty()).then(|| Box::new(whole) as Box<dyn Read>))),
        };
        input = match broken {
            Some(broken) => Box::new(Tolerant { stream: unpacked, broken: broken.clone(), ended: false }),
            None => unpacked,
        };
    }
    let message = format!("compressed more than {LAYERS} times over, which only malicious files are");
    Err(Error::at(Place::file(name), message))
}

fn empty(name: &str) -> Error {
    Error::Unknown { file: name.into(), message: "it is empty".into() }
}

/// The first bytes of a stream, and the stream from its start.
fn peek(name: &str, mut input: Box<dyn Read>) -> Result<(Vec<u8>, impl Read + use<>), Error> {
    let mut head = Vec::with_capacity(HEAD);
    (&mut input).take(HEAD as u64).read_to_end(&mut head).map_err(|e| Error::io(name, e))?;
    Ok((head.clone(), io::Cursor::new(head).chain(input)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn gz(text: &[u8]) -> Vec<u8> {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(text).unwrap();
        gz.finish().unwrap()
    }

    fn xz(text: &[u8]) -> Vec<u8> {
        let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
        xz.write_all(text).unwrap();
        xz.finish().unwrap()
    }

    fn read(bytes: Vec<u8>) -> (Vec<u8>, Option<String>) {
        let (form, broken) = super::stream("x", Box::new(io::Cursor::new(bytes))).unwrap();
        let Form::Stream(Some(mut stream)) = form else { panic!("not a stream") };
        let mut read = Vec::new();
        stream.read_to_end(&mut read).unwrap();
        (read, broken.why())
    }

    #[test]
    fn compressed_text_is_a_stream_whatever_its_name() {
        let text = b"# tracer: nop\n";
        for bytes in [gz(text), xz(text), zstd::encode_all(&text[..], 1).unwrap(), xz(&gz(text))] {
            assert_eq!(read(bytes), (text.to_vec(), None));
        }
    }

    #[test]
    fn what_is_there_of_a_cut_stream_is_read_and_the_cut_is_noted() {
        let text: Vec<u8> =
            (0..200_000u32).flat_map(|i| format!("{} ", i.wrapping_mul(2_654_435_761)).into_bytes()).collect();
        for bytes in [gz(&text), xz(&text), zstd::encode_all(&text[..], 1).unwrap()] {
            let (there, why) = read(bytes[..bytes.len() / 2].to_vec());
            assert!(!there.is_empty() && text.starts_with(&there), "{} bytes", there.len());
            assert!(why.is_some_and(|why| why.contains("truncated")));
            // An access trace must be whole.
            let strict = super::text("x", Box::new(io::Cursor::new(bytes[..bytes.len() / 2].to_vec())));
            assert!(strict.unwrap().unwrap().read_to_end(&mut Vec::new()).is_err());
        }
    }

    #[test]
    fn layers_are_counted() {
        let mut bytes = b"# tracer: nop\n".to_vec();
        for _ in 0..LAYERS {
            bytes = gz(&bytes);
        }
        assert!(stream("x", Box::new(io::Cursor::new(bytes.clone()))).is_ok());
        let Err(error) = stream("x", Box::new(io::Cursor::new(gz(&bytes)))) else { panic!("any depth is taken") };
        assert!(error.to_string().contains("more than 4 times"), "{error}");
    }

    #[test]
    fn nothing_is_an_error() {
        assert!(matches!(stream("x", Box::new(io::empty())), Err(Error::Unknown { .. })));
    }
}
