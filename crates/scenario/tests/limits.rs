//! Everything that a scenario multiplies, nests, includes or reads has a limit, which the message names.

use crate::memory::bounded;
use mmtwin_scenario::{load, parse};
use std::fs;
use std::path::Path;
use std::process::Command;

const MACHINE: &str = "[machine]\npreset = \"broadwell-2s\"\n";
const KERNEL: &str = "[kernel]\nrelease = \"6.1\"\n";

/// All messages about a text, with overrides.
fn faults(text: &str, sets: &[String]) -> String {
    bounded(&text.chars().take(200).collect::<String>(), || match parse("s.toml", text, Path::new(""), sets) {
        Ok(_) => "no fault".into(),
        Err(faults) => faults.to_string(),
    })
}

fn of(text: &str) -> String {
    faults(&format!("{MACHINE}{KERNEL}{text}"), &[])
}

/// A process with a region `h`, a key, and a phase.
fn process(key: &str, phase: &str) -> String {
    let region = "[[process.region]]\nname = \"h\"\nsize = \"1 MiB\"\n";
    of(&format!("[[process]]\nname = \"a\"\n{key}\n{region}{phase}"))
}

fn action(text: &str) -> String {
    process("", &format!("[[process.phase]]\n[[process.phase.action]]\n{text}"))
}

fn access(text: &str) -> String {
    let access = "[[process.phase.access]]\nregion = \"h\"\npattern = \"uniform\"\n";
    process("", &format!("[[process.phase]]\nduration = \"1 s\"\n{access}{text}"))
}

#[track_caller]
fn says(found: &str, expected: &str) {
    assert!(found.contains(expected), "{found}");
}

#[test]
fn products_are_named_with_their_limits() {
    says(
        &process("instances = { count = 1000000000, bound = false }", ""),
        "there are 1 to 1024 instances of a process",
    );
    let many =
        |n: usize, more: &str| (0..n).map(|i| format!("[[process]]\nname = \"p{i}\"\n{more}\n")).collect::<String>();
    says(&of(&many(17, "instances.count = 1024")), "17408 processes with their instances: there are at most 16384");
    says(&of(&many(3, "threads = 65535")), "196605 threads of all processes and instances: there are at most 131072");
    let phases = "[[process.phase]]\nduration = \"1 s\"\n".repeat(40);
    says(
        &of(&many(2, &format!("threads = 65535\n{phases}"))),
        "parts of all threads (their regions, phases, accesses and actions)",
    );
    let regions: String =
        (0..200).map(|i| format!("[[process.region]]\nname = \"r{i}\"\nsize = \"4 KiB\"\n")).collect();
    says(&of(&many(1, &format!("instances.count = 1024\n{regions}"))), "204800 regions of all processes and instances");
    says(&of(&many(600, "cpus = \"0-8191\"")), "more than 4194304 numbers in all lists");
    let large = "[[process.region]]\nname = \"r\"\nsize = \"128 TiB\"\n";
    says(&of(&many(1, &format!("instances.count = 64\n{large}"))), "there are at most 4096 TiB");
    says(
        &process(&"[[process.region]]\nname = \"x\"\nsize = \"4 KiB\"\n".repeat(2000), ""),
        "2001 regions of a process: there are at most 1024",
    );
    let nodes: String = (0..1024)
        .map(|i| format!("[[machine.node]]\nmemory = \"1 GiB\"\ncpus = \"{}-{}\"\n", i * 8, i * 8 + 7))
        .collect();
    says(
        &faults(&format!("{KERNEL}[machine]\nthreads_per_core = 1\n{nodes}"), &[]),
        "1024 nodes x 8192 CPUs are 8388608",
    );
}

#[test]
fn times_and_counts_have_products_that_fit() {
    says(&of("[run]\nduration = \"5124095 h\""), "5124095 h: the longest time is 8760 h (a year)");
    says(
        &of("[run]\nduration = \"8760 h\"\nsample = \"4 ms\"\n"),
        "7884000000 samples, one every 4 ms for 8760 h: there are at most 10000000",
    );
    says(
        &access("think = \"8760 h\"\ncount = 1000000"),
        "1000000 times 8760 h of think and sleep is more than 292 years",
    );
    says(&access("count = 9223372036854775807"), "a count is at most 9007199254740992");
    let phases = "[[process.phase]]\nduration = \"8000 h\"\n".repeat(2);
    says(&process("", &phases), "its phases last more than 8760 h (a year) together");
    says(&process("start = \"5124095 h\"", ""), "the longest time is 8760 h");
    says(&action("kind = \"sleep\"\ntime = \"5124095 h\""), "the longest time is 8760 h");
    says(
        &action("kind = \"page-loop\"\norder = 10\nhold = 4294967296\ncount = 1"),
        "4294967296 allocations of 1024 pages are more than can be addressed",
    );
    let test = "kind = \"vmalloc-test\"\ntests = [\"fix_size_alloc_test\"]\n";
    says(&action(&format!("{test}loops = 9223372036854775807")), "loops x 1 runs x 1 tests are");
    says(&action(&format!("{test}loops = 100000000000\npages = 4294967295")), "at most 9007199254740992");
}

#[test]
fn figures_of_a_machine_fit_into_64_bits() {
    let machine = |text: &str| faults(&format!("{MACHINE}{text}\n{KERNEL}"), &[]);
    says(&machine("cost.page_fault = \"1000 s\""), "1000 s: a cost is at most 1 s");
    says(&machine("line.handoff.same_core = \"18446744 s\""), "a cost is at most 1 s");
    says(&machine("disk.bandwidth = \"1 B/s\""), "1 B/s: a bandwidth is 1 kB/s to 1000 TB/s");
    says(&machine("disk.latency = \"5124095 h\""), "a request takes at most 100 s");
    says(&machine("disk.queue_depth = 4294967295"), "a queue takes at most 65536 requests");
    says(&machine("disk.bios_per_page = 65"), "s.toml:3:22: a page has at most 64 bios");
    says(&machine("disk.journal_blocks = 65537"), "a commit has at most 65536 blocks");
    says(&machine("cost.rcu_grace_ticks = 1001"), "a grace period has at most 1000 ticks");
    says(&machine("worker.heap_pages = 4097"), "`heap_pages` is at most 4096 pages");
    says(&machine("worker.heap_pages_per_thread = 65"), "`heap_pages_per_thread` is at most 64 pages");
    says(&machine("worker.heap_absent_pages = 4097"), "`heap_absent_pages` is at most 4096 pages");
    says(&machine("worker.heap_hot_pages = 218"), "s.toml:3:25: a thread has 217 pages of the heap at most");
    for key in ["disk.bios_per_page", "disk.journal_blocks", "cost.rcu_grace_ticks", "worker.heap_pages"] {
        says(&machine(&format!("{key} = 0")), &format!("s.toml:3:{}: ", key.len() + 4));
    }
    says(&machine("cpu.frequency = \"18446744073 GHz\""), "a frequency is at most 1000 GHz");
    says(&machine("memory.local = [[0, 1], [1, 1e300]]"), "multiples up to 1000000");
    let kernel = |text: &str| of(text);
    says(
        &kernel("page_alloc.min_free_kbytes_max = 9223372036854775807"),
        "`page_alloc.min_free_kbytes_max` is at most",
    );
    says(&kernel("vmalloc.lazy_max_pages = 9223372036854775807"), "`vmalloc.lazy_max_pages` is at most");
    says(&kernel("numa_balancing.scan_period_max_ms = 4294967295"), "`numa_balancing.scan_period_max_ms` is at most");
}

#[test]
fn sysctls_have_the_range_of_the_kernel_in_keys_and_in_actions() {
    let key = |name: &str, value: &str| of(&format!("[kernel.sysctl]\n\"{name}\" = {value}\n"));
    let write = |name: &str, value: &str| action(&format!("kind = \"sysctl\"\nname = \"{name}\"\nvalue = {value}"));
    for (name, value, message) in [
        ("vm.swappiness", "201", "vm.swappiness is 0 to 200"),
        ("vm.min_free_kbytes", "2147483648", "vm.min_free_kbytes is 0 to 2147483647"),
        ("vm.min_free_kbytes", "1000000000", "vm.min_free_kbytes = 1000000000 is more than the machine has"),
        ("vm.watermark_scale_factor", "0", "vm.watermark_scale_factor is 1 to 3000"),
        ("vm.numa_stat", "9007199254740993", ""),
        ("vm.percpu_pagelist_high_fraction", "7", "vm.percpu_pagelist_high_fraction is 0 or 8 to 2147483647"),
        ("vm.dirty_bytes", "4096", "vm.dirty_bytes is 0 or 8192 to"),
        ("vm.laptop_mode", "2147483647", "vm.laptop_mode is 0 to 8589934"),
        ("kernel.numa_balancing", "4", "kernel.numa_balancing is 0 to 3"),
    ] {
        for found in [key(name, value), write(name, value)] {
            assert_ne!(found, "no fault", "{name} = {value}");
            says(&found, message);
        }
    }
    says(&write("vm.dirty_bytes", "0"), "vm.dirty_bytes is not written as 0: writing vm.dirty_ratio has that effect");
    assert_eq!(write("vm.min_free_kbytes", "67584"), "no fault");
    let old = format!("{MACHINE}[kernel]\nrelease = \"4.19\"\n[kernel.sysctl]\n\"vm.watermark_scale_factor\" = 3000\n");
    says(&faults(&old, &[]), "vm.watermark_scale_factor is 1 to 1000");
}

#[test]
fn presets_are_regular_files_whose_text_is_not_shown_unless_it_is_ours() {
    let folder = tempfile::tempdir().expect("a folder");
    let preset = |name: &str| {
        let scenario = folder.path().join("s.toml");
        fs::write(&scenario, format!("[machine]\npreset = \"{name}\"\n{KERNEL}")).expect("a file");
        bounded(name, || load(&scenario, &[]).expect_err("a fault").to_string())
    };
    says(&preset("/dev/zero"), "/dev/zero: is no regular file");
    says(&preset("/tmp/"), "is no regular file");
    // Reading it would wait for the kernel's next message.
    says(&preset("/proc/kmsg"), "/proc/kmsg: is empty");
    let fifo = folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo").success());
    says(&preset("./fifo"), "is no regular file");
    fs::write(folder.path().join("large.toml"), "#".repeat(5 << 20)).expect("a file");
    says(&preset("large.toml"), "is longer than 4 MiB: no file of this kind is");
    for secret in
        ["root:$6$S3CRET:19000:0:99999:7:::\n", "password = \"S3CRET\"\n", "S3CRET\n", "[client]\nS3CRET = S3CRET\n"]
    {
        fs::write(folder.path().join("shadow"), secret).expect("a file");
        let found = preset("./shadow");
        assert!(!found.contains("S3CRET"), "{found}");
        says(&found, "shadow");
        let own = load(&folder.path().join("shadow"), &[]).expect_err("a fault").to_string();
        assert!(!own.contains("S3CRET"), "{own}");
    }
    fs::write(folder.path().join("mine.toml"), "[machine]\nline.atomic = 6\n").expect("a file");
    says(&preset("mine.toml"), "2 | line.atomic = 6");
}

#[test]
fn files_that_include_each_other() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir(folder.path().join("x")).expect("a folder");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a file");
    write("s.toml", &format!("{MACHINE}[kernel]\nrelease = \"./a.toml\"\n"));
    write("a.toml", "base = \"./x/../b.toml\"\n[kernel]\n");
    write("b.toml", "base = \"./x/../a.toml\"\n[kernel]\n");
    let found = bounded("bundles", || load(&folder.path().join("s.toml"), &[]).expect_err("a fault").to_string());
    says(&found, "more than 8 files build on each other, or this one on itself");
    write("a.toml", "base = \"a.toml\"\n[kernel]\n");
    let found = load(&folder.path().join("s.toml"), &[]).expect_err("a fault").to_string();
    says(&found, "a.toml");
}

#[test]
fn texts_that_are_deep_long_or_wrong_all_over() {
    let whole = |text: &str| faults(&format!("{text}\n{MACHINE}{KERNEL}"), &[]);
    for deep in [
        format!("x = {}", "[".repeat(100_000)),
        format!("x = {}{}", "[".repeat(60), "]".repeat(60)),
        format!("x = {}1{}", "{a=".repeat(10_000), "}".repeat(10_000)),
        format!("{}a = 1", "a.".repeat(10_000)),
        format!("[{}a]", "a.".repeat(10_000)),
        format!("{}x = 1", "[[a.a.a.a]]\n".repeat(10_000)),
    ] {
        assert_ne!(whole(&deep), "no fault");
    }
    // More faults than a user can read, each of which would be searched for in a long text.
    let found = of(&"[[process]]\nthredas = 4\n".repeat(20_000));
    assert!(found.lines().count() < 700, "{} lines", found.lines().count());
    says(&found, "there may be more faults: correct these first");
    let found = of(&format!("[run]\n{}", (0..20_000).map(|i| format!("k{i} = 1\n")).collect::<String>()));
    says(&found, "only the first 100 faults are listed");
    // A line of a megabyte is shown where it is wrong.
    let found = whole(&format!("title = \"{}\"\ntitel = 1", "x".repeat(1 << 20)));
    assert!(found.len() < 1000, "{} bytes", found.len());
    let found = of(&format!("[run]\nevents = [{}]", "\"*\", ".repeat(100_000)));
    says(&found, "100000 patterns: there are at most 1024");
    says(
        &process(
            &format!(
                "instances.count = 1000\n[[process.phase]]\nname = \"{}\"\nduration = \"1 s\"",
                "n".repeat(1 << 20)
            ),
            "",
        ),
        "a name has at most 255 bytes",
    );
    // The longest message about one word.
    let found = of(&format!("[[process]]\nname = \"a\"\npolicy = \"{}\"", "z".repeat(1 << 20)));
    assert!(found.len() < 2000, "{} bytes", found.len());
}

#[test]
fn numbers_that_no_type_holds() {
    for (text, message) in [
        ("seed = 9223372036854775808", "the number is too large"),
        ("seed = -1", "expected an integer from 0"),
        ("seed = 1.5", "expected an integer from 0"),
        ("seed = nan", "the number is infinite or none"),
        ("seed = 1e999", "the number is infinite or none"),
        ("buffer = \"1e30 GiB\"", "has no unit of size"),
        ("buffer = \"99999999999 TiB\"", "is too large"),
        ("sample = \"99999999999999999999 ns\"", "is too large"),
        ("duration = \"-1 s\"", "is no time"),
        ("duration = \"inf s\"", "is no time"),
    ] {
        says(&of(&format!("[run]\n{text}\n")), message);
    }
}

#[test]
fn thousands_of_overrides() {
    let text = format!("{MACHINE}{KERNEL}[[process]]\nname = \"a\"\n");
    let sets: Vec<String> = (0..10_000).map(|i| format!("run.seed={i}")).collect();
    assert_eq!(faults(&text, &sets), "no fault");
    let sets: Vec<String> = (0..10_000).map(|i| format!("a{i}.b.c.d=[1, 2]")).collect();
    says(&faults(&text, &sets), "only the first 100 faults are listed");
    let sets: Vec<String> = (0..10_000).map(|i| format!("{i}")).collect();
    says(&faults(&text, &sets), "only the first 100 faults are listed");
    says(&faults(&text, &[format!("{}a=1", "a.".repeat(100_000))]), "a key of so many parts means nothing here");
}
