//! The machine: nodes, CPUs, memory, and what they cost.

mod costs;
mod device;
pub mod line;
pub(crate) mod load;
mod memory;
mod queue;
mod topology;

pub use costs::{CounterType, LoopCosts, PageCosts};
pub use device::{Device, IoClass};
pub use memory::{Curve, Memory, MemoryError, Path};
pub use queue::Queue;
pub use topology::{Cpu, LOCAL_DISTANCE, MAX_NODES, Machine, MachineError, Node, PAGE_SHIFT, PAGE_SIZE};
