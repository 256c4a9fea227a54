//! Changes of inputs: of bytes, of text, of JSON. Each makes one to some changes at random places.

mod bytes;
mod json;
mod text;

pub use bytes::bytes;
pub use json::json;
pub use text::{text, text_of};

/// Numbers at which something may overflow.
const EDGES: [u64; 20] = [
    0,
    1,
    2,
    7,
    8,
    63,
    64,
    0x7f,
    0xff,
    4095,
    4096,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    1 << 47,
    i64::MAX as u64,
    1 << 63,
    u64::MAX,
];
