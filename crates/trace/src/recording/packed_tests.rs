//! Recordings with compressed pages, whole and cut, and symbols that are narrowed.

use super::tests::{end, read, written, written_so};
use super::{Recording, Writer};
use crate::output::ours::{self, Found};
use std::fs;

#[test]
fn compressed_pages_read_as_the_plain_ones() {
    for ended in [Some(end()), None] {
        let (_plain_root, plain) = written(ended.clone());
        let (_root, packed) = written_so(ended, true);
        assert!(packed.join("cpu/0.pages.zst").exists() && !packed.join("cpu/0.pages").exists());
        let ((plain_seen, plain_told), (seen, told)) = (read(&plain).unwrap(), read(&packed).unwrap());
        assert_eq!(seen, plain_seen);
        assert_eq!(told.warnings.list().len(), plain_told.warnings.list().len(), "{:?}", told.warnings.list());
        // It can be replaced as any recording.
        assert!(matches!(ours::recording(&packed).unwrap(), Found::Ours(_)));
    }
}

#[test]
fn a_cut_file_gives_the_whole_frames_before() {
    let (_root, path) = written_so(Some(end()), true);
    let file = path.join("cpu/0.pages.zst");
    let bytes = fs::read(&file).unwrap();
    for length in (0..bytes.len()).rev() {
        fs::write(&file, &bytes[..length]).unwrap();
        let (seen, told) = read(&path).unwrap();
        let of_first = seen.events.iter().filter(|(_, cpu, _)| *cpu == 0).count();
        assert!(of_first == 3 || of_first == 0, "{length}: {of_first}");
        let cut = told.cuts();
        assert!(!cut.is_empty() && cut.iter().all(|cut| cut.contains("cpu/0.pages.zst")), "{length}: {cut:?}");
        // What is missing is lost, in unknown number.
        assert!(seen.lost.contains(&(0, None)), "{length}: {:?}", seen.lost);
    }
}

/// Text of the symbols of a recording that had `text` and perhaps a newer one, once they are narrowed.
fn narrowed(text: Option<&[u8]>, newer: Option<&[u8]>, addresses: &[u64], private: bool) -> String {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("r.mmt");
    let mut writer = Writer::create(&path, false).unwrap();
    if private {
        writer.hide_names(Default::default(), false, 8);
    }
    if let Some(text) = text {
        writer.text("kallsyms", text).unwrap();
    }
    assert!(text.is_some() || newer.is_none() || writer.narrow_symbols(newer, addresses, 10).is_err(), "no room");
    writer.narrow_symbols(newer, addresses, 1000).unwrap();
    let bytes = writer.bytes();
    writer.manifest(&Default::default()).unwrap();
    writer.stop().unwrap();
    let text = fs::read_to_string(path.join("formats/kallsyms")).unwrap_or_default();
    assert_eq!(bytes, text.len() as u64);
    assert!(Recording::is_one(&path));
    text
}

#[test]
fn symbols_are_narrowed_to_what_is_needed() {
    let text = b"ffffffff81000000 T a\nffffffff81000100 T b\nffffffff81000200 T c\nffffffff81000300 T d [mod]\n";
    let narrowed =
        |newer: Option<&[u8]>, addresses: &[u64], private: bool| narrowed(Some(text), newer, addresses, private);
    assert_eq!(narrowed(None, &[0xffff_ffff_8100_0104], false), "ffffffff81000100 T b\nffffffff81000200 T c\n");
    assert_eq!(narrowed(None, &[], false), "");
    let newer = b"ffffffff81000100 T b\nffffffff81000380 T new [later]\n";
    assert_eq!(narrowed(Some(newer), &[0xffff_ffff_8100_0390], false), "ffffffff81000380 T new [later]\n");
    let private = narrowed(None, &[0xffff_ffff_8100_0304], true);
    let late = |newer| super::packed_tests::narrowed(None, newer, &[0xffff_ffff_8100_0390], false);
    assert_eq!((late(Some(newer)).as_str(), late(None).as_str()), ("ffffffff81000380 T new [later]\n", ""));
    assert!(private.starts_with("ffffffff81000300 ") && !private.contains("mod]"), "{private}");
}
