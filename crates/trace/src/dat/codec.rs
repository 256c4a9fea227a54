//! The compressions of trace.dat 7: `none`, `zlib` (zlib streams) and `zstd` (frames).
//!
//! The length after decompression is stored beside every piece. It is believed only as far as the piece could
//! reach it and [`MAX_PIECE`] allows, so a damaged number costs no memory.
//! Validated: zstd against files of trace-cmd 3.1.6, both ways; zlib, for which Debian's trace-cmd is not built, by
//! reading back.

use std::io::Write;

/// Most bytes that one piece may decompress to: sections have some MB, of which symbols are the most.
pub const MAX_PIECE: usize = 64 << 20;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Codec {
    /// Not at all.
    #[default]
    None,
    /// zlib.
    Zlib,
    /// Zstandard.
    Zstd,
}

impl Codec {
    /// By the name in a file.
    pub fn of_name(name: &str) -> Option<Codec> {
        [Codec::None, Codec::Zlib, Codec::Zstd].into_iter().find(|c| c.name() == name)
    }

    /// The name in a file.
    pub fn name(self) -> &'static str {
        match self {
            Codec::None => "none",
            Codec::Zlib => "zlib",
            Codec::Zstd => "zstd",
        }
    }

    /// The version to write beside the name. Readers ignore it; it is that of the format, not of a library.
    pub(super) fn version(self) -> &'static str {
        match self {
            Codec::None => "",
            Codec::Zlib => "1",
            Codec::Zstd => "1",
        }
    }

    /// Most bytes that `compressed` bytes can stand for.
    fn limit(self, compressed: usize) -> usize {
        let ratio = match self {
            Codec::None => 1,
            // A match of 258 bytes takes at least two bits.
            Codec::Zlib => 258 * 4,
            // A block of at most 128 KiB takes at least four bytes.
            Codec::Zstd => 32 << 10,
        };
        compressed.saturating_mul(ratio).min(MAX_PIECE)
    }

    /// Compresses one piece.
    pub(super) fn compress(self, piece: &[u8]) -> std::io::Result<Vec<u8>> {
        match self {
            Codec::None => Ok(piece.to_vec()),
            Codec::Zlib => {
                let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
                encoder.write_all(piece)?;
                encoder.finish()
            }
            Codec::Zstd => zstd::bulk::compress(piece, 0),
        }
    }
}

/// Decompresses pieces; it keeps what can be used again between them.
pub(crate) enum Expander {
    None,
    Zlib(flate2::Decompress),
    Zstd(zstd::bulk::Decompressor<'static>),
}

impl Expander {
    pub fn new(codec: Codec) -> std::io::Result<Expander> {
        Ok(match codec {
            Codec::None => Expander::None,
            Codec::Zlib => Expander::Zlib(flate2::Decompress::new(true)),
            Codec::Zstd => Expander::Zstd(zstd::bulk::Decompressor::new()?),
        })
    }

    /// The `size` bytes that `piece` stands for, or what is wrong with it.
    pub fn expand(&mut self, piece: &[u8], size: usize) -> Result<Vec<u8>, String> {
        let codec = match self {
            Expander::None => Codec::None,
            Expander::Zlib(_) => Codec::Zlib,
            Expander::Zstd(_) => Codec::Zstd,
        };
        if size > codec.limit(piece.len()) {
            return Err("a compressed piece claims more bytes than it can hold".into());
        }
        let bytes = match self {
            Expander::None => piece.to_vec(),
            Expander::Zlib(stream) => {
                stream.reset(true);
                // One byte more than needed, so that a stream that continues is reported from one that ends.
                let mut out = Vec::with_capacity(size + 1);
                stream
                    .decompress_vec(piece, &mut out, flate2::FlushDecompress::Finish)
                    .map_err(|e| format!("zlib data are damaged: {e}"))?;
                out
            }
            Expander::Zstd(stream) => {
                stream.decompress(piece, size).map_err(|e| format!("zstd data are damaged: {e}"))?
            }
        };
        if bytes.len() != size {
            return Err("a compressed piece has another length than it claims".into());
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ALL: [Codec; 3] = [Codec::None, Codec::Zlib, Codec::Zstd];

    proptest! {
        #[test]
        fn what_was_compressed_comes_back(pieces in proptest::collection::vec(proptest::collection::vec(0u8..4, 0..5000), 1..4)) {
            for codec in ALL {
                let mut expander = Expander::new(codec).unwrap();
                for piece in &pieces {
                    let packed = codec.compress(piece).unwrap();
                    prop_assert_eq!(&expander.expand(&packed, piece.len()).unwrap(), piece);
                    if !piece.is_empty() {
                        prop_assert!(expander.expand(&packed, piece.len() - 1).is_err());
                    }
                    prop_assert!(expander.expand(&packed, piece.len() + 1).is_err());
                }
            }
        }

        #[test]
        fn any_bytes_are_refused_or_expanded_within_the_claim(bytes: Vec<u8>, size: usize) {
            for codec in ALL {
                if let Ok(out) = Expander::new(codec).unwrap().expand(&bytes, size) {
                    prop_assert_eq!(out.len(), size);
                }
            }
        }
    }

    #[test]
    fn a_claim_beyond_reason_costs_nothing() {
        let packed = Codec::Zstd.compress(&[0; 1 << 20]).unwrap();
        assert!(packed.len() < 200);
        for codec in [Codec::Zlib, Codec::Zstd] {
            let error = Expander::new(codec).unwrap().expand(&packed, 4 << 30).unwrap_err();
            assert_eq!(error, "a compressed piece claims more bytes than it can hold");
        }
    }
}
