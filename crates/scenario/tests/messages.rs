//! Messages as users read them, for every kind of fault.

use mmtwin_scenario::parse;
use std::path::Path;

const MACHINE: &str = "[machine]\npreset = \"lab-4n\"\n";
const KERNEL: &str = "[kernel]\nrelease = \"6.1\"\n";

/// All messages about a text, with overrides.
fn faults(text: &str, sets: &[&str]) -> String {
    let sets: Vec<String> = sets.iter().map(|set| set.to_string()).collect();
    match parse("s.toml", text, Path::new(""), &sets) {
        Ok(scenario) => format!("no fault:\n{}", scenario.to_toml()),
        Err(faults) => faults.to_string(),
    }
}

/// First lines of the messages about a text on the lab machine.
fn lines(text: &str) -> Vec<String> {
    let text = format!("{MACHINE}{KERNEL}{text}");
    let all = faults(&text, &[]);
    all.lines().filter(|line| line.starts_with("s.toml") || line.starts_with("no fault")).map(str::to_string).collect()
}

/// The one message about a machine that is spelled out.
fn machine(text: &str) -> String {
    let all = faults(&format!("{KERNEL}[machine]\n{text}"), &[]);
    let first: Vec<&str> = all.lines().filter(|line| !line.starts_with(' ')).collect();
    first.join("\n")
}

#[test]
fn unknown_keys_have_place_excerpt_and_suggestion() {
    let text = format!("{MACHINE}{KERNEL}\n[[process]]\nname = \"a\"\nthredas = 4\n");
    let expected = "\
s.toml:8:1: unknown key `thredas` in `process[0]`
   |
 8 | thredas = 4
   | ^^^^^^^ did you mean `threads`?";
    assert_eq!(faults(&text, &[]), expected);
}

#[test]
fn all_faults_of_a_file_are_reported() {
    let text = "
[[process]]
name = 7
thredas = 4
[[process.region]]
name = \"heap\"
size = \"12 gigabytes\"
[[process]]
name = \"b\"
[[process.region]]
name = \"heap\"
size = 4096
kind = \"anonymous\"
[[process.phase]]
[[process.phase.access]]
region = \"heap\"
pattern = \"zipf\"
[run]
seed = -1
epochs = \"4 ms\"
";
    let expected = [
        "s.toml:7:8: expected a text in quotes, found the number 7",
        "s.toml:8:1: unknown key `thredas` in `process[0]`",
        "s.toml:11:8: `12 gigabytes` has no unit of size: use B, KiB, MiB, GiB, TiB, such as \"12 GiB\"",
        "s.toml:16:8: expected a size with its unit, such as \"12 GiB\", found the number 4096",
        "s.toml:17:8: unknown value \"anonymous\": expected one of \"anon\", \"file\", \"shmem\"",
        "s.toml:21:11: \"zipf\" needs `skew`",
        "s.toml:23:8: expected an integer from 0 to 9223372036854775807, found the number -1",
        "s.toml:24:1: unknown key `epochs` in `run`",
    ];
    assert_eq!(lines(text), expected);
}

#[test]
fn overrides_have_a_place_of_their_own() {
    let text = format!("{MACHINE}{KERNEL}[[process]]\nname = \"a\"\n");
    let expected = "\
--set 2: unknown key `numa_counter` in `kernel.vmstat`
   |
 1 | kernel.vmstat.numa_counter=off
   | ^^^^^^^^^^^^^^^^^^^^^^^^^^ did you mean `numa_counters`?";
    assert_eq!(faults(&text, &["run.seed=2", "kernel.vmstat.numa_counter=off"]), expected);
    let first = |set: &str| faults(&text, &[set]).lines().next().unwrap_or_default().to_string();
    assert_eq!(first("kernel.vmstat"), "--set 1: expected KEY=VALUE");
    assert_eq!(first("run..seed=1"), "--set 1: a part of the key is empty");
    assert_eq!(first("process.b.threads=1"), "--set 1: there is no `b` in this list, which has 1 elements (a)");
    assert_eq!(first("process.a.threads=0"), "--set 1: a process has 1 to 65535 threads");
    assert_eq!(first("run.seed=one"), "--set 1: expected an integer from 0 to 9223372036854775807, found \"one\"");
    assert_eq!(first("run.seed.x=1"), "--set 1: expected an integer from 0 to 9223372036854775807, found a table");
    assert_eq!(first("kernel.release=6.2"), "--set 1: there is no bundle \"6.2\"");
    // A sysctl has the same name as the table: one is found from the top, the other among the sysctls.
    assert_eq!(first("kernel.numa_balancing.scan_size_mb=64"), "no fault:");
    assert_eq!(first("kernel.sysctl.kernel.numa_balancing=0"), "no fault:");
    assert_eq!(first("kernel.sysctl.vm.numa_sta=0"), "--set 1: unknown key `vm.numa_sta` in `kernel.sysctl`");
    assert_eq!(first("machine.preset=lab-4m"), "--set 1: there is no preset \"lab-4m\"");
    assert_eq!(first("run.sample=[1"), "--set 1: TOML: unclosed array, expected `]`");
}

#[test]
fn toml_itself() {
    assert_eq!(
        faults("a = \n[", &[]).lines().next(),
        Some("s.toml:1:5: TOML: string values must be quoted, expected literal string")
    );
    assert!(faults("[machine]\n[machine]\n", &[]).starts_with("s.toml:2:2: TOML: duplicate key"));
    assert!(faults(&format!("x = {}", "[".repeat(500)), &[]).contains("recurs"));
    let big = lines("[run]\nseed = 99999999999999999999\n");
    assert_eq!(big, ["s.toml:6:8: the number is too large: whole numbers go up to 9223372036854775807"]);
    assert_eq!(lines("[[process]]\nname=\"a\"\nthreads = nan\n"), ["s.toml:7:11: the number is infinite or none"]);
}

#[test]
fn missing_tables_and_names() {
    let both = "s.toml: missing table [kernel]: it names a `release`\n\
                s.toml: missing table [machine]: it names a `preset`, or lists nodes";
    assert_eq!(faults("", &[]), both);
    let machine = faults(&format!("{KERNEL}[machine]\n"), &[]);
    assert_eq!(machine.lines().next(), Some("s.toml:3:1: missing key `node` in `machine`"));
    assert_eq!(lines("[[process]]\nthreads = 2\n"), ["s.toml:5:1: missing key `name` in `process[0]`"]);
    let bundle = faults(&format!("{MACHINE}[kernel]\nrelease = \"6.2\"\n"), &[]);
    assert!(bundle.starts_with("s.toml:4:11: there is no bundle \"6.2\""), "{bundle}");
    assert!(bundle.contains("did you mean \"6.1\"?"), "{bundle}");
    let number = faults(&format!("{MACHINE}[kernel]\nrelease = 6.1\n"), &[]);
    assert!(number.contains("s.toml:4:11: expected a text in quotes, found the number 6.1"), "{number}");
    assert!(number.contains("write \"6.1\""), "{number}");
    let preset = faults(&format!("{KERNEL}[machine]\npreset = \"nowhere.toml\"\n"), &[]);
    assert!(preset.starts_with("s.toml:4:10: nowhere.toml: No such file"), "{preset}");
}

#[test]
fn impossible_machines() {
    let two =
        "[[machine.node]]\ncpus = \"0-1\"\nmemory = \"1 GiB\"\n[[machine.node]]\ncpus = \"2-3\"\nmemory = \"1 GiB\"\n";
    let with = |text: &str| machine(&format!("{text}\n{two}"));
    assert_eq!(
        with("distance = [[10, 20, 20], [20, 10]]"),
        "s.toml:4:27: the distance matrix is not square: 2 rows, but 3 here".replace("27", "13")
    );
    assert_eq!(with("distance = [[10]]"), "s.toml:4:12: distances of 1 nodes, but the machine has 2");
    assert_eq!(with("distance = [[10, 20], [20, 11]]"), "s.toml:4:28: the distance of node 1 to itself is 10, not 11");
    assert_eq!(with("distance = [[10, 20], [21, 10]]"), "s.toml:4:24: 21 from node 1 to 0, but 20 from 0 to 1");
    assert_eq!(with("distance = [[10, 9], [9, 10]]").lines().count(), 2);
    assert!(with("distance = [[10, 20], [21, 10]]\nasymmetric = true").starts_with("no fault"));
    assert_eq!(with("threads_per_core = 0"), "s.toml:4:20: a core has 1 to 8 threads");
    assert_eq!(with("threads_per_core = 4").lines().count(), 2);
    assert_eq!(with("possible_cpus = 3"), "s.toml:4:17: possible CPUs are at least the 4 there are and at most 8192");
    assert_eq!(with("memory.latency = [[\"80 ns\"]]"), "s.toml:4:18: a matrix for 2 nodes has 2 rows of 2 columns");
    let by_distance = "memory.latency = { 10 = \"80 ns\", 9 = \"70 ns\" }";
    assert_eq!(with(by_distance), "s.toml:4:38: `9` is no distance: they are 10 to 254");
    let three = "distance = [[10, 99], [99, 10]]";
    assert!(with(three).ends_with("there is no figure for nodes at distance 99"));
    assert_eq!(with("line.handoff.same_socket = \"0 ns\""), "s.toml:4:28: `line.handoff.same_socket` is above 0");

    let node = |cpus: &str, memory: &str| format!("[[machine.node]]\ncpus = \"{cpus}\"\nmemory = \"{memory}\"\n");
    let nodes = |nodes: &[(&str, &str)]| machine(&nodes.iter().map(|(c, m)| node(c, m)).collect::<String>());
    assert_eq!(nodes(&[("0-3", "1 GiB"), ("2-5", "1 GiB")]), "s.toml:8:8: CPU 2-3 are in two nodes: 0 and 1");
    assert_eq!(nodes(&[("0-3", "1 GiB"), ("6", "1 GiB")]), "s.toml:4:1: CPU 4-5 are in no node");
    assert_eq!(nodes(&[("0-3", "0 B"), ("4", "0 B")]), "s.toml:4:1: no node has memory");
    assert_eq!(nodes(&[("", "1 GiB"), ("", "1 GiB")]), "s.toml:4:1: no node has a CPU");
    assert_eq!(nodes(&[("0", "1 GiB"), ("", "0 B")]), "s.toml:7:1: node 1 has neither CPUs nor memory");
    assert_eq!(nodes(&[("0-3,2", "1 GiB")]), "s.toml:5:8: 2 is listed twice");
    assert_eq!(nodes(&[("3-0", "1 GiB")]), "s.toml:5:8: range `3-0` ends before it begins");
    assert_eq!(nodes(&[("0-99999999999", "1 GiB")]), "s.toml:5:8: `99999999999` is too large: numbers go up to 8191");
    assert_eq!(
        nodes(&[("0", "16777216 TiB")]),
        "s.toml:6:10: `16777216 TiB` is too large: the largest size is 16777215 TiB"
    );
    assert_eq!(nodes(&[("0", "8192 TiB")]), "s.toml:4:1: more memory than a machine can address: 4096 TiB in all");
    let with_hole = "s.toml:4:1: more memory than a machine can address: 4096 TiB less 1 GiB in all";
    assert_eq!(nodes(&[("0", "4096 TiB")]), with_hole);
    assert_eq!(nodes(&[("0", "5000 B")]), "s.toml:6:10: 5000 B must be an integer number of pages of 4 KiB");
    assert_eq!(nodes(&[("0", "0.3 B")]), "s.toml:6:10: `0.3 B` must be an integer number of B");
}

#[test]
fn parameters_of_a_design() {
    let vmstat = |text: &str| lines(&format!("[kernel.vmstat]\n{text}")).join("\n");
    assert_eq!(vmstat("threshold = 0"), "s.toml:6:13: a threshold of 0 would never let a counter stay on its CPU");
    assert_eq!(vmstat("threshold = 5"), "s.toml:6:13: numa_counters = \"events\" has no threshold");
    assert_eq!(
        vmstat("overstep = true"),
        "s.toml:6:12: only designs with signed differentials overstep, not \"events\""
    );
    let wide = "s.toml:7:13: numa_counters = \"zone-s8\" holds thresholds up to 126, not 256";
    assert_eq!(vmstat("numa_counters = \"zone-s8\"\nthreshold = 256"), wide);
    let unknown = "s.toml:6:17: unknown value \"zone-s9\": expected one of \"zone-s8\", \"zone-s16\", \"separate-s8\", \
                   \"separate-u16\", \"events\", \"off\"";
    assert_eq!(vmstat("numa_counters = \"zone-s9\""), unknown);
    let purge = lines("[kernel.vmalloc]\npurge_accounting = \"per-list\"\n");
    assert_eq!(purge, ["s.toml:6:20: unknown value \"per-list\": expected \"per-area\" or \"batched\""]);
    assert_eq!(
        lines("[kernel.numa_balancing]\nscan_size_mb = 0\n"),
        ["s.toml:6:16: 1 to 1048576 MB are scanned at once"]
    );
    assert_eq!(
        lines("[kernel.sysctl]\n\"vm.defrag_mode\" = 0\n"),
        ["s.toml:6:20: kernel 6.1 has no sysctl vm.defrag_mode"]
    );
    assert_eq!(lines("[kernel.sysctl]\n\"vm.swappiness\" = 201\n"), ["s.toml:6:19: vm.swappiness is 0 to 200"]);
}

#[test]
fn a_parameter_of_the_bundle_is_dropped_for_a_design_without_it() {
    let text = format!("{MACHINE}[kernel]\nrelease = \"4.13\"\n");
    let sets = ["kernel.vmstat.numa_counters=off".to_string()];
    let scenario = parse("s.toml", &text, Path::new(""), &sets).expect("overstep of the bundle is dropped");
    assert!(!scenario.kernel.vmstat.overstep);
}

#[test]
fn workloads_that_cannot_run() {
    let process = |text: &str| lines(&format!("[[process]]\nname = \"a\"\n{text}")).join("\n");
    assert_eq!(process("cpus = \"6-9\""), "s.toml:7:8: the machine's CPUs are 0 to 7");
    assert_eq!(process("policy = \"bind:0-4\""), "s.toml:7:10: there is no node 4: the machine's nodes are 0 to 3");
    assert_eq!(
        process("policy = \"bind\""),
        "s.toml:7:10: policy `bind` needs nodes, such as `bind:0-3` or `bind:all`"
    );
    assert_eq!(process("cgroup = \"/web\""), "s.toml:7:10: there is no cgroup /web");
    assert_eq!(process("[[process]]\nname = \"a\""), "s.toml:8:8: there is another process \"a\"");
    let phase =
        |text: &str| process(&format!("[[process.region]]\nname = \"h\"\nsize = \"1 MiB\"\n[[process.phase]]\n{text}"));
    assert_eq!(phase(""), "s.toml:10:1: the phase has nothing to do and no `duration`");
    let endless = "s.toml:10:1: the phase never ends: give it a `duration`, or a `count` to everything in it";
    assert_eq!(phase("[[process.phase.action]]\nkind = \"page-loop\""), endless);
    assert_eq!(phase("[[process.phase.action]]\nkind = \"module-cycle\"\nname = \"xfs\""), endless);
    assert_eq!(phase("[[process.phase.action]]\nkind = \"lookup\""), endless);
    let access = |text: &str| phase(&format!("duration = \"1 s\"\n[[process.phase.access]]\n{text}"));
    assert_eq!(access("region = \"x\"\npattern = \"uniform\""), "s.toml:13:10: process \"a\" has no region \"x\"");
    assert_eq!(
        access("region = \"h\"\npattern = \"uniform\"\nskew = 1"),
        "s.toml:15:8: pattern \"uniform\" has no such key"
    );
    assert_eq!(
        access("region = \"h\"\npattern = \"zipf\"\nskew = 0"),
        "s.toml:15:8: a skew is above 0 and at most 10; 0 is \"uniform\""
    );
    assert_eq!(
        access("region = \"h\"\npattern = \"uniform\"\nthreads = \"1\""),
        "s.toml:15:11: process \"a\" has 1 threads, numbered from 0"
    );
    assert_eq!(
        access("region = \"h\"\npattern = \"uniform\"\nwrite = 1.5"),
        "s.toml:15:9: `1.5` is not a share: expected a number from 0 to 1, or a percentage such as \"30 %\""
    );
    let action = |text: &str| phase(&format!("duration = \"1 s\"\n[[process.phase.action]]\n{text}"));
    assert_eq!(action("kind = \"page-loop\"\norder = 11"), "s.toml:14:9: orders are 0 to 10");
    assert_eq!(action("kind = \"sleep\"\ntime = \"1 s\"\norder = 1"), "s.toml:15:9: action \"sleep\" has no such key");
    let sysctl = action("kind = \"sysctl\"\nname = \"vm.numa_stats\"\nvalue = 0");
    assert_eq!(sysctl, "s.toml:14:8: kernel 6.1 has no sysctl vm.numa_stats");
    assert_eq!(
        action("kind = \"module-cycle\"\nname = \"../xfs\""),
        "s.toml:14:8: a module's name has letters, digits, _ and - only"
    );
    assert_eq!(action("kind = \"module-cycle\"\ncount = 5"), "s.toml:13:8: \"module-cycle\" needs `name`");
    assert_eq!(action("kind = \"cpu-offline\"\ncpus = \"0-7\""), "s.toml:14:8: at least one CPU stays online");
    assert_eq!(
        lines("[run]\nevents = [\"vmscan:mm_vmscan_nothing\"]\n"),
        ["s.toml:6:11: kernel 6.1 has no event vmscan:mm_vmscan_nothing"]
    );
    assert_eq!(lines("[[cgroup]]\nname = \"/a/b\"\n"), ["s.toml:6:8: its parent /a is not listed before it"]);
}

#[test]
fn a_policy_for_populating_needs_memory_that_is_populated_and_has_none() {
    let region = |more: &str| {
        lines(&format!("[[process]]\nname = \"a\"\n[[process.region]]\nname = \"r\"\nsize = \"4 KiB\"\n{more}\n"))
    };
    assert_eq!(region("populate = true\npopulate_policy = \"bind:3\""), ["no fault:"]);
    assert_eq!(region("policy = \"bind-balancing:0-1\""), ["no fault:"]);
    let message = |more: &str| region(more).join("\n");
    assert!(message("populate_policy = \"bind:3\"").contains("the region has no `populate = true`"));
    assert!(message("populate = true\npopulate_policy = \"bind:4\"").contains("there is no node 4"));
    for more in ["policy = \"local\"", "kind = \"file\""] {
        let found = message(&format!("populate = true\npopulate_policy = \"bind:3\"\n{more}"));
        assert!(found.contains("without a `policy` of its own"), "{found}");
    }
}
