//! The vocabulary of mmtwin: kernel events, counters and the parts of a recording.
//!
//! Nothing here does input or output. [`vocabulary`] lists every typed event once, under one name for all kernels from
//! 2.6.36 on; [`event`] is the form in which readers pass an event to a [`sink`]; [`era`] has the layouts and print
//! formats of the kernels of each era; [`manifest`] has the metadata of a recording; [`counters`] reads the kernel's
//! statistics files; [`container`] names cgroups; [`durations`] has distributions of times; [`KernelRelease`] compares releases.

pub mod container;
pub mod counters;
pub mod durations;
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
pub use sink::{Call, CounterRow, Half, NullSink, Order, Share, Sink, Source, Task, Times};
pub use vocabulary::{Kind, Schema, Typed};
