//! NUMA balancing.

use crate::tasks::Task;
use mmtwin_event::Event;

/// NUMA balancing.
#[derive(Clone, Debug, Default)]
pub struct Numa {}

impl Numa {
    /// Takes one event of this subject.
    pub fn event(&mut self, _ev: &Event<'_>, _task: &Task) {}
}
