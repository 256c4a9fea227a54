//! docs/reference/sources.md has a row for everything the five published series describe, and what it names exists.

use std::collections::BTreeMap;
use std::path::Path;

const ROWS: [(&str, u32); 5] = [("C", 13), ("V", 10), ("R", 23), ("B", 19), ("G", 4)];

#[test]
fn every_row_of_the_published_work_is_accounted_for() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join("docs/reference/sources.md")).unwrap();
    let mut rows: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
    for line in text.lines().filter(|l| l.starts_with("| ") && !l.starts_with("| row ")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [row, what, place] = cells[..] else { panic!("not three cells: {line}") };
        assert!(!what.is_empty() && !place.is_empty(), "{line}");
        assert!(rows.insert(row, (what, place)).is_none(), "{row} twice");
    }
    for (series, count) in ROWS {
        for n in 1..=count {
            assert!(rows.contains_key(format!("{series}{n}").as_str()), "{series}{n} is missing");
        }
    }
    assert_eq!(rows.len() as u32, ROWS.iter().map(|(_, count)| count).sum::<u32>());
    for (row, (_, place)) in rows {
        let done_here = place.split('`').skip(1).step_by(2).filter(|w| w.contains('/') && !w.contains("/proc/"));
        for path in done_here {
            assert!(root.join(path).exists(), "{row} names {path}, which does not exist");
        }
        assert!(place.contains('`') || place.contains("not yet"), "{row} says neither where nor when: {place}");
    }
}

/// Where a crate's test files are modules of one program, cargo does not see a file that nobody names.
#[test]
fn every_file_of_tests_is_in_a_program() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let names = |directory: &Path| -> Vec<String> {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    };
    let mut looked_at = 0;
    for name in names(&crates) {
        let manifest = std::fs::read_to_string(crates.join(&name).join("Cargo.toml")).unwrap_or_default();
        if !manifest.contains("autotests = false") {
            continue;
        }
        let tests = crates.join(&name).join("tests");
        let files: Vec<String> = names(&tests).into_iter().filter(|file| file.ends_with(".rs")).collect();
        let (programs, modules): (Vec<_>, Vec<_>) =
            files.iter().partition(|file| manifest.contains(&format!("path = \"tests/{file}\"")));
        let text: String = programs.iter().map(|file| std::fs::read_to_string(tests.join(file)).unwrap()).collect();
        for file in modules {
            let module = format!("mod {};", file.trim_end_matches(".rs"));
            assert!(text.lines().any(|line| line == module), "crates/{name}/tests/{file} is in no test program");
            looked_at += 1;
        }
    }
    assert!(looked_at > 30, "{looked_at} files");
}
