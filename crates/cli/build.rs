//! The version that `mmtwin --version` prints and the Python package has in `VERSION`, and the commit where this is a working
//! tree of git.

use std::path::Path;
use std::process::Command;

/// What git answers on its first line; nothing without git, or where it answers with an error.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output().ok()?;
    let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    text.lines().next().map(str::to_string)
}

/// The commit that is checked out. A package that lies in the tree of somebody else's repository has none.
fn commit() -> Option<String> {
    git(&["ls-files", "--error-unmatch", "Cargo.toml"])?;
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn main() {
    println!("cargo::rerun-if-changed=Cargo.toml");
    let version = env!("CARGO_PKG_VERSION");
    let version = match commit() {
        Some(commit) => format!("{version} ({commit})"),
        None => version.to_string(),
    };
    println!("cargo::rustc-env=MMTWIN_VERSION={version}");
    // What changes when another commit is checked out; git may have packed the branches or not.
    for name in ["HEAD", "refs/heads", "packed-refs"] {
        let path = git(&["rev-parse", "--path-format=absolute", "--git-path", name]);
        if let Some(path) = path.filter(|path| Path::new(path).exists()) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}
