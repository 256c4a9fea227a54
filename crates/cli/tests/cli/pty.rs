//! The program in a pseudo-terminal: what is on its screen, and how it leaves the terminal.

use super::support::{command, with_signals};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::num::NonZero;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// Time in which anything must happen, generous because machines are busy.
const LIMIT: Duration = Duration::from_secs(60);

/// A program in a terminal of its own.
pub struct Pty {
    controller: File,
    /// The program's side, open so that it can be asked how it was left.
    terminal: File,
    child: Child,
    parser: vt100::Parser,
}

impl Pty {
    /// Starts the program with these arguments and variables in a terminal of this size.
    pub fn start(arguments: &[&str], variables: &[(&str, &str)], (columns, rows): (u16, u16)) -> Pty {
        let mut program = command(arguments);
        program.envs(variables.iter().copied());
        Pty::of(&with_signals(&program), (columns, rows))
    }

    /// Starts a command in a terminal of this size.
    pub fn of(command: &Command, (columns, rows): (u16, u16)) -> Pty {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&controller).and_then(|()| unlockpt(&controller)).expect("a terminal that can be opened");
        let name = ptsname(&controller, Vec::new()).expect("its name");
        let name = name.to_str().expect("UTF-8").to_string();
        let terminal = OpenOptions::new().read(true).write(true).open(name).expect("the terminal");
        let stream = || terminal.try_clone().expect("a descriptor");
        // It becomes the terminal of a new session.
        let mut session = Command::new("setsid");
        session.arg("--ctty").arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => session.env(name, value),
                None => session.env_remove(name),
            };
        }
        session.current_dir(command.get_current_dir().expect("the repository")).env("TERM", "xterm-256color");
        let parser = vt100::Parser::new(positive(rows), positive(columns), 0);
        resize(&controller, columns, rows);
        let child = session.stdin(stream()).stdout(stream()).stderr(stream()).spawn().expect("setsid");
        Pty { controller: controller.into(), terminal, child, parser }
    }

    /// Process id of the program.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What is on the screen.
    pub fn screen(&self) -> &vt100::Screen {
        self.parser.screen()
    }

    /// Waits for this text on the screen.
    pub fn wait_for(&mut self, text: &str) {
        self.wait_until(text, |screen| screen.contents().contains(text));
    }

    /// Waits until the screen is as it should be.
    pub fn wait_until(&mut self, what: &str, is_so: impl Fn(&vt100::Screen) -> bool) {
        let until = Instant::now() + LIMIT;
        while !is_so(self.parser.screen()) {
            assert!(Instant::now() < until, "not in time: {what}\n{}", self.parser.screen().contents());
            let ended = self.child.try_wait().expect("the program");
            self.take();
            assert!(ended.is_none() || is_so(self.parser.screen()), "ended: {}", self.parser.screen().contents());
        }
    }

    /// Takes what the program writes for so long; it would wait else.
    pub fn watch(&mut self, time: Duration) {
        let until = Instant::now() + time;
        while Instant::now() < until {
            self.take();
        }
    }

    /// Presses keys.
    pub fn press(&mut self, keys: &str) {
        self.controller.write_all(keys.as_bytes()).expect("the terminal");
    }

    /// Changes the size of the terminal.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        self.parser.screen_mut().set_size(positive(rows), positive(columns));
        resize(&self.controller, columns, rows);
    }

    /// Waits for the end of the program, which must leave the terminal as it was. Returns its status, 128 more than the
    /// signal that ended it, and the screen.
    pub fn end(mut self) -> (i32, String) {
        let until = Instant::now() + LIMIT;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("the program") {
                break status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
            }
            assert!(Instant::now() < until, "does not end: {}", self.parser.screen().contents());
            self.take();
        };
        while self.take() {}
        let (modes, screen) = (tcgetattr(&self.terminal).expect("modes").local_modes, self.parser.screen());
        let text = screen.contents();
        assert!(modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG), "raw: {text}");
        assert!(!screen.alternate_screen() && !screen.hide_cursor(), "{text}");
        assert!(!text.contains("panicked"), "{text}");
        (status, text)
    }

    /// Takes what the program wrote; false if that was nothing for a moment.
    fn take(&mut self) -> bool {
        let mut fds = [PollFd::new(&self.controller, PollFlags::IN)];
        let moment = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
        if poll(&mut fds, Some(&moment)).is_ok_and(|ready| ready > 0) {
            let mut bytes = [0; 16 << 10];
            let read = self.controller.read(&mut bytes).unwrap_or(0);
            self.parser.process(&bytes[..read]);
            return read > 0;
        }
        false
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        // Ended by a failed test; it is gone already after `end`.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn positive(number: u16) -> NonZero<u16> {
    NonZero::new(number).expect("a size")
}

fn resize(controller: &impl std::os::fd::AsFd, columns: u16, rows: u16) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(controller, size).expect("a size");
}
