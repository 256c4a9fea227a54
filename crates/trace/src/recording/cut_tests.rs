//! Parts of a recording that are missing: each is seen, and what is there is read.

use super::tests::{end, read, written};
use super::*;
use std::fs::OpenOptions;
use tempfile::TempDir;

/// A recording that ended well, damaged.
fn damaged(damage: impl FnOnce(&Path)) -> (TempDir, PathBuf) {
    let (root, path) = written(Some(end()));
    damage(&path);
    (root, path)
}

fn shorten(path: &Path, length: u64) {
    OpenOptions::new().write(true).open(path).and_then(|file| file.set_len(length)).unwrap();
}

/// Events, and what is said to be cut.
fn told(path: &Path) -> (usize, Vec<String>, Option<u64>) {
    let (seen, outcome) = read(path).unwrap();
    let inside = |cut: String| cut.split_once("r.mmt").map_or(cut.clone(), |(_, inside)| inside.to_string());
    (seen.events.len(), outcome.cuts().into_iter().map(inside).collect(), outcome.lost_events())
}

#[test]
fn pages_that_end_at_a_page_are_held_against_the_end() {
    let (_root, path) = damaged(|path| shorten(&path.join("cpu/0.pages"), 128));
    let (events, cut, lost) = told(&path);
    assert_eq!((events, lost), (6, None));
    assert_eq!(cut, ["/cpu/0.pages: offset 0x80: 1 of 2 pages are present"]);
    assert_eq!(read(&path).unwrap().0.lost, [(1, Some(7)), (0, None)]);
    // Cut within a page, to nothing, and away.
    for length in [130, 0] {
        shorten(&path.join("cpu/0.pages"), length);
        assert!(told(&path).1[0].contains("/cpu/0.pages"), "{length}");
    }
    fs::remove_file(path.join("cpu/0.pages")).unwrap();
    let (events, cut, lost) = told(&path);
    assert_eq!((events, lost), (3, None));
    assert_eq!(cut[0], "/cpu/0.pages: missing, with 2 pages");
}

#[test]
fn a_writer_that_counted_sums_only_is_believed_too() {
    let (_root, path) = damaged(|path| {
        let old = End { files: Default::default(), ..Recording::open(path).unwrap().end.unwrap() };
        fs::write(path.join("end.json"), serde_json::to_vec(&old).unwrap()).unwrap();
    });
    assert_eq!(told(&path), (9, vec![], Some(7)));
    shorten(&path.join("cpu/1.pages"), 0);
    assert_eq!(told(&path), (6, vec!["/cpu: 256 of 384 bytes are present".into()], None));
    assert_eq!(read(&path).unwrap().0.lost, [(1, Some(7)), (Outcome::SOME_CPU, None)]);
}

#[test]
fn every_other_file_is_looked_at_too() {
    for (file, length) in [("counters/numastat.arrows", 3), ("tasks.jsonl", 2), ("formats/header_page", 300)] {
        let (_root, path) = written(Some(end()));
        let whole = path.join(file).metadata().unwrap().len();
        shorten(&path.join(file), whole - whole.min(length).min(8));
        let (_, cut, lost) = told(&path);
        assert!(lost.is_none() && cut.iter().any(|cut| cut.contains(file)), "{file}: {cut:?}");
    }
    // A whole sample and the mark of the end are missing, and nobody counted bytes.
    let (_root, path) = damaged(|path| {
        let counters = path.join("counters/numastat.arrows");
        shorten(&counters, counters.metadata().unwrap().len() - 8);
        let mut old = Recording::open(path).unwrap().end.unwrap();
        (old.files, old.cost) = Default::default();
        fs::write(path.join("end.json"), serde_json::to_vec(&old).unwrap()).unwrap();
    });
    let (_, cut, _) = told(&path);
    assert!(cut.len() == 1 && cut[0].contains("no end marker"), "{cut:?}");
}

#[test]
fn texts_of_json_that_are_cut_are_left_out_and_said() {
    let (_root, path) = damaged(|path| fs::write(path.join("results.json"), "{\"schema_version\": 1, \"phas").unwrap());
    let (events, cut, lost) = told(&path);
    assert_eq!((events, lost), (9, None));
    assert!(cut[0].contains("/results.json"), "{cut:?}");
    fs::write(path.join("results.json"), "[".repeat(200_000)).unwrap();
    assert!(told(&path).1[0].contains("/results.json"));
    fs::write(path.join("end.json"), "{").unwrap();
    assert!(told(&path).1.iter().any(|cut| cut.contains("no end.json")));
}

#[test]
fn what_stands_in_the_place_of_a_file_is_not_waited_for() {
    for file in ["cpu/0.pages", "counters/vmstat.arrows", "results.json", "formats/vmscan/mm_vmscan_kswapd_sleep"] {
        let (_root, path) = damaged(|path| {
            let _ = fs::remove_file(path.join(file));
            let mode = rustix::fs::Mode::RUSR;
            rustix::fs::mknodat(rustix::fs::CWD, path.join(file), rustix::fs::FileType::Fifo, mode, 0).unwrap();
        });
        let (_, cut, _) = told(&path);
        assert!(cut.iter().any(|cut| cut.contains(file)), "{file}: {cut:?}");
    }
}

#[test]
fn numbers_of_a_manifest_are_checked() {
    let cases = [
        (r#""sub_buffer": 128"#, r#""sub_buffer": 0"#),
        (r#""sub_buffer": 128"#, r#""sub_buffer": 1099511627776"#),
        (r#""long_size": 8"#, r#""long_size": 32"#),
        (r#""long_size": 8"#, r#""long_size": 0"#),
        (r#""schema_version": 1"#, r#""schema_version": 4294967295"#),
    ];
    for (from, to) in cases {
        let (_root, path) = written(Some(end()));
        let text = fs::read_to_string(path.join("manifest.json")).unwrap();
        assert!(text.contains(from), "{from}: {text}");
        fs::write(path.join("manifest.json"), text.replace(from, to)).unwrap();
        assert!(Recording::open(&path).is_err(), "{to}");
    }
    // A CPU that no machine has is one whose pages are missing.
    let (_root, path) = damaged(|path| {
        let text = fs::read_to_string(path.join("manifest.json")).unwrap();
        let cpus = text.find(r#""cpus": ["#).unwrap();
        fs::write(path.join("manifest.json"), format!("{}4294967295, {}", &text[..cpus + 9], &text[cpus + 9..]))
            .unwrap();
    });
    assert!(told(&path).1.iter().any(|cut| cut.contains("a CPU from 8192 on")));
}
