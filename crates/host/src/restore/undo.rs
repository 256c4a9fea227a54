//! Undoing changes.

use super::change::{Change, inode, start_of};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long processes that were killed may take to end: those that write to a slow disk do so first.
const EXIT_TIMEOUT: Duration = Duration::from_secs(20);

/// The change that was undone.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Report {
    /// Put back, in words for the user.
    pub done: Vec<String>,
    /// Not put back, and why.
    pub left: Vec<String>,
}

/// Undoes changes: first the processes that might make more of them, then the others, the last one first.
pub(crate) fn all(changes: &[Change]) -> Report {
    let mut report = Report::default();
    end_processes(changes, &mut report);
    for change in changes.iter().rev() {
        one(change, changes, &mut report);
    }
    report
}

/// Kills workers and what is in the run's cgroups, until all of them have ended.
fn end_processes(changes: &[Change], report: &mut Report) {
    let begin = Instant::now();
    let mut killed = 0;
    loop {
        let pids: Vec<u32> = changes.iter().flat_map(processes).collect();
        if pids.is_empty() {
            break;
        }
        if begin.elapsed() > EXIT_TIMEOUT {
            report.left.push(format!("{} processes of the run do not exit", pids.len()));
            return;
        }
        killed = killed.max(pids.len());
        for pid in pids {
            // It may have ended meanwhile.
            let _ = i32::try_from(pid).ok().and_then(Pid::from_raw).map(|pid| kill_process(pid, Signal::KILL));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    if killed > 0 {
        report.done.push(format!("killed {killed} processes of its workload"));
    }
}

/// Processes of a change that run.
fn processes(change: &Change) -> Vec<u32> {
    let own = std::process::id();
    match change {
        Change::Worker { pid, start } => Some(*pid).filter(|pid| start_of(*pid) == Some(*start)).into_iter().collect(),
        Change::Cgroup { directory, inode: made } if made.is_some() && inode(directory) == *made => {
            let text = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
            text.lines().filter_map(|line| line.parse().ok()).filter(|pid| *pid > 1 && *pid != own).collect()
        }
        _ => Vec::new(),
    }
}

fn one(change: &Change, all: &[Change], report: &mut Report) {
    match change {
        Change::Value { file, before, set } => value(file, before, set, report),
        Change::Pair { files, before, set } => pair(files, *before, set, report),
        Change::Cgroup { directory, inode: made } => cgroup(directory, *made, all, report),
        Change::Controller { file } => {
            // Other cgroups below may need it by now.
            let _ = fs::write(file, "-memory");
        }
        Change::Tracer { tracefs, buffer, on } => tracer(tracefs, buffer, on, report),
        Change::Module { name } => module(name, report),
        Change::Temporary { path } => temporary(path, report),
        Change::Worker { .. } => {}
    }
}

/// A file's words. `None`: it cannot be read, as for a CPU that was removed.
fn words(file: &Path) -> Option<Vec<String>> {
    Some(fs::read_to_string(file).ok()?.split_whitespace().map(str::to_string).collect())
}

fn value(file: &Path, before: &str, set: &[u64], report: &mut Report) {
    let name = name(file);
    let was: Vec<String> = before.split_whitespace().map(str::to_string).collect();
    let Some(now) = words(file) else { return report.left.push(format!("{name} cannot be read")) };
    if now == was {
        return;
    }
    // A list of values of which the first is written.
    let ours = |value: &u64| now.first() == Some(&value.to_string()) && now.get(1..) == was.get(1..);
    if !set.iter().any(ours) {
        let (now, was) = (now.join(" "), was.join(" "));
        return report.left.push(format!("{name} is {now}, which the run did not set: not restored (it was {was})"));
    }
    match fs::write(file, before.trim_end()) {
        Ok(()) => report.done.push(format!("{name} = {}", was.join(" "))),
        Err(e) => report.left.push(format!("{name} = {}: {e}", was.join(" "))),
    }
}

fn pair(files: &[std::path::PathBuf; 2], before: [u64; 2], set: &[Vec<u64>; 2], report: &mut Report) {
    let number = |file: &Path| words(file)?.first()?.parse::<u64>().ok();
    let names = files.each_ref().map(|file| name(file));
    let (Some(first), Some(second)) = (number(&files[0]), number(&files[1])) else {
        return report.left.push(format!("{} cannot be read", names[0]));
    };
    let now = [first, second];
    if now == before {
        return;
    }
    let ours = |i: usize| now[1 - i] == 0 && set[i].contains(&now[i]);
    if !ours(0) && !ours(1) {
        let [a, b] = &names;
        let message = format!("{a} is {first} and {b} {second}, which the run did not set: not restored (they were");
        return report.left.push(format!("{message} {} and {})", before[0], before[1]));
    }
    // Writing the one that counted sets the other to 0.
    let i = usize::from(before[0] == 0);
    match fs::write(&files[i], before[i].to_string()) {
        Ok(()) => report.done.push(format!("{} = {}", names[i], before[i])),
        Err(e) => report.left.push(format!("{} = {}: {e}", names[i], before[i])),
    }
}

fn cgroup(directory: &Path, made: Option<u64>, all: &[Change], report: &mut Report) {
    let Some(now) = inode(directory) else { return };
    let is_made_later =
        |change: &Change| matches!(change, Change::Cgroup { directory: other, inode: Some(_) } if other == directory);
    // The entry before a change is harmless once the entry after it is removed.
    if made.is_some_and(|made| made != now) || made.is_none() && all.iter().any(is_made_later) {
        return;
    }
    let begin = Instant::now();
    // Processes leave their cgroup a moment after they have ended.
    while let Err(e) = fs::remove_dir(directory) {
        if e.raw_os_error() != Some(libc::EBUSY) || begin.elapsed() > Duration::from_secs(2) {
            return report.left.push(format!("cgroup {}: {e}", directory.display()));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    report.done.push(format!("removed the cgroup {}", directory.display()));
}

/// The tracer is the run's if it traces a function that the run does, or has been stopped with the run's buffer.
fn tracer(tracefs: &Path, buffer: &str, on: &str, report: &mut Report) {
    let read = |file: &str| fs::read_to_string(tracefs.join(file)).unwrap_or_default();
    let current = read("current_tracer");
    let filter = read("set_ftrace_filter");
    let is_ours = filter.lines().any(|line| crate::workload::PURGES.iter().any(|name| line.starts_with(name)));
    let traces = current.trim() == "function_graph" && is_ours;
    let size = crate::workload::PURGE_BUFFER;
    let prepared = current.trim() == "nop" && (is_ours || buffer != size && read("buffer_size_kb").trim() == size);
    if !traces && !prepared {
        return;
    }
    let back = [("current_tracer", "nop"), ("set_ftrace_filter", ""), ("buffer_size_kb", buffer), ("tracing_on", on)];
    for (file, value) in back.into_iter().chain([("trace", "")]) {
        let path = tracefs.join(file);
        let open = OpenOptions::new().write(true).truncate(true).open(&path);
        if let Err(e) = open.and_then(|mut file| file.write_all(value.as_bytes())) {
            report.left.push(format!("{} = {value}: {e}", path.display()));
        }
    }
    report.done.push("the machine's function tracer is off".into());
}

fn module(name: &str, report: &mut Report) {
    let own = name.replace('-', "_");
    if !Path::new("/sys/module").join(&own).join("refcnt").exists() {
        return;
    }
    let Ok(text) = std::ffi::CString::new(own) else { return };
    // SAFETY: the kernel reads the name up to its NUL.
    if unsafe { libc::syscall(libc::SYS_delete_module, text.as_ptr(), libc::O_NONBLOCK) } == 0 {
        report.done.push(format!("unloaded the module {name}"));
    } else {
        report.left.push(format!("module {name} was not unloaded: {}", io::Error::last_os_error()));
    }
}

/// A file, or a folder with all that is in it; links are not followed.
fn temporary(path: &Path, report: &mut Report) {
    let removed = match fs::symlink_metadata(path) {
        Err(_) => return,
        Ok(of) if of.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
    };
    match removed {
        Ok(()) => report.done.push(format!("removed {}", path.display())),
        Err(e) => report.left.push(format!("{}: {e}", path.display())),
    }
}

/// A sysctl by the kernel's name, another file by its path.
fn name(file: &Path) -> String {
    match file.strip_prefix("/proc/sys") {
        Ok(below) => below.display().to_string().replace('/', "."),
        Err(_) => file.display().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn file(folder: &Path, name: &str, text: &str) -> PathBuf {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        path
    }

    #[test]
    fn values_of_the_run_are_restored_and_those_of_others_are_not() {
        let root = tempfile::tempdir().unwrap();
        let list = file(root.path(), "ours", "9\t32\t0\n");
        let other = file(root.path(), "other", "5\n");
        let same = file(root.path(), "same", "1\n");
        let change = |file: &Path, before: &str, set: u64| Change::Value {
            file: file.into(),
            before: before.into(),
            set: vec![set],
        };
        let report = all(&[change(&list, "256\t32\t0\n", 9), change(&other, "1\n", 0), change(&same, "1\n", 0)]);
        assert_eq!(fs::read_to_string(&list).unwrap(), "256\t32\t0");
        assert_eq!(fs::read_to_string(&other).unwrap(), "5\n");
        assert_eq!((report.done.len(), report.left.len()), (1, 1), "{report:?}");
        assert!(report.left[0].contains("is 5, which the run did not set: not restored (it was 1)"), "{report:?}");
    }

    #[test]
    fn of_a_pair_the_one_that_counted_is_written() {
        let root = tempfile::tempdir().unwrap();
        let files = [file(root.path(), "bytes", "8192\n"), file(root.path(), "ratio", "0\n")];
        let change = |before| Change::Pair { files: files.clone(), before, set: [vec![8192], vec![]] };
        assert!(all(&[change([0, 20])]).left.is_empty());
        // The kernel would set the other to 0.
        assert_eq!(
            (fs::read_to_string(&files[0]).unwrap().as_str(), fs::read_to_string(&files[1]).unwrap().as_str()),
            ("8192\n", "20")
        );
        fs::write(&files[1], "30").unwrap();
        let report = all(&[change([0, 20])]);
        assert!(report.left[0].contains("did not set"), "{report:?}");
    }

    #[test]
    fn only_the_own_cgroup_and_processes_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let (ours, theirs) = (root.path().join("ours"), root.path().join("theirs"));
        fs::create_dir(&ours).unwrap();
        fs::create_dir(&theirs).unwrap();
        let child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let start = start_of(child.id()).unwrap();
        let made = |directory: &Path, inode| Change::Cgroup { directory: directory.into(), inode };
        let changes = [
            made(&ours, None),
            made(&ours, inode(&ours)),
            made(&theirs, Some(inode(&theirs).unwrap() + 1)),
            Change::Worker { pid: std::process::id(), start: 1 },
            Change::Worker { pid: child.id(), start },
        ];
        let report = all(&changes);
        assert!(!ours.exists() && theirs.exists(), "{report:?}");
        let ended = std::process::Command::new("true").status().is_ok() && start_of(child.id()).is_none();
        assert!(ended && report.left.is_empty(), "{report:?}");
        let mut child = child;
        assert!(!child.wait().unwrap().success());
        assert_eq!(all(&changes), Report::default(), "a second time there is nothing to do");
    }

    #[test]
    fn folders_are_removed_with_their_files() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("mmtwin-run-1");
        fs::create_dir(&folder).unwrap();
        file(&folder, "seed-1.mmt", "");
        all(&[Change::Temporary { path: folder.clone() }]);
        assert!(!folder.exists());
    }
}
