//! Copied tracefs directories: raw pages of every CPU and the texts that explain them.

use super::record::tracefs;
use super::support::{V6, events, mmtwin, ok, root, scratch};
use mmtwin_trace::dat::{self, Content};
use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

fn put(path: PathBuf, bytes: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().expect("a parent")).and_then(|()| fs::write(path, bytes)).expect("a file");
}

/// Lays the sample recording out as the directory it was recorded from.
fn sample(top: &Path) {
    let bytes = fs::read(root().join(V6)).expect("the sample");
    let dat = dat::open("v6", &bytes).expect("a trace.dat");
    let meta = &dat.meta;
    let texts = [
        ("events/header_page", meta.header_page.as_bytes()),
        ("events/header_event", meta.header_event.as_bytes()),
        ("saved_cmdlines", &meta.cmdlines),
        ("printk_formats", &meta.printk),
        ("kallsyms", &meta.kallsyms),
    ];
    texts.iter().for_each(|(name, text)| put(top.join(name), text));
    for format in &meta.formats {
        let event = format.text.lines().next().and_then(|l| l.strip_prefix("name: ")).expect("a name");
        put(top.join("events").join(&format.system).join(event).join("format"), &format.text);
    }
    for buffer in &dat.buffers {
        let Content::Pages(cpus) = &buffer.content else { panic!("a sample of pages") };
        for cpu in cpus {
            let (mut pages, mut bytes) = (cpu.stored.pages(buffer.page_size as usize), Vec::new());
            while let Some(run) = pages.next_chunk().expect("pages") {
                bytes.extend_from_slice(&run);
            }
            put(top.join(format!("per_cpu/cpu{}/trace_pipe_raw", cpu.cpu)), bytes);
        }
    }
}

#[test]
fn the_report_of_raw_pages_is_that_of_the_trace_dat() {
    let scratch = scratch();
    let top = scratch.path().join("tracing");
    sample(&top);
    let report = |input: &Path| {
        let json = ok([Path::new("report"), input, Path::new("--format"), Path::new("json")]);
        // Columns have the name of the input, and without the kernel's release nobody knows what it could not have.
        let json = json.replace(input.to_str().expect("UTF-8"), "INPUT").replace("not-in-kernel", "not-recorded");
        let mut report: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        report["inputs"] = serde_json::Value::Null;
        report
    };
    let file = Path::new(V6);
    assert_eq!(report(&top), report(file));
    let said = mmtwin([Path::new("report"), scratch.path()]).err;
    assert!(said.contains(": reading the pages of tracing/per_cpu\n"), "{said}");
    assert_eq!(events(&ok([Path::new("script"), &top])), events(&ok([Path::new("script"), file])));
    // On to a trace.dat, and from a tar archive of the directory.
    let dat = scratch.path().join("out.dat");
    ok([Path::new("convert"), &top, Path::new("-o"), &dat]);
    assert_eq!(report(&dat), report(file));
    let tar = scratch.path().join("t.tar");
    let packed = Command::new("tar").arg("cf").arg(&tar).arg("-C").arg(scratch.path()).arg("tracing").status();
    assert!(packed.expect("tar").success());
    assert_eq!(report(&tar), report(file));
}

#[test]
fn what_raw_pages_lack_is_an_error_with_the_file() {
    let scratch = scratch();
    let top = scratch.path().join("tracing");
    sample(&top);
    let header = top.join("events/header_page");
    put(header.clone(), "");
    for verb in ["report", "script"] {
        let run = mmtwin([Path::new(verb), &top]);
        assert_eq!((run.status, run.out.len()), (1, 0));
        assert!(run.err.contains(header.to_str().expect("UTF-8")) && run.err.contains("`cat`"), "{}", run.err);
    }
}

/// An own instance, removed at the end.
struct Instance(PathBuf);

impl Instance {
    fn set(&self, file: &str, value: &str) {
        fs::write(self.0.join(file), value).unwrap_or_else(|e| panic!("{file}: {e}"));
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// Copies a file as `cat` does: with large reads until there is no more.
fn copy(from: &Path, to: PathBuf) {
    let mut file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(from).expect("a file of tracefs");
    let (mut bytes, mut run) = (Vec::new(), vec![0; 1 << 17]);
    while let Ok(n @ 1..) = file.read(&mut run) {
        bytes.extend_from_slice(&run[..n]);
    }
    put(to, bytes);
}

#[test]
fn a_copied_instance_gives_the_text_of_its_trace() {
    let test = "a_copied_instance_gives_the_text_of_its_trace";
    let Some(tracefs) = tracefs(test) else { return };
    let instance = Instance(tracefs.join(format!("instances/mmtwin-raw-{}", std::process::id())));
    fs::create_dir(&instance.0).expect("an instance");
    instance.set("tracing_on", "0");
    instance.set("trace_clock", "mono");
    let traced = ["sched/sched_process_fork", "sched/sched_process_exec", "sched/sched_wakeup"];
    traced.iter().for_each(|event| instance.set(&format!("events/{event}/enable"), "1"));
    instance.set("tracing_on", "1");
    for _ in 0..50 {
        assert!(Command::new("true").status().expect("true").success());
    }
    instance.set("tracing_on", "0");
    let refused = mmtwin([Path::new("report"), &instance.0]);
    assert!(refused.status == 1 && refused.err.contains("a live tracefs"), "{}", refused.err);
    let mut text = String::new();
    File::open(instance.0.join("trace")).and_then(|mut f| f.read_to_string(&mut text)).expect("the text");
    let scratch = scratch();
    let top = scratch.path().join("copy");
    for name in ["trace_clock", "buffer_subbuf_size_kb", "events/header_page", "events/header_event"] {
        if instance.0.join(name).exists() {
            copy(&instance.0.join(name), top.join(name));
        }
    }
    for event in traced {
        let format = format!("events/{event}/format");
        copy(&instance.0.join(&format), top.join(&format));
    }
    // Names of tasks are kept by the top directory only.
    copy(&tracefs.join("saved_cmdlines"), top.join("saved_cmdlines"));
    for cpu in fs::read_dir(instance.0.join("per_cpu")).expect("CPUs").flatten() {
        let to = top.join("per_cpu").join(cpu.file_name());
        copy(&cpu.path().join("stats"), to.join("stats"));
        copy(&cpu.path().join("trace_pipe_raw"), to.join("trace_pipe_raw"));
    }
    let expected = events(&text);
    assert!(expected.lines().count() >= 100, "{expected}");
    let found = ok([Path::new("script"), &top]);
    // Without the names of tasks: the kernel forgets some while other tests trace.
    let plain = |line: &str| {
        let (task, rest) = line.split_once(" [").expect("a line of an event");
        format!("{} [{rest}", task.rsplit('-').next().unwrap_or_default())
    };
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(plain(found), plain(expected));
    }
    assert_eq!(found.lines().count(), expected.lines().count());
}
