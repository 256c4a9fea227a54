use super::ours::{Found, MARKER};
use super::*;
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};

fn message<T>(result: Result<T, Error>) -> String {
    result.err().map(|e| e.to_string()).unwrap_or_default()
}

fn names(path: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(path).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_file_appears_whole_with_the_permissions_of_its_source() {
    let root = tempfile::tempdir().unwrap();
    let to = root.path().join("a.txt");
    let output = FileOutput::open(&to, false, 0o600).unwrap();
    assert!(!to.exists());
    output.write(b"one").unwrap();
    assert_eq!(fs::metadata(&to).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(message(FileOutput::open(&to, false, 0o600)).contains("-f replaces it"));
    // Unfinished: as before, and nothing beside.
    drop(FileOutput::open(&to, true, 0o600).unwrap());
    assert_eq!((fs::read(&to).unwrap(), names(root.path())), (b"one".to_vec(), vec!["a.txt".to_string()]));
    FileOutput::open(&to, true, 0o640).unwrap().write(b"two").unwrap();
    assert_eq!((fs::read(&to).unwrap(), names(root.path())), (b"two".to_vec(), vec!["a.txt".to_string()]));
    // Made by another program meanwhile.
    let other = root.path().join("b.txt");
    let output = FileOutput::open(&other, false, 0o600).unwrap();
    fs::write(&other, "theirs").unwrap();
    assert!(message(output.write(b"ours")).contains("another process"));
    assert_eq!((fs::read(&other).unwrap(), names(root.path()).len()), (b"theirs".to_vec(), 2));
}

#[test]
fn links_are_followed_and_never_replaced() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    fs::create_dir(at("far")).unwrap();
    fs::write(at("far/target"), "old").unwrap();
    symlink("far/target", at("link")).unwrap();
    symlink("nowhere", at("dangling")).unwrap();
    assert!(message(FileOutput::open(&at("link"), false, 0o600)).contains("-f"));
    FileOutput::open(&at("link"), true, 0o600).unwrap().write(b"new").unwrap();
    assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
    assert_eq!(fs::read(at("far/target")).unwrap(), b"new");
    let refused = message(FileOutput::open(&at("dangling"), true, 0o600));
    assert!(refused.contains("dangling") && refused.contains("nowhere"), "{refused}");
    assert!(message(Folder::create(&at("dangling"), true, Kind::Recording)).contains("nowhere"));
}

#[test]
fn impossible_files_are_refused_by_name() {
    let root = tempfile::tempdir().unwrap();
    let refused = |name: &Path| message(FileOutput::open(name, true, 0o600));
    assert!(refused(root.path()).contains("is a directory"));
    assert!(refused(&root.path().join("new/")).contains("name of a directory"));
    assert!(refused(&root.path().join("missing/a.txt")).contains("does not exist"));
    assert!(refused(Path::new("/")).contains("directory"));
    let _socket = std::os::unix::net::UnixListener::bind(root.path().join("socket")).unwrap();
    assert!(refused(&root.path().join("socket")).contains("socket"));
    assert!(refused(Path::new("/dev/fd/999")).contains("/dev/fd/999"));
    // A device is written to, with and without force.
    FileOutput::open(Path::new("/dev/null"), false, 0o600).unwrap().write(b"x").unwrap();
    FileOutput::open(Path::new("/dev/null"), true, 0o600).unwrap().write(b"x").unwrap();
    let meta = fs::symlink_metadata("/dev/null").unwrap();
    assert!(!meta.is_file(), "/dev/null is a file now");
}

/// An unfinished recording, as a killed recorder leaves it.
fn stub(path: &Path) {
    fs::create_dir_all(path.join("cpu")).unwrap();
    fs::write(path.join(MARKER), ours::MARKER_TEXT).unwrap();
    fs::write(path.join("cpu/0.pages"), "pages").unwrap();
}

#[test]
fn a_directory_is_replaced_when_the_new_one_is_published() {
    let root = tempfile::tempdir().unwrap();
    let to = root.path().join("r.mmt");
    stub(&to);
    assert!(message(Folder::create(&to, false, Kind::Recording)).contains("-f replaces it"));
    drop(Folder::create(&to, true, Kind::Recording).unwrap());
    assert_eq!((names(root.path()), to.join("cpu/0.pages").exists()), (vec!["r.mmt".to_string()], true));
    let mut folder = Folder::create(&to, true, Kind::Recording).unwrap();
    assert!(message(Folder::create(&to, true, Kind::Recording)).contains("another mmtwin"), "two at once");
    assert_eq!(folder.publish().unwrap(), None);
    assert_eq!((names(root.path()), names(&to)), (vec!["r.mmt".to_string()], vec![MARKER.to_string()]));
    let refused = message(Folder::create(&to, true, Kind::Recording));
    assert!(refused.contains("is being written"), "{refused}");
    drop(folder);
    assert!(to.exists());
    Folder::create(&to, true, Kind::Recording).unwrap();
    // Through a link: the link stays.
    symlink("r.mmt", root.path().join("link")).unwrap();
    Folder::create(&root.path().join("link/"), true, Kind::Recording).unwrap().publish().unwrap();
    assert!(fs::symlink_metadata(root.path().join("link")).unwrap().is_symlink());
}

#[test]
fn foreign_directories_are_refused_and_what_is_foreign_is_named() {
    let root = tempfile::tempdir().unwrap();
    let to = root.path().join("r.mmt");
    let refused = || message(Folder::create(&to, true, Kind::Recording));
    for foreign in ["thesis.txt", "cpu/notes", "counters/x.csv", "formats/kmem/notes", "cpu/sub/0.pages", "src/a.c"] {
        stub(&to);
        fs::create_dir_all(to.join(foreign).parent().unwrap()).unwrap();
        fs::write(to.join(foreign), "years of work").unwrap();
        let top = refused();
        assert!(foreign.split('/').any(|part| top.contains(part)) && top.contains("holds"), "{foreign}: {top}");
        assert!(to.join(foreign).exists());
        fs::remove_dir_all(&to).unwrap();
    }
    // A link in it, even with a name that is known.
    stub(&to);
    symlink("/etc/passwd", to.join("run.json")).unwrap();
    assert!(refused().contains("run.json"));
    fs::remove_dir_all(&to).unwrap();
    // A manifest of another program, the only file of the directory.
    fs::create_dir(&to).unwrap();
    for manifest in ["{}", "{\"name\": \"web\", \"version\": 2}", "", "[1]"] {
        fs::write(to.join("manifest.json"), manifest).unwrap();
        assert!(refused().contains("manifest.json"), "{manifest}");
    }
    fs::remove_dir_all(&to).unwrap();
    // Files are not recordings.
    fs::write(&to, "x").unwrap();
    assert!(refused().contains("is not a recording"));
    assert!(message(Folder::create(Path::new("/dev/null"), true, Kind::Recording)).contains("not a recording"));
    assert!(message(Folder::create(Path::new("/"), true, Kind::Recording)).contains("not a valid name"));
    assert!(message(Folder::create(Path::new("."), true, Kind::Recording)).contains("not a valid name"));
    assert!(message(Folder::create(&root.path().join("no/r"), true, Kind::Recording)).contains("does not exist"));
}

#[test]
fn files_added_to_a_directory_meanwhile_stay() {
    let root = tempfile::tempdir().unwrap();
    let to = root.path().join("r.mmt");
    stub(&to);
    let mut folder = Folder::create(&to, true, Kind::Recording).unwrap();
    fs::write(to.join("thesis"), "years of work").unwrap();
    let left = folder.publish().unwrap().expect("something stayed");
    assert!(left.contains("holds thesis"), "{left}");
    let kept: Vec<_> = names(root.path()).into_iter().filter(|name| name.starts_with(".mmtwin-")).collect();
    assert!(kept.len() == 1 && root.path().join(&kept[0]).join("thesis").exists());
    // Made by another program where no file was.
    let new = root.path().join("new");
    let mut folder = Folder::create(&new, false, Kind::Recording).unwrap();
    fs::create_dir(&new).and_then(|()| fs::write(new.join("x"), "x")).unwrap();
    assert!(folder.publish().is_err());
    drop(folder);
    assert_eq!(names(&new), ["x"]);
}

#[test]
fn empty_directories_are_taken() {
    let root = tempfile::tempdir().unwrap();
    let to = root.path().join("r.mmt");
    fs::create_dir(&to).unwrap();
    assert!(matches!(ours::recording(&to).unwrap(), Found::Empty));
    Folder::create(&to, false, Kind::Recording).unwrap().publish().unwrap();
    assert!(to.join(MARKER).exists());
    assert!(same(&to, &root.path().join("./r.mmt")) && !same(&to, root.path()));
    assert!(!same(Path::new("/dev/null"), Path::new("/dev/null")), "a device is not overwritten");
    File::create(root.path().join("f")).unwrap();
}
