//! Whole lines of a stream, a block at a time, in bounded memory.

use super::MAX_LINE;
use std::io::Read;

/// A line longer than so many times [`MAX_LINE`] has no end.
const ENDLESS: usize = 64;

/// Cuts a stream into blocks that end at a line's end.
pub(super) struct Blocks<'r> {
    source: &'r mut dyn Read,
    buffer: Vec<u8>,
    /// Bytes of the buffer that were read.
    filled: usize,
    /// Of those, bytes already given away.
    given: usize,
    at_end: bool,
}

/// What comes next in a stream.
pub(super) enum Block<'b> {
    /// Whole lines; the last may lack its line end at the end of the stream.
    Lines(&'b [u8]),
    /// A line longer than [`MAX_LINE`] was omitted.
    TooLong,
    /// A line has no end in sight: nothing behind it is read.
    Endless,
}

impl<'r> Blocks<'r> {
    pub fn new(source: &'r mut dyn Read) -> Blocks<'r> {
        Blocks { source, buffer: vec![0; MAX_LINE], filled: 0, given: 0, at_end: false }
    }

    /// The next block; `None` at the end.
    pub fn next(&mut self) -> std::io::Result<Option<Block<'_>>> {
        self.buffer.copy_within(self.given..self.filled, 0);
        self.filled -= self.given;
        self.given = 0;
        self.fill()?;
        if self.at_end {
            self.given = self.filled;
            return Ok((self.filled > 0).then_some(Block::Lines(&self.buffer[..self.filled])));
        }
        match memchr::memrchr(b'\n', &self.buffer[..self.filled]) {
            Some(end) => {
                self.given = end + 1;
                Ok(Some(Block::Lines(&self.buffer[..self.given])))
            }
            None => Ok(Some(if self.skip_line()? { Block::TooLong } else { Block::Endless })),
        }
    }

    fn fill(&mut self) -> std::io::Result<()> {
        while self.filled < self.buffer.len() && !self.at_end {
            match self.source.read(&mut self.buffer[self.filled..]) {
                Ok(0) => self.at_end = true,
                Ok(n) => self.filled += n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Drops everything up to the next line end. False: there is none as far as anybody looks.
    fn skip_line(&mut self) -> std::io::Result<bool> {
        for _ in 0..ENDLESS {
            self.filled = 0;
            self.fill()?;
            if let Some(end) = memchr::memchr(b'\n', &self.buffer[..self.filled]) {
                self.given = end + 1;
                return Ok(true);
            }
            if self.at_end {
                self.given = self.filled;
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives at most `step` bytes per call.
    struct Trickle<'a>(&'a [u8], usize);
    impl Read for Trickle<'_> {
        fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
            let n = self.0.len().min(self.1).min(to.len());
            to[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    fn blocks(text: &[u8], step: usize) -> (Vec<u8>, usize) {
        let mut source = Trickle(text, step);
        let mut blocks = Blocks::new(&mut source);
        let (mut all, mut too_long) = (Vec::new(), 0);
        while let Some(block) = blocks.next().unwrap() {
            match block {
                Block::Lines(lines) => all.extend_from_slice(lines),
                Block::TooLong | Block::Endless => too_long += 1,
            }
        }
        (all, too_long)
    }

    #[test]
    fn lines_stay_whole_whatever_the_reads() {
        let text: Vec<u8> = (0..200_000).flat_map(|i| format!("line {i}\n").into_bytes()).chain(*b"no end").collect();
        for step in [997, 1 << 16, 1 << 22] {
            assert!(blocks(&text, step) == (text.clone(), 0), "{step}");
        }
    }

    #[test]
    fn endless_lines_are_left_out() {
        let mut text = b"first\n".to_vec();
        text.extend(vec![b'x'; 3 * MAX_LINE]);
        text.extend(b"\nlast\n");
        assert!(blocks(&text, 1 << 20) == (b"first\nlast\n".to_vec(), 1));
    }
}
