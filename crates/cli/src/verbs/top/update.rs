//! What keys do to the model, and what they ask of the loop.

use super::model::{Details, Focus, Model};
use mmtwin_host::top::Opened;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Longest filter.
const LONGEST: usize = 64;
/// Rows that a page key moves by.
const PAGE: isize = 10;

/// What is to be done beyond the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing but drawing.
    Draw,
    /// The end.
    Quit,
    /// Write a recording of what was seen.
    Write,
    /// Stop, as Ctrl-Z does.
    Suspend,
    /// Look at this from now on.
    Open(Option<Opened>),
}

/// Takes a key.
pub fn update(model: &mut Model, key: KeyEvent) -> Action {
    model.message = None;
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c') if control => return Action::Quit,
        KeyCode::Char('z') if control => return Action::Suspend,
        _ if model.typing.is_some() => typed(model, key.code, control),
        _ if control => {}
        KeyCode::Char('q') => return Action::Quit,
        KeyCode::Char('w') => return Action::Write,
        KeyCode::Char('?' | 'h') => model.help = !model.help,
        KeyCode::Char(' ') => model.freeze(),
        KeyCode::Esc if model.help => model.help = false,
        _ if model.help => {}
        KeyCode::Esc if model.opened.is_some() => {
            model.opened = None;
            return Action::Open(None);
        }
        KeyCode::Esc => model.filter.clear(),
        KeyCode::Char('/') => model.typing = Some(model.filter.clone()),
        KeyCode::Char('s') => model.sort = model.sort.next(),
        KeyCode::Char('r') => model.reversed = !model.reversed,
        KeyCode::Tab | KeyCode::BackTab => {
            model.focus = match model.focus {
                Focus::Cgroups => Focus::Processes,
                Focus::Processes => Focus::Cgroups,
            };
        }
        KeyCode::Up | KeyCode::Char('k') => moved(model, -1),
        KeyCode::Down | KeyCode::Char('j') => moved(model, 1),
        KeyCode::PageUp => moved(model, -PAGE),
        KeyCode::PageDown => moved(model, PAGE),
        KeyCode::Home => moved(model, isize::MIN),
        KeyCode::End => moved(model, isize::MAX),
        KeyCode::Enter if model.opened.is_none() => return open(model),
        _ => {}
    }
    Action::Draw
}

fn typed(model: &mut Model, code: KeyCode, control: bool) {
    match code {
        KeyCode::Enter => model.typing = None,
        KeyCode::Esc => model.filter = model.typing.take().unwrap_or_default(),
        KeyCode::Backspace => _ = model.filter.pop(),
        KeyCode::Char('u') if control => model.filter.clear(),
        KeyCode::Char(c) if !control && model.filter.chars().count() < LONGEST => model.filter.push(c),
        _ => {}
    }
}

fn moved(model: &mut Model, by: isize) {
    if let Some(opened) = &mut model.opened {
        opened.scroll = opened.scroll.saturating_add_signed(by).min(opened.counters.len().saturating_sub(1));
        return;
    }
    let keys = model.keys(model.focus);
    let position = model.position(model.focus, keys.iter()).saturating_add_signed(by).min(keys.len().saturating_sub(1));
    model.chosen[model.focus as usize] = keys.into_iter().nth(position);
}

fn open(model: &mut Model) -> Action {
    let keys = model.keys(model.focus);
    let position = model.position(model.focus, keys.iter());
    let Some(key) = keys.into_iter().nth(position) else { return Action::Draw };
    let (title, opened) = match (model.focus, key.parse()) {
        (Focus::Processes, Ok(pid)) => {
            let row = model.snapshot.processes.iter().find(|row| row.pid == pid);
            let comm = row.map(|row| row.comm.as_str()).unwrap_or_default();
            (format!("process {key} {comm}"), Opened::Process(pid))
        }
        _ => (format!("cgroup {key}"), Opened::Cgroup(key.clone())),
    };
    model.chosen[model.focus as usize] = Some(key.clone());
    model.opened = Some(Details { of: model.focus, key, title, ..Details::default() });
    Action::Open(Some(opened))
}
