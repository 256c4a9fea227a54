//! Fuzzing of everything that reads what others wrote, and of the twin.
//!
//! A [`Target`] is a plain function of bytes with seeds and a way to change them. Three drivers use the same targets: the
//! test `seeded` runs a fixed number of inputs from fixed seeds (`make test`); the binary `mmtwin-fuzz` looks for inputs
//! that reach new code, and `mmtwin-sweep` changes what it found many times more (`make fuzz`). `docs/design/fuzzing.md` has
//! the numbers.

pub mod generate;
pub mod mutate;
pub mod parts;
pub mod random;
pub mod samples;
pub mod scratch;
pub mod targets;
pub mod watch;

pub use random::Random;

/// What a target makes of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// It was read, not refused.
    pub accepted: bool,
    /// Of everything that came out: the same input gives the same.
    pub digest: u64,
}

impl Seen {
    /// Refused, with this message.
    pub fn refused(message: impl std::fmt::Display) -> Seen {
        Seen { accepted: false, digest: hash(message.to_string().as_bytes()) }
    }

    /// Read, with this outcome.
    pub fn accepted(digest: u64) -> Seen {
        Seen { accepted: true, digest }
    }
}

/// How the bytes of an input are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// As the reader gets them.
    Plain,
    /// [`parts`], of which the target builds what the reader gets.
    Parts,
}

/// Something that is fuzzed.
pub struct Target {
    /// Its name: of corpora, of files with regressions, in tables.
    pub name: &'static str,
    /// What it feeds to what, for people.
    pub what: &'static str,
    /// Layout of its inputs.
    pub shape: Shape,
    /// Good inputs to begin from.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Changes an input; the second one may lend pieces.
    pub mutate: fn(&mut Vec<u8>, &[u8], &mut Random),
    /// What a reader gets of an input; of a directory its parts.
    pub built: fn(&[u8]) -> Vec<u8>,
    /// Runs it. A panic, a hang or too much memory is a find.
    pub run: fn(&[u8]) -> Seen,
    /// Inputs of the seeded form in a thousand of `MMTWIN_FUZZ_ROUNDS`.
    pub share: u64,
    /// Seconds of CPU time that an input may take.
    pub seconds: u64,
}

/// 64-bit FNV-1a.
pub fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
