//! Slab shrinking.

use crate::tasks::Task;
use mmtwin_event::Event;

/// Slab shrinking.
#[derive(Clone, Debug, Default)]
pub struct Slab {}

impl Slab {
    /// Takes one event of this subject.
    pub fn event(&mut self, _ev: &Event<'_>, _task: &Task) {}
}
