//! The terminal, and what it is given: text of its width, paged where it is longer than the terminal.

use std::io::{IsTerminal, Write};
use std::process::{Command, Stdio};

/// Columns of a terminal that does not tell.
const COLUMNS: usize = 120;
/// Narrower than this, nothing can be laid out.
const NARROWEST: usize = 40;
/// Columns of one screen that goes to no terminal.
const SCREEN: usize = 80;

/// Columns and rows of the terminal that standard output is.
fn size() -> Option<(usize, usize)> {
    // SAFETY: the structure is plain data for which all zeros is a value; the kernel writes no more than it.
    let size = unsafe {
        let mut size: libc::winsize = std::mem::zeroed();
        (libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &raw mut size) == 0).then_some(size)
    };
    size.filter(|size| size.ws_col > 0 && size.ws_row > 0).map(|size| (size.ws_col.into(), size.ws_row.into()))
}

/// The width that the user chose by COLUMNS.
fn chosen() -> Option<usize> {
    std::env::var("COLUMNS").ok()?.parse().ok().filter(|columns| *columns >= NARROWEST)
}

/// Columns to print tables in: COLUMNS, else those of the terminal, else as many as the text has.
pub fn width() -> usize {
    let terminal = || std::io::stdout().is_terminal().then(|| size().map_or(COLUMNS, |(columns, _)| columns));
    chosen().or_else(terminal).unwrap_or(usize::MAX)
}

/// Columns to print one screen or a topic in: COLUMNS, else those of the terminal, else 80.
pub fn screen_width() -> usize {
    match width() {
        usize::MAX => SCREEN,
        width => width,
    }
}

/// Writes text to standard output: through a pager if it is a terminal with fewer rows, and the user wants one.
///
/// # Errors
/// Those of standard output.
pub fn show(text: &[u8], pager: bool) -> std::io::Result<()> {
    let lines = text.iter().filter(|byte| **byte == b'\n').count();
    let longer = || size().is_some_and(|(_, rows)| lines >= rows);
    if pager && std::io::stdout().is_terminal() && longer() && paged(text) {
        return Ok(());
    }
    let mut out = std::io::stdout().lock();
    out.write_all(text)?;
    out.flush()
}

/// The pager of the user's choice; an empty one is none.
fn pager() -> Option<String> {
    let given = ["MMTWIN_PAGER", "PAGER"].iter().find_map(|name| std::env::var(name).ok());
    match given {
        Some(pager) => Some(pager).filter(|pager| !pager.trim().is_empty()),
        None => Some("command -v less >/dev/null || exit 127; exec less -FRX".into()),
    }
}

/// True if a pager took the text.
fn paged(text: &[u8]) -> bool {
    let Some(pager) = pager() else { return false };
    // With a shell, as the variable may hold arguments; it says by 127 and 126 that there is no such program.
    let mut command = Command::new("sh");
    command.arg("-c").arg(pager).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        command.env("LESS", "FRX");
    }
    let Ok(mut child) = command.spawn() else { return false };
    if let Some(mut input) = child.stdin.take() {
        // Whoever leaves the pager early does not want the rest.
        let _ = input.write_all(text);
    }
    child.wait().is_ok_and(|status| !matches!(status.code(), Some(126 | 127)))
}
