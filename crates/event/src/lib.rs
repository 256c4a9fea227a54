//! The language of mmtwin: what a kernel event, a counter and a recording are.
//!
//! Nothing here does input or output. [`vocabulary`] lists every typed event once, under one name for all
//! kernels from 2.6.36 on; [`event`] is how readers hand an event over; [`sink`] is who takes it; [`era`] knows
//! how the kernels of each era laid events out and printed them; [`manifest`] is what a recording says of itself;
//! [`counters`] reads the kernel's statistics files; [`container`] names cgroups; [`KernelRelease`] is what releases
//! are compared by.

pub mod container;
pub mod counters;
pub mod era;
pub mod event;
pub mod manifest;
pub mod names;
mod release;
pub mod results;
pub mod rules;
mod schema;
pub mod sink;
pub mod stack;
pub mod value;
pub mod vocabulary;
pub mod words;

pub use event::{Event, Fielded, Fields, Form, Layout, MAX_SLOTS, Place, Slots, Symbol};
pub use release::KernelRelease;
pub use sink::{Call, CounterRow, NullSink, Order, Sink, Source, Task, Times};
pub use vocabulary::{Kind, Schema, Typed};
