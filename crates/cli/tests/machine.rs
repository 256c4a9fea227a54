//! Recordings that change a setting of the whole machine: in a process of their own, as others would record it too.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};

const SYSCTL: &str = "/proc/sys/kernel/task_delayacct";

fn mmtwin(arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_mmtwin")).args(arguments).output().expect("the program");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn delay_accounting_is_on_while_it_is_recorded() {
    let before = fs::read_to_string(SYSCTL).unwrap_or_default();
    if before.is_empty() || fs::write(SYSCTL, &before).is_err() {
        let _ = writeln!(std::io::stderr(), "skipped: delay accounting: {SYSCTL} cannot be written here");
        return;
    }
    let scratch = tempfile::tempdir().expect("a directory");
    let (seen, output) = (scratch.path().join("seen"), scratch.path().join("r.mmt"));
    let script = format!("cat {SYSCTL} > {}", seen.display());
    mmtwin(&["record", "-o", text(&output), "--delays", "--", "sh", "-c", &script]);
    assert_eq!(fs::read_to_string(seen).expect("what the command saw"), "1\n");
    assert_eq!(fs::read_to_string(SYSCTL).expect("the sysctl"), before);
    // A shell that starts a program copies pages on write, which the kernel accounts for.
    let table = mmtwin(&["report", text(&output), "--table", "delays", "--format", "csv"]);
    let table = String::from_utf8(table.stdout).expect("UTF-8");
    assert!(table.lines().any(|line| line.split(',').nth(2) == Some("sh")), "{table}");
}
