//! Expressions of the command line: `--fail-on` on a comparison, patterns of events, columns of `compare`.

use super::everything::analysed;
use crate::{Random, Seen, hash, mutate, samples, scratch};
use mmtwin_event::words::{glob, nearest};
use mmtwin_report::column::ColumnArgument;
use mmtwin_report::compare::{self, Comparison};
use mmtwin_report::fail_on::FailOn;
use mmtwin_trace::input::InputFile;
use std::ffi::OsStr;

const WORDS: &[&str] = &[
    "any",
    "or",
    ",",
    "significant",
    "worse",
    "better",
    "changed",
    ">",
    "<",
    ">=",
    "!=",
    "+10%",
    "-5%",
    "1e308",
    "vmscan",
    "*",
    "?",
    "vmscan.direct_reclaims",
    "reclaim.efficiency",
    ".",
    "nan%",
    "inf",
];

thread_local! {
    /// One column and two.
    static COMPARISONS: [Comparison; 2] = comparisons();
}

fn comparisons() -> [Comparison; 2] {
    let report = |path: &str| {
        let text = samples::file(path, 200 << 10);
        let (analysed, _) = scratch::file(&text, |name| analysed(InputFile::open(name))).expect("the sample");
        analysed.report()
    };
    let (a, b) = (report("tests/data/findings/reclaim-6.1.txt.gz"), report("tests/data/findings/kswapd-6.1.txt.gz"));
    let two = vec![("old".to_string(), vec![a.clone(), b.clone()]), ("new".to_string(), vec![b, a.clone()])];
    [compare::single(a), compare::compare(two)]
}

/// Expressions of every form.
pub fn fail_on_seeds() -> Vec<Vec<u8>> {
    let seeds = [
        "vmscan.direct_reclaims > +10%",
        "reclaim.efficiency < 80 or any significant worse > 5%",
        "*.kswapd_* changed, vmscan.* >= 0",
        "any worse",
        "direct_reclaims != 7",
    ];
    seeds.map(|seed| seed.as_bytes().to_vec()).to_vec()
}

/// By words.
pub fn mutate(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    mutate::text_of(WORDS, input, other, random);
    input.truncate(2000);
}

/// Reads an expression, and decides it on a report and on a comparison.
pub fn run_fail_on(input: &[u8]) -> Seen {
    let text = String::from_utf8_lossy(input);
    let fail_on = match FailOn::parse(&text) {
        Ok(fail_on) => fail_on,
        Err(error) => return Seen::refused(error),
    };
    COMPARISONS.with(|[one, two]| {
        let told = [one, two].map(|comparison| match fail_on.evaluate(comparison) {
            Ok(outcome) => format!("{outcome:?}"),
            Err(error) => error.to_string(),
        });
        Seen::accepted(hash(told.concat().as_bytes()))
    })
}

/// Patterns, and what they are matched with, on two lines.
pub fn pattern_seeds() -> Vec<Vec<u8>> {
    let seeds =
        ["vmscan:*\nvmscan:mm_vmscan_kswapd_wake", "mm_*_page?\nmm_x_page1", "old=a.mmt,b.mmt\n", "****a*\naaaaaaaa"];
    seeds.map(|seed| seed.as_bytes().to_vec()).to_vec()
}

/// Matches patterns, parses a column, and looks for the nearest word.
pub fn run_pattern(input: &[u8]) -> Seen {
    let text = String::from_utf8_lossy(input);
    let (pattern, rest) = text.split_once('\n').unwrap_or((&text, "mm_vmscan_kswapd_wake"));
    let matched = glob(pattern, rest);
    assert!(
        glob("*", rest) && (pattern.contains(['*', '?']) || matched == (pattern == rest)),
        "{pattern:?} on {rest:?}"
    );
    let near = nearest(pattern, ["kswapd", "pgscan_kswapd", "numa_hit"].into_iter()).map(str::to_string);
    let column = ColumnArgument::parse(OsStr::new(pattern), |name| name == "a.mmt").map_err(|error| error.to_string());
    let digest = hash(format!("{matched} {near:?} {column:?}").as_bytes());
    Seen { accepted: matched, digest }
}
