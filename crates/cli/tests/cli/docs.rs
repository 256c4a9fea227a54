//! The documents: their links lead somewhere, the files that they name exist, their transcripts are what the program
//! prints, and generated pages are those that it writes.

use crate::support::{ok, root};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// All documents, by path.
fn documents() -> Vec<(PathBuf, String)> {
    let mut folders = vec![root().join("docs")];
    let mut files: Vec<PathBuf> = ["README.md", "CONTRIBUTING.md"].map(|name| root().join(name)).into();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            match path.extension().and_then(|e| e.to_str()) {
                None if path.is_dir() => folders.push(path),
                Some("md") => files.push(path),
                _ => {}
            }
        }
    }
    files.sort();
    files.into_iter().map(|path| (path.clone(), std::fs::read_to_string(path).expect("a document"))).collect()
}

/// The lines outside fenced blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fence && !fenced
    })
}

/// Anchors of headings, as GitHub makes them.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let slug = |heading: &str| -> String {
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || *c == ' ' || *c == '-' || *c == '_');
        kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(slug).collect()
}

/// Targets of links in a line that are not on the web.
fn links(line: &str) -> impl Iterator<Item = &str> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    targets.filter(|target| !target.contains("://"))
}

/// Words in backticks that name a file or folder of the repository and not a pattern of several.
fn paths(line: &str) -> impl Iterator<Item = &str> {
    const FOLDERS: [&str; 9] =
        ["crates/", "docs/", "fuzz/", "kernels/", "machines/", "scenarios/", "tests/", "tools/", "target/"];
    let is_path = |word: &&str| {
        let has_name = word.contains('/') && !word.contains([' ', '*', '<', ':', '$', '~']);
        let placeholder =
            word.split(['/', '.']).any(|part| !part.is_empty() && part.chars().all(|c| c.is_ascii_uppercase()));
        let starts = FOLDERS.iter().any(|folder| word.starts_with(folder)) && !word.starts_with("target/");
        has_name && !placeholder && !word.starts_with('/') && (word.ends_with(".rs") || starts)
    };
    line.split('`').skip(1).step_by(2).filter(is_path)
}

#[test]
fn links_lead_somewhere() {
    let mut seen = 0;
    let mut broken = Vec::new();
    for (path, text) in documents() {
        for target in prose(&text).flat_map(links) {
            seen += 1;
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = if file.is_empty() { path.clone() } else { path.parent().expect("a folder").join(file) };
            let leads = match anchor {
                "" => file.exists(),
                _ => std::fs::read_to_string(&file).is_ok_and(|text| anchors(&text).contains(anchor)),
            };
            if !leads {
                broken.push(format!("{}: {target}", path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(seen > 50, "{seen} links");
}

#[test]
fn named_files_exist() {
    let places = [root(), root().join("crates/twin/src")];
    let mut seen = 0;
    let mut missing = Vec::new();
    for (path, text) in documents() {
        for name in prose(&text).flat_map(paths) {
            seen += 1;
            if !places.iter().any(|place| place.join(name).exists()) {
                missing.push(format!("{}: {name}", path.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    assert!(seen > 100, "{seen} names");
}

#[test]
fn generated_pages_are_those_of_today() {
    let made = tempfile::tempdir().expect("a directory");
    ok([OsStr::new("reference"), made.path().as_os_str()]);
    for page in ["commands.md", "scenario-keys.md", "tables.md"] {
        let read = |folder: &Path| std::fs::read_to_string(folder.join(page)).expect("a page");
        assert!(read(made.path()) == read(&root().join("docs/reference")), "{page}: `make reference` writes it");
    }
}

/// Commands of the blocks `console` with the lines that are shown of their output.
fn transcripts(text: &str) -> Vec<(String, Vec<String>)> {
    let mut commands: Vec<(String, Vec<String>)> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if line.starts_with("```") {
            inside = line == "```console";
        } else if inside && let Some(command) = line.strip_prefix("$ ") {
            commands.push((command.into(), Vec::new()));
        } else if inside {
            commands.last_mut().expect("a command before its output").1.push(line.into());
        }
    }
    commands
}

/// What is printed has these lines one after another, with others in between only where `...` stands. Says which line
/// is not there.
fn shown_in<'a>(shown: &'a [String], printed: &str) -> Option<&'a str> {
    let mut printed = printed.lines().peekable();
    let mut skips = false;
    for line in shown {
        if line == "..." {
            skips = true;
            continue;
        }
        while skips && printed.peek().is_some_and(|next| next.trim_end() != line) {
            printed.next();
        }
        if printed.next().is_none_or(|next| next.trim_end() != line) {
            return Some(line);
        }
        skips = false;
    }
    None
}

#[test]
fn transcripts_are_what_is_printed() {
    let mut seen = 0;
    let made = tempfile::tempdir().expect("a directory");
    for (path, text) in documents() {
        for (command, shown) in transcripts(&text) {
            seen += 1;
            let program = command.replacen("mmtwin", env!("CARGO_BIN_EXE_mmtwin"), 1);
            let program = program.replace(" -o ", &format!(" -o {}/", made.path().display()));
            let output = Command::new("sh").args(["-c", &program]).env("COLUMNS", "100").current_dir(root()).output();
            let printed = String::from_utf8(output.expect("a shell").stdout).expect("UTF-8");
            let missing = shown_in(&shown, &printed);
            assert_eq!(missing, None, "{}: {command}\n{printed}", path.display());
        }
    }
    assert!(seen >= 4, "{seen} transcripts");
}
