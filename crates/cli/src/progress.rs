//! Progress of what takes long: on standard error, only if that is a terminal.

use indicatif::{ProgressBar, ProgressStyle};
use mmtwin::sweep::Progress;
use std::io::IsTerminal;
use std::time::Duration;

/// Runs something that tells now and then how many events it has read.
pub fn events<T>(what: &str, read: impl FnOnce(&mut dyn FnMut(u64)) -> T) -> T {
    if !std::io::stderr().is_terminal() {
        return read(&mut |_| {});
    }
    let bar = ProgressBar::new_spinner();
    shown(bar, "{spinner} {msg}: {human_pos} events, {per_sec}", what, |bar| {
        read(&mut |events| bar.set_position(events))
    })
}

/// Runs something that tells its virtual time in nanoseconds now and then; `end` is when it will end, if that is known.
pub fn virtual_time<T>(what: &str, end: Option<u64>, run: impl FnOnce(&mut dyn FnMut(u64)) -> T) -> T {
    if !std::io::stderr().is_terminal() {
        return run(&mut |_| {});
    }
    let (bar, template) = match end {
        Some(end) => (ProgressBar::new(end / 1_000_000), "{spinner} {msg}: {pos} of {len} ms of virtual time {bar:30}"),
        None => (ProgressBar::new_spinner(), "{spinner} {msg}: {pos} ms of virtual time"),
    };
    shown(bar, template, what, |bar| run(&mut |now| bar.set_position(now / 1_000_000)))
}

/// Runs a sweep, which tells how many of its runs have ended.
pub fn runs<T>(what: &str, run: impl FnOnce(&mut dyn FnMut(Progress)) -> T) -> T {
    if !std::io::stderr().is_terminal() {
        return run(&mut |_| {});
    }
    let so_far = "{spinner} {msg}: {pos} of {len} runs {bar:30}";
    shown(ProgressBar::new(0), so_far, what, |bar| {
        let mut first = None;
        run(&mut |progress| {
            bar.set_length(progress.of as u64);
            bar.set_position(progress.done as u64);
            match first {
                None => {
                    first = Some(progress.done);
                    // What was there took no time.
                    bar.reset_eta();
                }
                // Before a run has ended, nothing is known of the time.
                Some(kept) if progress.done == kept + 1 => {
                    if let Ok(style) = ProgressStyle::with_template(&format!("{so_far} {{eta}} left")) {
                        bar.set_style(style);
                    }
                }
                Some(_) => {}
            }
        })
    })
}

fn shown<T>(bar: ProgressBar, template: &str, what: &str, work: impl FnOnce(&ProgressBar) -> T) -> T {
    let bar = bar.with_message(what.to_string());
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    let result = work(&bar);
    bar.finish_and_clear();
    result
}
