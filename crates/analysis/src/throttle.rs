//! Throttling of reclaimers.

use crate::tasks::Task;
use mmtwin_event::Event;

/// Throttling of reclaimers.
#[derive(Clone, Debug, Default)]
pub struct Throttle {}

impl Throttle {
    /// Takes one event of this subject.
    pub fn event(&mut self, _ev: &Event<'_>, _task: &Task) {}
}
