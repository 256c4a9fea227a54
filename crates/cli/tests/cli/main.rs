//! The program from outside: every test here runs the binary `mmtwin`, in the root of the repository.

mod access_trace;
mod answers;
mod bad_input;
mod bench;
mod docs;
mod eras;
mod explain;
mod findings;
mod host_kill;
mod hostile;
mod incomplete;
mod lab;
mod outputs;
mod parquet;
mod perl;
mod privacy;
mod raw_pages;
mod record;
mod record_talk;
mod run;
mod scenario;
mod screen;
mod sources;
mod support;
mod tracecmd;
mod transcripts;
