//! Work that only a kernel module can do: allocating pages and vmalloc areas as the kernel does for itself.
//!
//! This is the one place where a module's interface is called. There is none yet, so scenarios with such work are
//! refused by name before anything starts.

use crate::Error;
use mmtwin_event::results::ActionResult;
use mmtwin_scenario::workload::ActionKind;

/// True if an action is work of a kernel module.
pub fn needed(action: &ActionKind) -> bool {
    matches!(action, ActionKind::PageLoop { .. } | ActionKind::PageFill { .. } | ActionKind::VmallocTest { .. })
}

/// Does an action of this kind until it is done or it is `deadline`.
pub fn perform(name: &str, _action: &ActionKind, _deadline: u64) -> Result<ActionResult, Error> {
    Err(Error::io(format!("action {name}"), std::io::Error::from(std::io::ErrorKind::Unsupported)))
}
