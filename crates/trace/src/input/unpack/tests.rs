use super::super::spool::Source;
use super::*;
use std::io::Cursor;

const TEXT: &[u8] = b"# tracer: nop\n";

fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, data) in members {
        let mut header = tar::Header::new_ustar();
        header.set_size(data.len() as u64);
        header.set_mode(0o600);
        // Names as they are, also those that a builder refuses.
        let bytes = name.as_bytes();
        header.as_mut_bytes()[..bytes.len().min(100)].copy_from_slice(&bytes[..bytes.len().min(100)]);
        header.set_cksum();
        builder.append(&header, *data).unwrap();
    }
    builder.into_inner().unwrap()
}

/// What is taken of an archive, and the warnings; those that are cuts begin with `cut: `.
fn opened(bytes: Vec<u8>) -> Result<(String, Vec<String>), Error> {
    let (source, taken) = Source::new(Box::new(Cursor::new(bytes)));
    let form = unpack("a.tar", Some(Box::new(source)), &taken, &Broken::default())?;
    let Form::Directory(found) = form else { panic!("no directory") };
    let told = |w: &crate::Warning| format!("{}{w}", if w.cut { "cut: " } else { "" });
    assert!(!Path::new(found.unpacked.as_deref().unwrap()).exists(), "the directory is left");
    Ok((found.taken, found.warnings.list().iter().map(told).collect()))
}

#[test]
fn what_leads_out_or_deep_is_left_out_and_said() {
    let deep = "d/".repeat(DEPTH) + "trace.txt";
    let whole = archive(&[("run/trace.txt", TEXT), ("../out", TEXT), (&deep, TEXT)]);
    let (taken, told) = opened(whole).unwrap();
    assert_eq!(taken, "run/trace.txt");
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("a.tar: ../out") && told[0].contains("2 times"), "{told:?}");
}

#[test]
fn a_cut_is_seen_wherever_it_falls() {
    let whole = archive(&[("trace.txt", TEXT), ("before/vmstat", &[b'x'; 2000])]);
    assert_eq!(opened(whole.clone()).unwrap().1, [] as [&str; 0]);
    // Behind the first member, in the header of the second, in its data, and before the mark of the end.
    for (length, why) in
        [(1024, "no end marker"), (1100, "truncated"), (2000, "464 of 2000 bytes"), (3584, "no end marker")]
    {
        let (taken, told) = opened(whole[..length].to_vec()).unwrap();
        assert!(taken.starts_with("trace.txt"), "{length}: {taken}");
        assert!(told.iter().any(|told| told.starts_with("cut: ") && told.contains(why)), "{length}: {told:?}");
    }
    let Err(error) = opened(whole[..100].to_vec()) else { panic!("nothing was read") };
    assert!(error.to_string().contains("a.tar"), "{error}");
}

#[test]
fn sparse_members_are_read_or_named() {
    // GNU's own format: 512 bytes at 1 KiB of a file of 2 KiB.
    let mut header = tar::Header::new_gnu();
    header.set_path("trace.txt").unwrap();
    header.set_entry_type(EntryType::GNUSparse);
    header.set_size(512);
    let gnu = header.as_gnu_mut().unwrap();
    gnu.sparse[0].offset[..12].copy_from_slice(b"00000002000\0");
    gnu.sparse[0].numbytes[..12].copy_from_slice(b"00000001000\0");
    gnu.sparse[1].offset[..12].copy_from_slice(b"00000004000\0");
    gnu.sparse[1].numbytes[..12].copy_from_slice(b"00000000000\0");
    gnu.realsize[..12].copy_from_slice(b"00000004000\0");
    header.set_cksum();
    let mut builder = tar::Builder::new(Vec::new());
    builder.append(&header, &[b'#'; 512][..]).unwrap();
    let (taken, told) = opened(builder.into_inner().unwrap()).unwrap();
    assert_eq!((taken.as_str(), told.len()), ("trace.txt", 0), "{told:?}");
    let mut builder = tar::Builder::new(Vec::new());
    builder.append_pax_extensions([("GNU.sparse.major", &b"1"[..])]).unwrap();
    let mut header = tar::Header::new_ustar();
    header.set_path("GNUSparseFile.0/big.dat").unwrap();
    header.set_size(0);
    header.set_cksum();
    builder.append(&header, &[][..]).unwrap();
    let mut plain = tar::Header::new_ustar();
    plain.set_path("trace.txt").unwrap();
    plain.set_size(TEXT.len() as u64);
    plain.set_cksum();
    builder.append(&plain, TEXT).unwrap();
    let (taken, told) = opened(builder.into_inner().unwrap()).unwrap();
    assert_eq!(taken, "trace.txt");
    assert!(told[0].starts_with("cut: a.tar: GNUSparseFile.0/big.dat: a sparse member in PAX format"), "{told:?}");
}

#[test]
fn headers_have_a_bound() {
    // A long name of 100 MB, which a packed archive holds in some KB.
    let mut header = tar::Header::new_gnu();
    header.set_path("././@LongLink").unwrap();
    header.set_entry_type(EntryType::GNULongName);
    header.set_size(100 << 20);
    header.set_cksum();
    let start = archive(&[("trace.txt", TEXT)]);
    let bytes = [&start[..1024], header.as_bytes()].concat();
    let (source, taken) = Source::new(Box::new(Cursor::new(bytes).chain(io::repeat(b'a').take(100 << 20))));
    let form = unpack("a.tar", Some(Box::new(source)), &taken, &Broken::default()).unwrap();
    let Form::Directory(found) = form else { panic!("no directory") };
    assert!(found.warnings.list()[0].message.contains("longer than 1 MiB"), "{:?}", found.warnings);
    assert!(taken.get() < 8 << 20, "{} bytes were read", taken.get());
}
