//! Containers: gzip, xz, Zstandard and tar, in each other, around texts and a trace.dat.

use super::everything::{format_of, reported};
use crate::parts::{self, Part};
use crate::samples::{self, V6, V7};
use crate::{Random, Seen, mutate, scratch};
use mmtwin_trace::input::InputFile;
use std::io::Write;

/// Kinds of parts: what is inside, and the layers around it from the innermost on.
const INSIDE: u8 = 0;
const LAYER: u8 = 1;

/// Texts and archives in one and several layers.
pub fn seeds() -> Vec<Vec<u8>> {
    let text = samples::file("crates/trace/tests/data/text/vmscan-6.18.txt", 4 << 10);
    let fgraph = samples::file("crates/trace/tests/data/text/fgraph-6.1.txt", 4 << 10);
    let (v6, v7) = (samples::file(V6, 24 << 10), samples::file(V7, usize::MAX));
    let seed = |inside: &[u8], layers: &[&[u8]]| {
        let around = layers.iter().map(|layer| (LAYER, layer.to_vec()));
        parts::join(&[(INSIDE, inside.to_vec())].into_iter().chain(around).collect::<Vec<Part>>())
    };
    vec![
        seed(&text, &[b"g"]),
        seed(&fgraph, &[b"x"]),
        seed(&text, &[b"z"]),
        seed(&text, &[b"ttrace.txt", b"g"]),
        seed(&v7, &[b"z"]),
        seed(&v7, &[b"ttrace.dat", b"x"]),
        seed(&v6, &[b"g"]),
        seed(b"pgfault 1\n", &[b"tafter/vmstat", b"z", b"g"]),
        seed(&text, &[b"ta/trace", b"tb/trace.gz"]),
    ]
}

/// What is inside by text or bytes, layers by bytes, which may be any of them.
pub fn mutate(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    parts::mutate(input, other, random, |kind, part, lent, random| match kind {
        LAYER if random.one_in(2) => {
            let layers: [&[u8]; 8] = [
                b"g",
                b"x",
                b"z",
                b"ttrace.txt",
                b"ttrace.dat",
                b"t../../x",
                b"tper_cpu/cpu0/trace_pipe_raw",
                b"d\x07\x03\xff",
            ];
            *part = layers[random.below(layers.len())].to_vec();
        }
        LAYER => mutate::bytes(part, lent, random),
        _ if random.one_in(2) => mutate::text(part, lent, random),
        _ => mutate::bytes(part, lent, random),
    });
}

/// Wraps what is inside. A layer is a letter: g, x, z; t with a name in a tar archive; d damages what is there so far at
/// places that its bytes say.
pub fn wrapped(input: &[u8]) -> Vec<u8> {
    let (mut bytes, mut layers) = (Vec::new(), 0);
    for (kind, part) in parts::split(input) {
        if kind == INSIDE {
            bytes.extend(part);
            continue;
        }
        let Some((letter, rest)) = part.split_first().filter(|_| layers < 12) else { continue };
        layers += 1;
        match letter {
            b'g' => {
                let mut to = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                to.write_all(&bytes).expect("memory");
                bytes = to.finish().expect("memory");
            }
            b'x' => {
                let mut to = liblzma::write::XzEncoder::new(Vec::new(), 0);
                to.write_all(&bytes).expect("memory");
                bytes = to.finish().expect("memory");
            }
            b'z' => bytes = zstd::encode_all(&bytes[..], 1).expect("memory"),
            b't' => bytes = archive(rest, &bytes),
            _ => {
                for pair in rest.chunks_exact(3) {
                    let at = usize::from(u16::from_le_bytes([pair[0], pair[1]])) % bytes.len().max(1);
                    if let Some(byte) = bytes.get_mut(at) {
                        *byte ^= pair[2];
                    }
                }
            }
        }
    }
    bytes
}

/// A tar archive of one file, with the name as it is: the crate would refuse some names.
fn archive(name: &[u8], bytes: &[u8]) -> Vec<u8> {
    let mut header = tar::Header::new_ustar();
    let field = &mut header.as_old_mut().name;
    field.iter_mut().zip(name).for_each(|(to, from)| *to = *from);
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    header.set_cksum();
    let mut builder = tar::Builder::new(Vec::new());
    builder.append(&header, bytes).expect("memory");
    builder.into_inner().expect("memory")
}

/// Reads and reports what a container holds.
pub fn run(input: &[u8]) -> Seen {
    scratch::file(&wrapped(input), |name| reported(InputFile::open(name), format_of(input)))
}

/// Containers as bytes.
pub fn packed() -> Vec<Vec<u8>> {
    seeds().iter().map(|seed| wrapped(seed)).collect()
}

/// Reads and reports bytes.
pub fn run_packed(input: &[u8]) -> Seen {
    scratch::file(input, |name| reported(InputFile::open(name), format_of(input)))
}
