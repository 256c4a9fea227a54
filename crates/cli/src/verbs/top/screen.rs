//! The terminal: set up at the start, restored at any end.
//!
//! Restored when this is dropped, before the message of a panic (a hook of ratatui's), and by the loop for signals.

use super::model::Model;
use super::view::{Canvas, view};
use ratatui::DefaultTerminal;
use ratatui::crossterm::style::force_color_output;
use rustix::process::{Signal, getpid, kill_process};
use std::io;

/// The terminal as a screen.
pub struct Screen {
    /// `None`: it is restored.
    terminal: Option<DefaultTerminal>,
    colour: bool,
}

impl Screen {
    /// Takes the terminal that standard output is.
    ///
    /// # Errors
    /// If it cannot be one; it is as it was then.
    pub fn enter(colour: bool) -> io::Result<Screen> {
        // The choice was made already, with more than NO_COLOR.
        force_color_output(colour);
        Ok(Screen { terminal: Some(taken()?), colour })
    }

    /// Draws what changed.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub fn draw(&mut self, model: &Model) -> io::Result<()> {
        let Some(terminal) = &mut self.terminal else { return Ok(()) };
        let colour = self.colour;
        terminal.draw(|frame| {
            let area = frame.area();
            view(model, &mut Canvas { buffer: frame.buffer_mut(), colour }, area);
        })?;
        Ok(())
    }

    /// Gives the terminal back, stops this process, and takes it again when the process continues.
    ///
    /// # Errors
    /// If the terminal is gone meanwhile.
    pub fn suspend(&mut self) -> io::Result<()> {
        self.leave();
        kill_process(getpid(), Signal::TSTP)?;
        self.terminal = Some(taken()?);
        Ok(())
    }

    fn leave(&mut self) {
        if let Some(mut terminal) = self.terminal.take() {
            // The cursor first: it was hidden on this screen. A terminal that is gone needs nothing.
            let _ = terminal.show_cursor();
            // The hook has done it in a panic; again it would put the cursor above the message.
            if !std::thread::panicking() {
                let _ = ratatui::try_restore();
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.leave();
    }
}

fn taken() -> io::Result<DefaultTerminal> {
    ratatui::try_init().inspect_err(|_| {
        // It may be taken by half.
        let _ = ratatui::try_restore();
    })
}
