//! Processes with regions, phases, accesses and actions.

use super::{Choices, Known};
use std::fmt::Write;

/// What a process's parts must know of it.
struct Own {
    threads: u64,
    regions: Vec<Region>,
}

struct Region {
    name: String,
    anon: bool,
    private: bool,
    named: bool,
}

/// Kind and size of a file that several processes use.
pub(super) fn shared_file(choices: &mut Choices<'_>, known: &Known) -> String {
    format!(
        "kind = \"{}\"\nsize = \"{} KiB\"\nfile = \"common\"\n",
        choices.of(&["file", "shmem"]),
        size(choices, known)
    )
}

/// KiB around what the machine has.
fn size(choices: &mut Choices<'_>, known: &Known) -> u64 {
    let (parts, of) =
        choices.of(&[(1, 8), (1, 4), (1, 2), (3, 4), (1, 1), (5, 4), (2, 1), (1, 64), (4, 1), (1, 1 << 16)]);
    (known.memory * parts / of).max(4)
}

pub(super) fn process(choices: &mut Choices<'_>, known: &Known, file: Option<&str>, number: u64, text: &mut String) {
    let threads = choices.of(&[1, 1, 1, 2, 3, 4, 8]);
    let _ = writeln!(text, "[[process]]\nname = \"p{number}\"\nthreads = {threads}");
    let bound = choices.chance(1, 12) && known.filled.iter().all(|filled| *filled) && known.cpus >= known.nodes;
    let many = choices.chance(1, 12);
    if many {
        let _ = writeln!(text, "instances = {{ count = {}, bound = {bound} }}", choices.number(1, 3));
    }
    if !(many && bound) {
        if choices.chance(1, 4) {
            let last = choices.number(0, known.cpus - 1);
            let _ = writeln!(text, "cpus = \"{}-{last}\"", choices.number(0, last));
        }
        if choices.chance(1, 4) {
            let _ = writeln!(text, "policy = \"{}\"", known.policy(choices));
        }
    }
    if choices.chance(1, 4) {
        let _ = writeln!(text, "pin = true");
    }
    if choices.chance(1, 2) && !known.cgroups.is_empty() {
        let group = choices.number(0, known.cgroups.len() as u64 - 1);
        let _ = writeln!(text, "cgroup = \"{}\"", known.cgroups[group as usize]);
    }
    if choices.chance(1, 3) {
        let _ = writeln!(text, "start = \"{} us\"", choices.of(&[100u64, 1000, 35_000, 150_000]));
    }
    let mut own = Own { threads, regions: Vec::new() };
    for number in 0..choices.number(1, 3) {
        let shared = file.filter(|_| !many && choices.chance(1, 2));
        region(choices, known, &mut own, shared, number, text);
    }
    for number in 0..choices.number(1, 3) {
        phase(choices, known, &own, number, text);
    }
}

fn region(choices: &mut Choices<'_>, known: &Known, own: &mut Own, file: Option<&str>, number: u64, text: &mut String) {
    let name = format!("r{number}");
    let _ = writeln!(text, "[[process.region]]\nname = \"{name}\"");
    let kind = match file {
        Some(file) => {
            text.push_str(file);
            if file.contains("shmem") { "shmem" } else { "file" }
        }
        None => {
            let kind = choices.of(&["anon", "anon", "file", "shmem"]);
            let _ = writeln!(text, "kind = \"{kind}\"\nsize = \"{} KiB\"", size(choices, known));
            kind
        }
    };
    let private = choices.chance(1, 3);
    if private {
        text.push_str("sharing = \"private\"\n");
    }
    if choices.chance(1, 2) {
        text.push_str("populate = true\n");
    }
    if choices.chance(1, 6) {
        let _ = writeln!(text, "huge = \"{}\"", choices.of(&["madvise", "never", "default"]));
    }
    if choices.chance(1, 8) {
        let _ = writeln!(text, "policy = \"{}\"", known.policy(choices));
    }
    if choices.chance(1, 12) {
        text.push_str("locked = true\n");
    }
    if kind == "file" {
        for flag in ["exec = true\n", "temporary = true\n", "sparse = true\n"] {
            if choices.chance(1, 8) {
                text.push_str(flag);
            }
        }
    }
    own.regions.push(Region { name, anon: kind == "anon", private, named: file.is_some() });
}

fn phase(choices: &mut Choices<'_>, known: &Known, own: &Own, number: u64, text: &mut String) {
    let _ = writeln!(text, "[[process.phase]]");
    let timed = number > 0 || !choices.chance(1, 4);
    if timed {
        let _ = writeln!(
            text,
            "duration = \"{} us\"",
            choices.of(&[10_000u64, 10, 1000, 4000, 50_000, 200_000, 1_000_000])
        );
    }
    let (accesses, actions) = (choices.number(if timed { 0 } else { 1 }, 3), choices.of(&[0, 0, 0, 1, 2]));
    for _ in 0..accesses {
        access(choices, known, own, timed, text);
    }
    for _ in 0..actions {
        action(choices, known, own, timed, text);
    }
}

fn access(choices: &mut Choices<'_>, known: &Known, own: &Own, timed: bool, text: &mut String) {
    let region = &own.regions[choices.number(0, own.regions.len() as u64 - 1) as usize];
    let _ = writeln!(text, "[[process.phase.access]]\nregion = \"{}\"", region.name);
    let pattern = choices.of(&["sequential", "uniform", "strided", "zipf", "hot-cold"]);
    let _ = writeln!(text, "pattern = \"{pattern}\"");
    match pattern {
        "strided" => {
            let _ = writeln!(text, "stride = \"{} KiB\"", choices.of(&[4u64, 8, 64, 2048, 1 << 20]));
        }
        "zipf" => {
            let _ = writeln!(text, "skew = {}", choices.of(&["0.99", "0.1", "1.0", "3.0", "10.0"]));
        }
        "hot-cold" => {
            let shares = ["0.1", "0.0", "0.001", "0.5", "1.0"];
            let _ = writeln!(text, "hot = {}\naccess_share = {}", choices.of(&shares), choices.of(&shares));
        }
        _ => {}
    }
    let _ = writeln!(text, "write = {}", choices.of(&["0.5", "0.0", "0.1", "1.0"]));
    let think = choices.of(&[1000u64, 0, 1, 100, 2000, 100_000]);
    let _ = writeln!(text, "think = \"{think} ns\"");
    if choices.chance(1, 8) {
        let _ = writeln!(text, "sleep = \"{} us\"", choices.of(&[10u64, 1000, 20_000]));
    }
    if choices.chance(1, 8) {
        let _ = writeln!(text, "lines = {}", choices.of(&[2, 13, 64]));
    }
    if !region.anon && choices.chance(1, 4) {
        text.push_str("via = \"syscall\"\n");
    }
    let alone = region.private || own.threads == 1;
    if pattern == "sequential" && alone && !region.named && !known.balancing && choices.chance(1, 6) {
        text.push_str("recycle = true\n");
    } else if choices.chance(1, 8) {
        text.push_str("sharing = \"shared\"\n");
    }
    if choices.chance(1, 8) {
        let _ = writeln!(text, "threads = \"{}\"", choices.number(0, own.threads - 1));
    }
    if !timed || choices.chance(1, 3) {
        let _ = writeln!(text, "count = {}", choices.of(&[1000u64, 0, 1, 100, 20_000]));
    }
}

fn action(choices: &mut Choices<'_>, known: &Known, own: &Own, timed: bool, text: &mut String) {
    text.push_str("[[process.phase.action]]\n");
    let kind =
        choices.of(&["page-hog", "page-loop", "read", "high-order-alloc", "sysctl", "cpu-offline", "lookup", "sleep"]);
    let kind = match kind {
        "cpu-offline" if known.cpus < 2 => "sleep",
        "lookup" if known.by_zone() => "read",
        kind => kind,
    };
    let _ = writeln!(text, "kind = \"{kind}\"");
    let counted = !timed || choices.chance(2, 3);
    let gfp = ["GFP_KERNEL", "GFP_ATOMIC", "GFP_HIGHUSER_MOVABLE", "GFP_TRANSHUGE_LIGHT"];
    match kind {
        "page-hog" | "page-loop" => {
            let _ = writeln!(text, "order = {}\ngfp = \"{}\"", choices.of(&[0, 0, 1, 3, 4, 9, 10]), choices.of(&gfp));
            if kind == "page-loop" && choices.chance(1, 3) {
                let _ = writeln!(text, "hold = {}", choices.of(&[64u64, 1, 2, 5000]));
            }
            if choices.chance(1, 4) {
                let _ = writeln!(text, "rate = \"{} pages/s\"", choices.of(&[1000u64, 1, 200_000]));
            }
            // Sixteen CPUs that do nothing else for 2 s take the twin a minute, which is not a find.
            if counted || kind == "page-loop" {
                let _ = writeln!(text, "count = {}", choices.of(&[100u64, 0, 1, 2000, 20_000]));
            }
        }
        "high-order-alloc" => {
            let order = choices.of(&[9, 1, 3, 10]);
            let hard = choices.chance(1, 2);
            let _ =
                writeln!(text, "order = {order}\ncount = {}\ngfp_retry_mayfail = {hard}", choices.of(&[10u64, 1, 100]));
            let _ = writeln!(text, "interval = \"{} ms\"", choices.of(&[0u64, 1, 125]));
        }
        "read" => {
            let file = choices.of(&["vmstat", "numastat", "node-vmstat", "zoneinfo", "buddyinfo", "stat_refresh"]);
            let _ = writeln!(text, "file = \"{file}\"\ninterval = \"{} ms\"", choices.of(&[1u64, 10, 100]));
            if counted {
                let _ = writeln!(text, "count = {}", choices.of(&[10u64, 0, 1, 200]));
            }
        }
        "sysctl" => {
            let (name, values): (&str, &[u64]) = choices.of(&[
                ("vm.min_free_kbytes", &[64, 1024, 8192, 65536]),
                ("vm.watermark_scale_factor", &[10, 1, 1000, 3000]),
                ("vm.dirty_ratio", &[20, 0, 1, 100]),
                ("vm.dirty_background_ratio", &[10, 0, 100]),
                ("vm.dirty_bytes", &[0, 8192, 1 << 20]),
                ("vm.dirty_background_bytes", &[0, 4096, 1 << 20]),
                ("vm.dirty_expire_centisecs", &[3000, 0, 1]),
                ("vm.dirty_writeback_centisecs", &[500, 0, 1]),
                ("vm.stat_interval", &[1, 2]),
                ("vm.numa_stat", &[1, 0]),
            ]);
            let everywhere = name.ends_with("_bytes");
            let name = if everywhere || known.sysctls.iter().any(|has| has == name) { name } else { "vm.dirty_ratio" };
            let _ = writeln!(text, "name = \"{name}\"\nvalue = {}", choices.of(values));
        }
        "cpu-offline" => {
            let cpu = choices.number(0, known.cpus - 1);
            let _ = writeln!(text, "cpus = \"{cpu}\"");
            if choices.chance(1, 2) {
                let _ = writeln!(text, "[[process.phase.action]]\nkind = \"cpu-online\"\ncpus = \"{cpu}\"");
            }
            return;
        }
        "lookup" => {
            if counted {
                let _ = writeln!(text, "count = {}", choices.of(&[1000u64, 1, 20_000]));
            }
        }
        _ => {
            let _ = writeln!(text, "time = \"{} us\"", choices.of(&[1000u64, 1, 50_000]));
        }
    }
    if choices.chance(1, 6) {
        let _ = writeln!(text, "threads = \"{}\"", choices.number(0, own.threads - 1));
    }
}
