//! Which twin has computed what a page says.

use std::process::Command;

/// What changes the twin's results: where a commit says which twin it was.
const OF_TWIN: [&str; 3] = ["crates", "kernels", "machines"];

/// The commit of the repository and its date, as git says them.
pub fn commit() -> (String, String) {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_string())
    };
    let unknown = || "unknown".to_string();
    let commit = git(&["log", "-1", "--abbrev=8", "--format=%h"]).unwrap_or_else(unknown);
    let date = git(&["log", "-1", "--format=%cs"]).unwrap_or_else(unknown);
    let changed = git(&[&["status", "--porcelain", "--"][..], &OF_TWIN].concat());
    let with = changed.filter(|changed| !changed.is_empty()).map_or("", |_| " with changes");
    (commit + with, date)
}
