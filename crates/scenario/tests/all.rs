//! Scenario files from outside.

mod docs;
mod files;
mod messages;
mod properties;
