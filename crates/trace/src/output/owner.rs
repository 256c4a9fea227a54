//! Which process something unfinished belongs to: its number and when it started, since numbers are used again.

use std::fs;

/// A process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Number.
    pub pid: u32,
    /// When it started, in clock ticks after boot (field 22 of `/proc/PID/stat`).
    pub start: u64,
}

impl Owner {
    /// This process.
    pub fn this() -> Owner {
        let pid = std::process::id();
        Owner { pid, start: start_of(pid).unwrap_or(0) }
    }

    /// It still runs. Processes of another pid namespace are not visible; their locks are.
    pub fn is_alive(self) -> bool {
        start_of(self.pid) == Some(self.start)
    }

    /// `PID-START` at the start of a text, and what follows.
    pub fn parse(text: &str) -> Option<(Owner, &str)> {
        let (pid, rest) = number(text)?;
        let (start, rest) = number(rest.strip_prefix('-')?)?;
        Some((Owner { pid: u32::try_from(pid).ok().filter(|pid| *pid > 0)?, start }, rest))
    }
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.pid, self.start)
    }
}

fn number(text: &str) -> Option<(u64, &str)> {
    let end = text.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// Start of a process; `None` if there is none. One that has ended and is not yet waited for does nothing any more.
fn start_of(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    // State is field 3, the start field 22.
    if matches!(*fields.first()?, "Z" | "X") {
        return None;
    }
    fields.get(22 - 3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_its_number_and_its_start() {
        let this = Owner::this();
        assert!(this.start > 0 && this.is_alive());
        assert!(!Owner { start: this.start + 1, ..this }.is_alive(), "the number was used again");
        // The highest number of a process is 2^22.
        assert!(!Owner { pid: 1 << 23, start: 1 }.is_alive());
        assert_eq!(Owner::parse(&format!("{this}-x")), Some((this, "-x")));
        assert_eq!(Owner::parse("12-34"), Some((Owner { pid: 12, start: 34 }, "")));
        for wrong in ["", "12", "12-", "-3", "0-3", "x-1", "99999999999-1"] {
            assert_eq!(Owner::parse(wrong), None, "{wrong}");
        }
    }
}
