//! Compaction.

use crate::tasks::Task;
use mmtwin_event::Event;

/// Compaction.
#[derive(Clone, Debug, Default)]
pub struct Compaction {}

impl Compaction {
    /// Takes one event of this subject.
    pub fn event(&mut self, _ev: &Event<'_>, _task: &Task) {}
}
