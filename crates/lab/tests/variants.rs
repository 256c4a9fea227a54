//! Kernels with one patch reverted: how their sources are edited, and that the change is really not in them. Missing
//! parts (perl, QEMU, the kernels, the agent) are named, and the tests report that they are skipped.

use crate::common::Guest;
use mmtwin_event::vocabulary::PurgeVmapAreaLazy;
use mmtwin_event::{Event, Kind, Sink};
use mmtwin_lab::Mode;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

const SOURCE: &str = r#"/* total(x); in a comment */
static void count(int n);

static void
other(void)
{
	add(total,
	    one);
}

static void count(int n)
{
	int one = 1;

	if (n) {
		/* add(total); */
		add(total,
		    one);
	}
	totals = one; again(); again();
}
"#;

/// Edits a text; returns the new one, or the script's error.
fn edit(text: &str, arguments: &[&str]) -> Option<Result<String, String>> {
    let directory = tempfile::tempdir().expect("directory");
    let file = directory.path().join("a.c");
    std::fs::write(&file, text).expect("file");
    let mut perl = Command::new("perl");
    let output = perl.arg(root().join("tools/variants/edit.pl")).arg("a.c").args(arguments).current_dir(&directory);
    let output = match output.output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("skipped: perl: {error}");
            return None;
        }
    };
    let now = std::fs::read_to_string(&file).expect("file");
    assert_eq!(std::fs::read_dir(&directory).expect("directory").count(), 1, "nothing but the file is left");
    if output.status.success() {
        return Some(Ok(now));
    }
    assert_eq!((now.as_str(), output.status.code()), (text, Some(1)), "what does not fit changes nothing");
    Some(Err(String::from_utf8_lossy(&output.stderr).trim().to_string()))
}

#[test]
fn one_statement_of_one_function_is_edited() {
    let Some(replaced) = edit(SOURCE, &["count", "add ( total , one", "sum(one);"]) else { return };
    let after = SOURCE.replace("*/\n\t\tadd(total,\n\t\t    one);", "*/\n\t\tsum(one);");
    assert_ne!(after, SOURCE);
    assert_eq!(replaced.as_deref(), Ok(after.as_str()));
    let removed = edit(SOURCE, &["count", "int one = 1"]).expect("perl");
    assert_eq!(removed, Ok(SOURCE.replace("int one = 1;", "")));
}

#[test]
fn an_edit_that_does_not_match_exactly_once_is_refused() {
    let Some(twice) = edit(SOURCE, &["count", "again"]) else { return };
    assert_eq!(twice, Err("a.c: count(): 2 statements with `again`, not one".into()));
    let error = |arguments: &[&str]| edit(SOURCE, arguments).expect("perl").expect_err("an error");
    assert_eq!(error(&["count", "total = one"]), "a.c: count(): 0 statements with `total = one`, not one");
    assert_eq!(error(&["none", "one"]), "a.c: none(): 0 definitions, not one");
    let double = format!("{SOURCE}\nstatic void count(int n)\n{{\n}}\n");
    let error = edit(&double, &["count", "one"]).expect("perl").expect_err("an error");
    assert_eq!(error, "a.c: count(): 2 definitions, not one");
}

/// Subtractions from vmap_lazy_nr in purges, and areas purged.
#[derive(Default)]
struct Seen {
    subtractions: u64,
    purged: u64,
}

impl Sink for Seen {
    fn event(&mut self, event: &Event<'_>) {
        self.subtractions += u64::from(event.name == "vmap_lazy_sub");
        if event.kind == Kind::PurgeVmapAreaLazy {
            self.purged += u64::from(event.typed::<PurgeVmapAreaLazy>().num_purged);
        }
    }
}

/// Results on a kernel, and calls of `purge_vmap_node`. `None`: a part is missing, which was reported.
fn operations(name: &str, release: &str) -> Option<(Seen, u64)> {
    let guest = Guest::new(name, Mode::Smp)?;
    assert_eq!(guest.kernel.bundle.as_deref(), Some(release));
    let file = root().join("scenarios/fidelity/difference/purge-operations.toml");
    let sets = [format!("kernel.release={release:?}"), "process.vmalloc_test.phase.0.action.0.loops=2000".into()];
    let scenario = mmtwin_scenario::load(&file, &sets).unwrap_or_else(|e| panic!("{e}"));
    let directory = tempfile::tempdir().expect("directory");
    let output = directory.path().join("recording");
    guest.record(&scenario, &output);
    let mut seen = Seen::default();
    let (recording, _) = crate::common::read(&output, &mut seen);
    let results = recording.results.expect("results");
    Some((seen, results.phases[0].actions[0].more["purge_calls"] as u64))
}

#[test]
fn a_purge_subtracts_once_per_call() {
    let Some((seen, calls)) = operations("6.12-lab", "6.12") else { return };
    // Calls are counted while the function tracer is on, subtractions in all the recording.
    assert!((calls..=calls + calls / 4 + 2).contains(&seen.subtractions), "{calls} calls, {}", seen.subtractions);
    assert!(calls > 0 && calls < seen.purged / 10, "{calls} calls, {} areas", seen.purged);
}

#[test]
fn without_the_change_a_purge_subtracts_once_per_area() {
    let Some((seen, _)) = operations("6.12-unbatched", "6.12-unbatched") else { return };
    assert_eq!(seen.subtractions, seen.purged);
    assert!(seen.purged > 1000, "{}", seen.purged);
}
