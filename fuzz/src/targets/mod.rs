//! All targets, from readers to the twin.

mod access;
mod container;
mod dat;
mod everything;
mod expression;
mod format;
mod pages;
mod recording;
mod scenario;
mod state;
mod text;
mod tracefs;
pub mod twin;

use crate::{Shape, Target, mutate};

/// All of them.
pub const TARGETS: &[Target] = &[
    Target {
        name: "format",
        what: "texts of events' formats, used on recorded pages",
        shape: Shape::Plain,
        seeds: format::seeds,
        mutate: format::mutate,
        run: format::run,
        share: 1000,
        seconds: 10,
    },
    Target {
        name: "pages",
        what: "pages of a ring buffer",
        shape: Shape::Plain,
        seeds: pages::seeds,
        mutate: mutate::bytes,
        run: pages::run,
        share: 600,
        seconds: 10,
    },
    Target {
        name: "text",
        what: "text of ftrace, whole and as a stream",
        shape: Shape::Plain,
        seeds: text::seeds,
        mutate: text::mutate,
        run: text::run,
        share: 600,
        seconds: 10,
    },
    Target {
        name: "saved",
        what: "texts of `/proc` and of the lab's files",
        shape: Shape::Plain,
        seeds: state::text_seeds,
        mutate: state::mutate_text,
        run: state::run_text,
        share: 1000,
        seconds: 10,
    },
    Target {
        name: "counters",
        what: "counters of a recording (Arrow)",
        shape: Shape::Plain,
        seeds: recording::counter_seeds,
        mutate: mutate::bytes,
        run: recording::run_counters,
        share: 1000,
        seconds: 10,
    },
    Target {
        name: "csv",
        what: "access traces as CSV",
        shape: Shape::Plain,
        seeds: access::csv_seeds,
        mutate: access::mutate_csv,
        run: access::run,
        share: 1000,
        seconds: 10,
    },
    Target {
        name: "parquet",
        what: "access traces as Parquet",
        shape: Shape::Plain,
        seeds: access::parquet_seeds,
        mutate: mutate::bytes,
        run: access::run,
        share: 600,
        seconds: 10,
    },
    Target {
        name: "dat",
        what: "trace.dat, versions 6 and 7, as bytes",
        shape: Shape::Plain,
        seeds: dat::whole,
        mutate: mutate::bytes,
        run: dat::run_whole,
        share: 100,
        seconds: 10,
    },
    Target {
        name: "dat-parts",
        what: "trace.dat built of changed parts with right lengths",
        shape: Shape::Parts,
        seeds: dat::in_parts,
        mutate: dat::mutate,
        run: dat::run_parts,
        share: 150,
        seconds: 10,
    },
    Target {
        name: "tracefs",
        what: "copied tracefs directories",
        shape: Shape::Parts,
        seeds: tracefs::seeds,
        mutate: tracefs::mutate,
        run: tracefs::run,
        share: 100,
        seconds: 10,
    },
    Target {
        name: "recording",
        what: "recordings, file by file",
        shape: Shape::Parts,
        seeds: recording::seeds,
        mutate: recording::mutate,
        run: recording::run,
        share: 100,
        seconds: 10,
    },
    Target {
        name: "container",
        what: "gzip, xz, Zstandard and tar in each other",
        shape: Shape::Parts,
        seeds: container::seeds,
        mutate: container::mutate,
        run: container::run,
        share: 150,
        seconds: 10,
    },
    Target {
        name: "packed",
        what: "containers as bytes",
        shape: Shape::Plain,
        seeds: container::packed,
        mutate: mutate::bytes,
        run: container::run_packed,
        share: 150,
        seconds: 10,
    },
    Target {
        name: "scenario",
        what: "scenarios, read again as shown",
        shape: Shape::Plain,
        seeds: scenario::seeds,
        mutate: scenario::mutate,
        run: scenario::run,
        share: 100,
        seconds: 10,
    },
    Target {
        name: "machine",
        what: "files of machines",
        shape: Shape::Plain,
        seeds: scenario::machine_seeds,
        mutate: scenario::mutate,
        run: scenario::run_machine,
        share: 100,
        seconds: 10,
    },
    Target {
        name: "bundle",
        what: "files of kernels",
        shape: Shape::Plain,
        seeds: scenario::bundle_seeds,
        mutate: scenario::mutate,
        run: scenario::run_bundle,
        share: 100,
        seconds: 10,
    },
    Target {
        name: "set",
        what: "`--set` on a scenario",
        shape: Shape::Plain,
        seeds: scenario::set_seeds,
        mutate: scenario::mutate,
        run: scenario::run_set,
        share: 200,
        seconds: 10,
    },
    Target {
        name: "fail-on",
        what: "`--fail-on`, decided on two comparisons",
        shape: Shape::Plain,
        seeds: expression::fail_on_seeds,
        mutate: expression::mutate,
        run: expression::run_fail_on,
        share: 1000,
        seconds: 10,
    },
    Target {
        name: "pattern",
        what: "patterns of events, columns of `compare`",
        shape: Shape::Plain,
        seeds: expression::pattern_seeds,
        mutate: expression::mutate,
        run: expression::run_pattern,
        share: 1000,
        seconds: 10,
    },
    Target {
        name: "state",
        what: "`state.json`, and a short run of the twin from it",
        shape: Shape::Plain,
        seeds: state::seeds,
        mutate: state::mutate,
        run: state::run,
        share: 30,
        seconds: 20,
    },
    Target {
        name: "twin",
        what: "generated scenarios, run twice on the twin",
        shape: Shape::Plain,
        seeds: twin::seeds,
        mutate: mutate::bytes,
        run: twin::run,
        share: 20,
        seconds: 20,
    },
];

/// A target by its name.
pub fn named(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
