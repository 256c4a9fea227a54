//! Signals that end this process in the middle of an output: what is unfinished is removed first.
//!
//! For verbs that do not take signals themselves, as those that record do.

use crate::Failure;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// From now on SIGINT, SIGTERM and SIGHUP remove what this process has not finished before they end it.
///
/// # Errors
/// If signals cannot be taken.
pub fn on_signals() -> Result<(), Failure> {
    // Below `nohup` a hang-up stays without effect.
    let hang_up = (!mmtwin_host::record::ignored(SIGHUP)).then_some(SIGHUP);
    let mut signals = Signals::new([SIGINT, SIGTERM].into_iter().chain(hang_up))?;
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        if let Some(signal) = signals.forever().next() {
            mmtwin_trace::output::abandon();
            // Ends the process as if nobody had taken the signal.
            let _ = emulate_default_handler(signal);
            std::process::exit(crate::status::SIGNAL + signal);
        }
    })?;
    Ok(())
}
