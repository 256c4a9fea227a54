use super::*;
use crate::bench::counters::Update;
use crate::bench::figure::Figure;
use crate::bench::threads::Cpu;
use crate::calibrate::atomics::{Contended, Pair};
use crate::calibrate::topology::Place;
use mmtwin_event::manifest::Evidence;

fn figure(median: f64) -> Figure {
    Figure { median, low: median, high: median }
}

fn update(variant: Variant, ns: f64) -> Update {
    Update { variant, threshold: None, threads: 1, time: figure(ns) }
}

/// Two sockets, each a node with two CPUs of one core; node 2 is memory only. CPU 3 is off line.
fn calibration() -> Calibration {
    let node = |id: u32, cpus: &[u32], distances: [u32; 3]| Node {
        id,
        cpus: cpus.to_vec(),
        memory: Some(1 << 20),
        distances: distances.to_vec(),
        ..Node::default()
    };
    let ids = [0, 1, 2, 4];
    let place = |id: u32| {
        let siblings = if id < 2 { vec![0, 1] } else { vec![2, 4] };
        Place { node: u32::from(id > 1), socket: u32::from(id > 1), cluster: siblings.clone(), siblings }
    };
    let pairs = (1..4).flat_map(|b| (0..b).map(move |a| (a, b)));
    let pair = |cpus: (usize, usize)| {
        let same = cpus.0 / 2 == cpus.1 / 2;
        Pair { cpus, transfer: figure(if same { 8.0 } else { 118.26 }), handoff: figure(if same { 4.0 } else { 60.0 }) }
    };
    let access = |(from, to, ns)| Access { from, to, latency: figure(ns), bandwidth: figure(5000.0 / ns) };
    Calibration {
        evidence: Evidence {
            nodes: vec![node(0, &[0, 1], [10, 21, 17]), node(1, &[2, 4], [21, 10, 28]), node(3, &[], [17, 28, 10])],
            cpus: ids.to_vec(),
            cpu_model: Some("Model \"X\" \\ 1\n".into()),
            ..Evidence::default()
        },
        cpus: ids.map(|id| Cpu { id, node: u32::from(id > 1) }).to_vec(),
        places: ids.map(place).to_vec(),
        uncontended: Some(figure(5.31)),
        pairs: pairs.map(pair).collect(),
        contended: vec![Contended { cpus: 4, handoff: figure(25.0) }],
        memory: vec![
            access((0, 0, 84.0)),
            access((0, 1, 136.55)),
            access((0, 3, 200.0)),
            access((1, 0, 137.0)),
            access((1, 1, 85.0)),
        ],
        counters: vec![update(Variant::Off, 80.0), update(Variant::ZoneS8, 82.5), update(Variant::Events, 79.0)],
        cycles: Some(2.1944),
        notes: vec!["node 3: 5 MiB free".into()],
    }
}

fn parsed(calibration: &Calibration) -> toml::Table {
    let text = write(calibration);
    let mut file: toml::Table = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
    match file.remove("machine") {
        Some(toml::Value::Table(machine)) if file.is_empty() => machine,
        _ => panic!("a machine and nothing else: {text}"),
    }
}

#[test]
fn what_is_measured_is_written() {
    let file = parsed(&calibration());
    assert_eq!(file["threads_per_core"].as_integer(), Some(2));
    assert_eq!(file["cpu"]["frequency"].as_str(), Some("2194 MHz"));
    assert_eq!(file["line"]["atomic"].as_str(), Some("5.3 ns"));
    let line = |what: &str, key: &str| file["line"][what].get(key).and_then(toml::Value::as_str);
    assert_eq!(line("transfer", "same_core"), Some("8.0 ns"));
    assert_eq!(line("transfer", "cross_socket"), Some("118.3 ns"));
    assert_eq!(line("handoff", "cross_socket"), Some("60.0 ns"));
    // There are no such pairs.
    assert_eq!(line("transfer", "same_cluster"), None);
    assert_eq!(line("handoff", "same_socket"), None);
    // Events came out cheaper than none at all: noise, not a cost.
    assert_eq!(file["cost"].as_table().map(toml::Table::len), Some(1));
    assert_eq!(file["cost"]["numa_counters_s8"].as_str(), Some("2.5 ns"));
}

#[test]
fn nodes_and_cpus_are_numbered_without_gaps() {
    let calibration = calibration();
    let file = parsed(&calibration);
    let cpus: Vec<_> = file["node"].as_array().unwrap().iter().map(|n| n["cpus"].as_str().unwrap()).collect();
    assert_eq!(cpus, ["0-1", "2-3", ""]);
    let text = write(&calibration);
    assert!(text.contains("have gaps") && text.contains("kernel's nodes 0, 1, 3"), "{text}");
    assert_eq!(file["distance"][1].as_array().unwrap().len(), 3);
}

/// A node without CPUs cannot be measured from: its row is the opposite direction, or the worst.
#[test]
fn latency_is_a_whole_matrix() {
    let mut calibration = calibration();
    let cell =
        |file: &toml::Table, what: &str, a: usize, b: usize| file["memory"][what][a][b].as_str().unwrap().to_string();
    let file = parsed(&calibration);
    assert_eq!(cell(&file, "latency", 0, 1), "136.6 ns");
    assert_eq!(cell(&file, "latency", 2, 0), "200.0 ns");
    assert_eq!(cell(&file, "latency", 1, 2), "200.0 ns");
    assert_eq!(cell(&file, "bandwidth", 2, 2), "25.0 GB/s");
    let provenance = |file: &toml::Table| {
        let figures = file["figure"].as_array().unwrap();
        let of = figures.iter().find(|f| f["of"][0].as_str() == Some("memory.latency"));
        of.unwrap()["provenance"].as_str().unwrap().to_string()
    };
    assert_eq!(provenance(&file), "derived");
    calibration.evidence.nodes.pop();
    calibration.memory.retain(|access| access.to != 3);
    let file = parsed(&calibration);
    assert_eq!(cell(&file, "latency", 1, 0), "137.0 ns");
    assert_eq!(provenance(&file), "measured");
    calibration.memory.clear();
    assert!(!parsed(&calibration).contains_key("memory"));
}

#[test]
fn cores_and_sockets() {
    let mut calibration = calibration();
    let file = parsed(&calibration);
    assert_eq!(file["siblings"].as_str(), Some("adjacent"));
    assert_eq!(file["cluster_cores"].as_integer(), Some(1));
    assert!(!file.contains_key("asymmetric"));
    let sockets = file["node"].as_array().unwrap().iter().map(|n| n.get("socket").and_then(toml::Value::as_integer));
    assert!(sockets.eq([Some(0), Some(1), None]));
    calibration.evidence.nodes[0].distances[1] = 22;
    assert_eq!(parsed(&calibration)["asymmetric"].as_bool(), Some(true));
}

#[test]
fn every_figure_has_its_provenance() {
    let mut calibration = calibration();
    calibration.evidence.nodes.pop();
    calibration.memory.pop();
    let file = parsed(&calibration);
    let mut named = Vec::new();
    for figure in file["figure"].as_array().unwrap() {
        assert!(matches!(figure["provenance"].as_str(), Some("measured" | "derived")));
        assert!(figure["source"].as_str().unwrap().starts_with(TOOL));
        named.extend(figure["of"].as_array().unwrap().iter().map(|of| of.as_str().unwrap().to_string()));
    }
    for name in &named {
        let mut at = &toml::Value::Table(file.clone());
        for key in name.split('.') {
            at = at.get(key).unwrap_or_else(|| panic!("{name}"));
        }
    }
    assert_eq!(named.len(), 9, "{named:?}");
}

#[test]
fn few_cpus_are_told_and_the_bytes_are_the_same() {
    let mut calibration = calibration();
    assert!(!write(&calibration).contains("cannot calibrate"));
    calibration.cpus.truncate(2);
    calibration.places.truncate(2);
    calibration.pairs.retain(|p| p.cpus == (0, 1));
    assert!(write(&calibration).contains("# 2 CPUs cannot calibrate contention"));
    let file = parsed(&calibration);
    assert!(!file["line"].as_table().is_some_and(|line| line.contains_key("handoff")));
    assert_eq!(write(&calibration), write(&calibration));
}

#[test]
fn a_machine_without_numa_is_one_node() {
    let mut calibration = calibration();
    calibration.evidence.nodes.clear();
    calibration.evidence.memory = Some(2048);
    let file = parsed(&calibration);
    assert_eq!(file["node"].as_array().map(Vec::len), Some(1));
    assert_eq!(file["node"][0]["cpus"].as_str(), Some("0-3"));
    assert_eq!(file["node"][0]["memory"].as_str(), Some("2048 KiB"));
}

/// Scenarios read what is written, with and without CPUs, memory and contention on every node.
#[test]
fn scenarios_can_name_it() {
    let mut calibration = calibration();
    let resolved = resolved(&calibration);
    assert_eq!((resolved.cpus.len(), resolved.nodes.len(), resolved.threads_per_core), (4, 3, 2));
    assert_eq!((resolved.line.transfer.cross_socket.0, resolved.line.handoff.same_core.0), (118_300, 4_000));
    assert_eq!(resolved.memory.latency[0][1].0, 136_600);
    assert_eq!(
        resolved.cpus.iter().map(|cpu| (cpu.socket, cpu.core)).collect::<Vec<_>>(),
        [(0, 0), (0, 0), (1, 1), (1, 1)]
    );
    let provenance = |of: &str| resolved.figures.iter().find(|f| f.of.iter().any(|key| key == of)).unwrap().provenance;
    assert_eq!(provenance("line.atomic"), mmtwin_scenario::machine::Provenance::Measured);
    assert_eq!(provenance("memory.latency"), mmtwin_scenario::machine::Provenance::Derived);

    calibration.evidence.nodes.clear();
    calibration.evidence.memory = Some(1 << 20);
    calibration.memory.clear();
    calibration.cpus.truncate(2);
    calibration.places.truncate(2);
    calibration.pairs.clear();
    calibration.counters.clear();
    calibration.cycles = None;
    assert_eq!(self::resolved(&calibration).nodes.len(), 1);
}

fn resolved(calibration: &Calibration) -> mmtwin_scenario::Machine {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("machine.toml"), write(calibration)).unwrap();
    let scenario = r#"
        machine.preset = "machine.toml"
        kernel.release = "6.1"
        [[process]]
        name = "idle"
        [[process.phase]]
        duration = "1 s"
    "#;
    let scenario = mmtwin_scenario::parse("test", scenario, folder.path(), &[]);
    scenario.unwrap_or_else(|faults| panic!("{faults}\n{}", write(calibration))).machine
}
