//! `mmtwin top`: samples, keys and signals, one after another.
//!
//! `model` is what is shown, `update` what keys do to it, `view` and `tables` draw it, `text` makes figures short, and
//! `screen` has the terminal.

mod model;
mod screen;
mod tables;
#[cfg(test)]
mod tests;
mod text;
mod update;
mod view;

use super::colour;
use crate::args::Top as Arguments;
use crate::{Failure, status};
use mmtwin_analysis::live::Live;
use mmtwin_event::Sink;
use mmtwin_host::clock;
use mmtwin_host::record::Signals;
use mmtwin_host::top::{Options, Top};
use model::{About, Focus, Model};
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use screen::Screen;
use std::io::IsTerminal;
use std::time::Duration;
use update::{Action, update};

/// SIGHUP, for a terminal that is gone.
const HANG_UP: i32 = 1;

/// Runs the verb.
pub fn run(arguments: &Arguments) -> Result<i32, Failure> {
    let streams =
        [("standard input", std::io::stdin().is_terminal()), ("standard output", std::io::stdout().is_terminal())];
    if let Some((stream, _)) = streams.iter().find(|(_, is_terminal)| !is_terminal) {
        return Err(Failure::Usage(format!(
            "top needs a terminal, and {stream} is none; `mmtwin record` records and `mmtwin report` prints what happened"
        )));
    }
    // Before there is anything that would be left behind.
    let mut signals = Signals::take()?;
    let interval = arguments.interval;
    let options = Options { interval, cgroups: arguments.cgroup.clone(), events: !arguments.no_events };
    let mut top = Top::open(&options)?;
    let (source, mut live) = (top.source(), Live::default());
    live.start(&source);
    let kernel = source.kernel.unwrap_or_default();
    let mut model = Model::new(About { kernel, cpus: source.cpus, interval, no_events: None });
    let mut screen = Screen::enter(colour())?;
    let ended = follow(arguments, &mut top, &mut live, &mut model, &mut screen, &mut signals);
    // Messages are for the screen that was there before.
    drop(screen);
    ended
}

/// Samples, draws and takes keys until the end.
fn follow(
    arguments: &Arguments,
    top: &mut Top,
    live: &mut Live,
    model: &mut Model,
    screen: &mut Screen,
    signals: &mut Signals,
) -> Result<i32, Failure> {
    let interval = arguments.interval.as_nanos() as u64;
    let mut next = clock::now();
    loop {
        let now = clock::now();
        if now >= next {
            sample(top, live, model);
            // Those missed are not made up for.
            next = next.saturating_add(interval).max(now);
        }
        // Keys and changes of size that came meanwhile, all of them.
        while event::poll(Duration::ZERO)? {
            match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => match update(model, key) {
                    Action::Draw => {}
                    Action::Quit => return Ok(0),
                    Action::Write => model.message = Some(written(top, arguments)),
                    Action::Suspend => screen.suspend()?,
                    Action::Open(opened) => {
                        top.set_opened(opened);
                        details(live, model);
                    }
                },
                _ => {}
            }
        }
        screen.draw(model)?;
        if wait(signals, next)? {
            return Ok(status::SIGNAL + HANG_UP);
        }
        if let Some(signal) = signals.pending().first() {
            return Ok(status::SIGNAL + signal);
        }
    }
}

/// Waits for a key, a signal or a time of the trace clock. True if the terminal is gone.
fn wait(signals: &Signals, until: u64) -> Result<bool, Failure> {
    let stdin = std::io::stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::IN), PollFd::from_borrowed_fd(signals.fd(), PollFlags::IN)];
    let left = Duration::from_nanos(until.saturating_sub(clock::now()));
    let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
    match poll(&mut fds, Some(&timeout)) {
        // A change of size is a signal too, which the library takes.
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(e) => return Err(Failure::Error(format!("waiting for keys: {e}"))),
    }
    Ok(fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL))
}

fn sample(top: &mut Top, live: &mut Live, model: &mut Model) {
    let at = top.sample(live);
    model.sampled(live.close(at));
    model.about.no_events = top.no_events().map(str::to_string);
    if model.containers != *top.containers() {
        model.containers.clone_from(top.containers());
    }
    if model.frozen.is_none() {
        details(live, model);
    }
}

/// Takes the counters of the cgroup or process that is open.
fn details(live: &Live, model: &mut Model) {
    if let Some(opened) = &mut model.opened {
        let source = match opened.of {
            Focus::Cgroups => "cgroup",
            Focus::Processes => "process",
        };
        opened.counters = live.counters(source, &opened.key);
    }
}

/// Writes a recording; returns what is to be said of it.
fn written(top: &Top, arguments: &Arguments) -> String {
    match top.write(&arguments.output) {
        Ok(path) => format!("written: {}; mmtwin report {}", path.display(), path.display()),
        Err(error) => format!("not written: {error}"),
    }
}
