//! Every file of mmtwin can be read and has the provenance of its figures.

use mmtwin_scenario::machine::Provenance;
use mmtwin_scenario::published::Published;
use mmtwin_scenario::{Scenario, bundle_names, from_json, load, parse, preset_names, preset_text};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(text: &str) -> Scenario {
    parse("test.toml", text, Path::new(""), &[]).unwrap_or_else(|faults| panic!("{text}\n{faults}"))
}

fn toml_files(folder: &str) -> Vec<PathBuf> {
    let entries =
        std::fs::read_dir(root().join(folder)).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|e| e == "toml")).collect();
    files.sort();
    files
}

fn stems(folder: &str) -> BTreeSet<String> {
    let stem = |path: &PathBuf| path.file_stem().expect("a name").to_string_lossy().into_owned();
    toml_files(folder).iter().map(stem).collect()
}

#[test]
fn every_preset_resolves_and_states_its_figures() {
    for name in preset_names().filter(|name| *name != "base") {
        let scenario = read(&format!("[machine]\npreset = \"{name}\"\n[kernel]\nrelease = \"6.1\"\n"));
        assert_eq!(scenario.machine.name, name);
        let again = from_json(&scenario.to_json()).unwrap_or_else(|faults| panic!("{name}: {faults}"));
        assert_eq!(scenario, again);
        for figure in &scenario.machine.figures {
            assert!(figure.source != "not stated", "{name}: {:?} has no source", figure.of);
            assert_ne!(figure.provenance, Provenance::Given, "{name}: {:?}", figure.of);
        }
        let text = preset_text(name).expect("an embedded text");
        assert!(text.starts_with("# "), "{name} says what it is");
    }
}

#[test]
fn every_bundle_resolves_under_its_own_name() {
    for name in bundle_names() {
        let scenario = read(&format!("[machine]\npreset = \"lab-4n\"\n[kernel]\nrelease = \"{name}\"\n"));
        assert_eq!(scenario.kernel.release, name);
    }
}

/// Recordings of before a rule had a key of its own have the generation of NUMA balancing instead, or nothing.
#[test]
fn recordings_without_newer_keys_are_filled_in_from_their_bundle() {
    for name in bundle_names() {
        let scenario = read(&format!("[machine]\npreset = \"lab-4n\"\n[kernel]\nrelease = \"{name}\"\n"));
        let mut json = scenario.to_json();
        let kernel = json["kernel"].as_object_mut().expect("a kernel");
        for table in ["filemap", "writeback", "sysctl_max"] {
            assert!(kernel.remove(table).is_some(), "{table}");
        }
        let balancing = kernel["numa_balancing"].as_object_mut().expect("a table");
        assert!(balancing.remove("period_reset").is_some());
        balancing.insert("rules".into(), "6.1".into());
        assert_eq!(from_json(&json).unwrap_or_else(|faults| panic!("{name}: {faults}")), scenario);
    }
}

/// Folders of published studies.
const STUDIES: [&str; 7] = [
    "explain-2012",
    "lumpy-2012",
    "numa-counters",
    "pseudo-interleaving",
    "staggered-scan",
    "vmalloc-purge",
    "vmscan-2010",
];

#[test]
fn folders_hold_what_is_embedded() {
    assert_eq!(stems("machines"), preset_names().map(str::to_string).collect());
    assert_eq!(stems("kernels"), bundle_names().map(str::to_string).collect());
}

#[test]
fn every_scenario_resolves_and_reads_back_equal() {
    let published = STUDIES.iter().flat_map(|name| toml_files(&format!("scenarios/published/{name}")));
    let published = published.filter(|path| !path.ends_with("published.toml"));
    let controls = toml_files("scenarios/controls");
    let files = toml_files("scenarios/examples").into_iter().chain(controls).chain(published);
    for path in files {
        let scenario = load(&path, &[]).unwrap_or_else(|faults| panic!("{faults}"));
        let shown = scenario.to_toml();
        let again =
            parse("shown.toml", &shown, Path::new(""), &[]).unwrap_or_else(|faults| panic!("{shown}\n{faults}"));
        assert_eq!(scenario, again, "{}", path.display());
        assert_eq!(scenario, from_json(&scenario.to_json()).unwrap_or_else(|faults| panic!("{faults}")));
        assert_eq!(scenario.hash(), again.hash());
    }
}

#[test]
fn every_published_row_is_a_scenario_and_every_fitted_figure_names_a_row() {
    let mut rows = BTreeSet::new();
    for name in STUDIES {
        let folder = root().join("scenarios/published").join(name);
        let published = Published::load(&folder.join("published.toml")).unwrap_or_else(|faults| panic!("{faults}"));
        for row in &published.rows {
            let scenario = match row.scenario.as_deref() {
                // One workload for both studies.
                Some("specjbb") => root().join("scenarios/published/pseudo-interleaving/scenario.toml"),
                // And for the series and what it left open.
                Some(of) if name == "explain-2012" => {
                    root().join("scenarios/published/lumpy-2012").join(format!("{of}.toml"))
                }
                name => folder.join(name.unwrap_or("scenario")).with_extension("toml"),
            };
            if row.sum.is_empty() {
                load(&scenario, &row.set).unwrap_or_else(|faults| panic!("{}: {faults}", row.key));
            }
            rows.insert(format!("{name}:{}", row.key));
        }
        for histogram in &published.histograms {
            assert_eq!(histogram.slots.iter().map(|[_, calls]| calls).sum::<u64>(), histogram.count);
            assert_eq!(histogram.total / histogram.count, histogram.average);
        }
    }
    for name in preset_names().filter(|name| *name != "base") {
        let scenario = read(&format!("[machine]\npreset = \"{name}\"\n[kernel]\nrelease = \"6.1\"\n"));
        for row in scenario.machine.figures.iter().flat_map(|figure| &figure.fits) {
            assert!(rows.contains(row), "{name} fits {row}, which is not published");
        }
    }
}
