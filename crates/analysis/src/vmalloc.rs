//! vmalloc.

use crate::tasks::Task;
use mmtwin_event::{Call, Event};

/// vmalloc.
#[derive(Clone, Debug, Default)]
pub struct Vmalloc {}

impl Vmalloc {
    /// Takes one event of this subject.
    pub fn event(&mut self, _ev: &Event<'_>, _task: &Task) {}

    /// Takes one finished function call.
    pub fn call(&mut self, _call: &Call<'_>) {}
}
