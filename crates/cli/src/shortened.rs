//! An input that becomes shorter while it is read: a message with its name instead of a bare SIGBUS.

use mmtwin_trace::map::file_at;
use std::sync::OnceLock;

/// What was done with the signal before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// Catches the signal from now on. What it tells of anything but a mapped input goes where it went before.
pub fn catch() {
    // SAFETY: the structures are plain data for which all zeros is a value, and live through the calls. The handler
    // is one that a signal may call: see there. It runs on the alternative stack where there is one.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGBUS, std::ptr::null(), &mut before) != 0 || BEFORE.set(before).is_err() {
            return;
        }
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigaction(libc::SIGBUS, &action, std::ptr::null_mut());
    }
}

/// Looks the address up among mapped files, which reads atomics only; writes and ends without unwinding.
extern "C" fn handler(_signal: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel gives a valid structure to a handler installed with SA_SIGINFO, and SIGBUS fills `si_addr`.
    // `write`, `_exit` and `sigaction` may be called in a signal handler; the buffers are valid for their lengths.
    unsafe {
        if let Some((name, length)) = file_at((*info).si_addr() as usize) {
            let why: &[u8] = b": was truncated while it was read, or cannot be read; read a copy of it\n";
            for part in [b"mmtwin: error: ".as_slice(), &name[..length], why] {
                libc::write(libc::STDERR_FILENO, part.as_ptr().cast(), part.len());
            }
            libc::_exit(1);
        }
        // Not ours: the access is repeated under what was there before.
        if let Some(before) = BEFORE.get() {
            libc::sigaction(libc::SIGBUS, before, std::ptr::null_mut());
        }
    }
}
