//! Files by their first bytes: trace.dat, text, compressed, archives.
//!
//! Text is decompressed as it is read. What needs random access (a trace.dat, an archive) is unpacked into an
//! unlinked temporary file or a temporary directory, so memory stays bounded.

use super::Form;
use crate::map::map;
use crate::{Error, dat};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

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

/// Opens a file; `name` is for messages, and may differ where the path is not UTF-8.
pub(super) fn file(name: &str, path: &Path) -> Result<Form, Error> {
    let mut file = File::open(path).map_err(|e| Error::io(name, e))?;
    if !file.metadata().map_err(|e| Error::io(name, e))?.is_file() {
        return stream(name, Box::new(file));
    }
    let mut head = Vec::with_capacity(HEAD);
    (&mut file).take(HEAD as u64).read_to_end(&mut head).map_err(|e| Error::io(name, e))?;
    let mapped = || map(name, &file)?.ok_or_else(|| empty(name));
    match beginning(&head) {
        Beginning::Dat => Ok(Form::Dat(mapped()?)),
        Beginning::Other => Ok(Form::Text(mapped()?)),
        _ => {
            io::Seek::rewind(&mut file).map_err(|e| Error::io(name, e))?;
            stream(name, Box::new(file))
        }
    }
}

/// Opens a stream of bytes: standard input, a pipe, or what a decompressor gives.
pub(super) fn stream(name: &str, input: Box<dyn Read>) -> Result<Form, Error> {
    let (head, input) = peek(name, input)?;
    match beginning(&head) {
        Beginning::Gzip => stream(name, Box::new(flate2::read::MultiGzDecoder::new(input))),
        Beginning::Zstd => stream(name, Box::new(zstd::Decoder::new(input).map_err(|e| Error::io(name, e))?)),
        Beginning::Xz => stream(name, Box::new(liblzma::read::XzDecoder::new_multi_decoder(input))),
        Beginning::Tar => unpack(name, input),
        Beginning::Dat => {
            let mut spool = tempfile::tempfile().map_err(|e| Error::io(name, e))?;
            io::copy(&mut BufReader::new(input), &mut spool).map_err(|e| Error::io(name, e))?;
            Ok(Form::Dat(map(name, &spool)?.ok_or_else(|| empty(name))?))
        }
        Beginning::Other if head.is_empty() => Err(empty(name)),
        Beginning::Other => Ok(Form::Stream(Some(Box::new(input)))),
    }
}

/// The text of a stream, decompressed; `None` if it is something else.
pub(crate) fn text(name: &str, input: Box<dyn Read>) -> Result<Option<Box<dyn Read>>, Error> {
    match stream(name, input)? {
        Form::Stream(stream) => Ok(stream),
        _ => Ok(None),
    }
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

fn unpack(name: &str, input: impl Read) -> Result<Form, Error> {
    let directory = tempfile::tempdir().map_err(|e| Error::io(name, e))?;
    let mut archive = tar::Archive::new(input);
    for entry in archive.entries().map_err(|e| Error::io(name, e))? {
        let mut entry = entry.map_err(|e| Error::io(name, e))?;
        if entry.header().entry_type().is_file() {
            // `unpack_in` refuses paths that lead out of the directory.
            entry.unpack_in(directory.path()).map_err(|e| Error::io(name, e))?;
        }
    }
    let path: std::path::PathBuf = directory.path().into();
    super::directory(name, &path, Some(directory))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn compressed_text_is_a_stream_whatever_its_name() {
        let text = b"# tracer: nop\n";
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(text).unwrap();
        let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 1);
        xz.write_all(text).unwrap();
        let packed = [gz.finish().unwrap(), xz.finish().unwrap(), zstd::encode_all(&text[..], 1).unwrap()];
        for bytes in packed {
            let Form::Stream(Some(mut stream)) = super::stream("x", Box::new(io::Cursor::new(bytes))).unwrap() else {
                panic!("not a stream")
            };
            let mut read = Vec::new();
            stream.read_to_end(&mut read).unwrap();
            assert_eq!(read, text);
        }
    }

    #[test]
    fn nothing_is_an_error() {
        assert!(matches!(stream("x", Box::new(io::empty())), Err(Error::Unknown { .. })));
    }
}
