//! Ctrl-C and its like while guests run: taken note of instead of dying, so that everything a guest needed is removed.

use mmtwin::Error;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// What has been asked for since [`Signals::take`].
pub struct Signals {
    stop: Arc<AtomicBool>,
    number: Arc<AtomicUsize>,
}

impl Signals {
    /// From now on, until the process ends.
    pub fn take() -> std::io::Result<&'static Signals> {
        static TAKEN: OnceLock<Signals> = OnceLock::new();
        if let Some(signals) = TAKEN.get() {
            return Ok(signals);
        }
        let signals = Signals { stop: Arc::default(), number: Arc::default() };
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register_usize(signal, signals.number.clone(), signal as usize)?;
            signal_hook::flag::register(signal, signals.stop.clone())?;
        }
        Ok(TAKEN.get_or_init(|| signals))
    }

    /// True once the user wants an end.
    pub fn stop(&self) -> &AtomicBool {
        &self.stop
    }

    /// Fails once the user wants an end.
    pub fn check(&self) -> Result<(), Error> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(Error::Interrupted { signal: self.number.load(Ordering::Relaxed) as i32 }),
            false => Ok(()),
        }
    }
}
