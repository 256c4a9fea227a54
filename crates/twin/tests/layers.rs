//! The folders of the twin have one order, and none imports from a later one.
//!
//! The test reads code outside of tests: every path that begins with `crate::`, or with enough `super::` to reach the
//! crate's root. Files of one folder may import each other.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The folders; each may import from earlier ones. Mechanisms come first; none of them imports from the folders after
/// `procfs`.
const ORDER: [&str; 15] = [
    "time",
    "hw",
    "frame",
    "probe",
    "vmstat",
    "page_alloc",
    "mm",
    "vmalloc",
    "sched",
    "numa",
    "procfs",
    "workload",
    "lab_guest",
    "build",
    "engine",
];

/// Code without comments and without what is compiled for tests only; names of modules that are so.
fn code(source: &str) -> (String, Vec<String>) {
    let (mut code, mut tests) = (String::new(), Vec::new());
    let mut lines = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    while let Some(line) = lines.next() {
        if line != "#[cfg(test)]" {
            code.push_str(line);
            code.push('\n');
            continue;
        }
        let item = lines.by_ref().find(|line| !line.starts_with("#[")).unwrap_or_default();
        if let Some(module) = item.strip_suffix(';') {
            tests.extend(module.split(' ').next_back().map(String::from));
        } else {
            // Its last line is the first that is not indented.
            lines.by_ref().find(|line| *line == "}");
        }
    }
    (code, tests)
}

/// First names of paths from the crate's root, in code of a module at this depth below it.
fn roots(code: &str, depth: usize) -> BTreeSet<String> {
    let supers = "super::".repeat(depth);
    let mut roots = BTreeSet::new();
    for prefix in ["crate::", &supers] {
        for (at, _) in code.match_indices(prefix) {
            let before = code[..at].chars().next_back().unwrap_or(' ');
            if before.is_alphanumeric() || before == '_' || before == ':' {
                continue;
            }
            let rest = &code[at + prefix.len()..];
            match rest.strip_prefix('{') {
                Some(group) => roots.extend(members(group)),
                None => roots.extend([name(rest)]),
            }
        }
    }
    roots.remove("");
    roots
}

fn name(path: &str) -> String {
    path.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// First names of the members of a group of imports, whose opening brace is omitted.
fn members(group: &str) -> Vec<String> {
    let (mut depth, mut begins, mut names) = (0, true, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => begins = true,
            c if begins && !c.is_whitespace() => {
                names.push(name(&group[at..]));
                begins = false;
            }
            _ => {}
        }
    }
    names
}

/// Folders that a folder imports from, with a file for each.
fn imports(folder: &Path, depth: usize, found: &mut BTreeMap<String, String>) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    let read = |path: &Path| code(&fs::read_to_string(path).unwrap());
    let files = || entries.iter().filter(|path| path.extension().is_some_and(|of| of == "rs"));
    // A test in a file of its own may be named by a path.
    let tests: Vec<String> = files().flat_map(|path| read(path).1).collect();
    for path in files() {
        let stem = path.file_stem().unwrap().to_str().unwrap();
        if tests.iter().any(|test| test == stem) || stem.ends_with("_tests") {
            continue;
        }
        let depth = if stem == "mod" { depth } else { depth + 1 };
        for root in roots(&read(path).0, depth) {
            found.entry(root).or_insert_with(|| path.display().to_string());
        }
    }
    entries.iter().filter(|path| path.is_dir()).for_each(|path| imports(path, depth + 1, found));
}

#[test]
fn no_folder_imports_from_one_that_comes_after_it() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let entries: BTreeSet<String> =
        fs::read_dir(&src).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let known: BTreeSet<String> = ORDER.iter().map(|folder| folder.to_string()).chain(["lib.rs".into()]).collect();
    assert_eq!(entries, known, "every folder has its place in the order, and no file stands outside of them");
    let (mut upwards, mut downwards) = (Vec::new(), 0);
    for (place, folder) in ORDER.iter().enumerate() {
        let mut found = BTreeMap::new();
        imports(&src.join(folder), 1, &mut found);
        for (other, file) in found {
            match ORDER.iter().position(|folder| *folder == other) {
                Some(at) if at > place => upwards.push(format!("{folder} imports from {other}: {file}")),
                Some(at) => downwards += usize::from(at < place),
                None => panic!("{file} imports from {other}, which is no folder"),
            }
        }
    }
    assert!(upwards.is_empty(), "{}", upwards.join("\n"));
    // Most folders build on most of those before them; a reader that found nothing would pass otherwise.
    assert!(downwards > 50, "only {downwards} imports from one folder to another were found");
}

#[test]
fn imports_are_read() {
    let source = "//! [`crate::comment`]\nuse crate::a::B;\nuse crate::{c, d::{e, f}, g};\nuse super::super::h::I;\n\
        fn j(crate_k: crate::l::M) {\n    super::n();\n}\n#[cfg(test)]\npub(crate) mod tests {\n    use crate::o;\n}\n\
        #[cfg(test)]\n#[path = \"p.rs\"]\nmod q;\nuse crate::r;\n";
    let (code, tests) = code(source);
    assert_eq!(roots(&code, 2).into_iter().collect::<Vec<_>>(), ["a", "c", "d", "g", "h", "l", "r"]);
    assert_eq!(tests, ["q"]);
    assert_eq!(roots("use super::a;\nuse super::super::b;\n", 1).into_iter().collect::<Vec<_>>(), ["a", "super"]);
}
