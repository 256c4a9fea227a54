//! From a file to a resolved scenario: layers, overrides, types, checks.

mod library;
mod lists;
mod overrides;

pub(crate) use library::{Named, read};
pub use library::{bundle_names, bundle_text, preset_names, preset_text};

use crate::check::Check;
use crate::kernel::Sysctl;
use crate::machine::{self, text::MachineText};
use crate::tree::{self, Fault, Faults, Node, Place, Sources, Value};
use crate::workload::instances;
use crate::{Cgroup, Kernel, Process, Run, Scenario, Written, renamed, validate};
use library::{BUNDLES, Library, PRESETS};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A scenario file.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    /// Subject of the scenario, in a line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// The machine.
    pub machine: MachineText,
    /// The kernel.
    pub kernel: Kernel,
    /// Memory cgroups; a parent precedes its children.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cgroup: Vec<Cgroup>,
    /// The workload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub process: Vec<Process>,
    /// How it is run.
    #[serde(default)]
    pub run: Run,
}

impl Scenario {
    /// Reads a scenario file. `sets` are overrides as `--set` takes them.
    ///
    /// ```
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/examples/numastat-pages.toml");
    /// let scenario = mmtwin_scenario::Scenario::load(path, &["kernel.release=6.12"])?;
    /// assert_eq!(scenario.machine.nodes.len(), 2);
    /// # Ok::<(), mmtwin_scenario::Faults>(())
    /// ```
    ///
    /// # Errors
    /// Every fault that was found, with its place.
    pub fn load(path: impl AsRef<Path>, sets: &[&str]) -> Result<Scenario, Faults> {
        load(path.as_ref(), &sets.iter().map(|set| set.to_string()).collect::<Vec<_>>())
    }

    /// Reads a scenario's text; the rest is as of [`Scenario::load`]. Presets and bundles that are given as paths are
    /// looked for in the current directory.
    ///
    /// # Errors
    /// Every fault that was found, with its place.
    pub fn parse(text: &str, sets: &[&str]) -> Result<Scenario, Faults> {
        parse("scenario", text, Path::new(""), &sets.iter().map(|set| set.to_string()).collect::<Vec<_>>())
    }
}

/// Reads a scenario file. `sets` are overrides as `--set` takes them: `kernel.vmstat.numa_counters=off`.
///
/// # Errors
/// Every fault that was found, with its place.
pub fn load(path: &Path, sets: &[String]) -> Result<Scenario, Faults> {
    let name = path.display().to_string();
    let text = read(path, Named::ByUser).map_err(|message| Fault::of_file(&name, message))?;
    parse(&name, &text, path.parent().unwrap_or(Path::new("")), sets)
}

/// Reads a scenario's text. `name` is its name in messages; presets and bundles that are given as paths are looked for
/// in `directory`.
///
/// # Errors
/// Every fault that was found, with its place.
pub fn parse(name: &str, text: &str, directory: &Path, sets: &[String]) -> Result<Scenario, Faults> {
    let mut sources = Sources::default();
    let source = sources.add_user(name, text);
    let tree = tree::document(&sources, source)?;
    layered(sources, tree, directory, sets)
}

/// Reads a scenario out of the JSON of a manifest.
///
/// # Errors
/// If it is not a resolved scenario of this version.
pub fn from_json(value: &serde_json::Value) -> Result<Scenario, Faults> {
    let mut sources = Sources::default();
    let place = Place { source: sources.add_user("resolved scenario", ""), start: 0, end: 0 };
    match tree::json(value, place) {
        Some(mut tree) => {
            drop_gone(&mut tree);
            renamed::apply(&mut tree);
            // A resolved scenario has all keys of its bundle: which of them a user gave is not known.
            Ok(Scenario { written: Written::default(), ..layered(sources, tree, Path::new(""), &[])? })
        }
        None => Err(Fault::of_file("resolved scenario", "has null, or a number above 64 bits").into()),
    }
}

/// Keys of older recordings. The keys that replace them are filled in from the bundle of the release; a cost that is a rule
/// now has none.
const GONE: [[&str; 3]; 2] = [["kernel", "numa_balancing", "rules"], ["machine", "cost", "tlb_wait"]];

fn drop_gone(tree: &mut Node) {
    for [table, of, key] in GONE {
        let of = tree.get_mut(table).and_then(|table| table.get_mut(of));
        of.and_then(|of| of.remove(key));
    }
    let figures = tree.get_mut("machine").and_then(|machine| machine.get_mut("figure"));
    let Some(Value::Array(figures)) = figures.map(|figures| &mut figures.value) else { return };
    for figure in figures {
        if let Some(Value::Array(of)) = figure.get_mut("of").map(|of| &mut of.value) {
            of.retain(|of| !matches!(&of.value, Value::Text(text) if text == "cost.tlb_wait"));
        }
    }
}

fn layered(mut sources: Sources, mut tree: Node, directory: &Path, sets: &[String]) -> Result<Scenario, Faults> {
    let sets = overrides::parse(&mut sources, sets)?;
    // Overrides that choose a layer are applied first, the others after the layers are merged, since they may change
    // any of them.
    for set in sets.iter().filter(|set| set.chooses_layer()) {
        set.apply(&mut tree, &sources)?;
    }
    require_tables(&sources, &tree)?;
    // Of a machine that is spelled out the preset is not known.
    let whole_machine = is_whole::<MachineText>(&sources, &tree, "machine").then_some(None);
    lay_under(&mut sources, &mut tree, &PRESETS, directory)?;
    let above = tree.clone();
    let bundle = lay_under(&mut sources, &mut tree, &BUNDLES, directory);
    // A kernel that is spelled out has the sysctls that it lists: one of a file may lack some of the bundle of that name.
    let whole = is_whole::<Kernel>(&sources, &above, "kernel");
    if whole
        && let Some(own) = above.get("kernel").and_then(|kernel| kernel.get("sysctl"))
        && let Some(sysctl) = tree.get_mut("kernel").and_then(|kernel| kernel.get_mut("sysctl"))
    {
        *sysctl = own.clone();
    }
    for set in sets.iter().filter(|set| !set.chooses_layer()) {
        set.apply(&mut tree, &sources)?;
    }
    lists::check(&sources, &tree)?;
    let file: Result<File, Faults> = tree::read(&sources, &tree, "");
    // A kernel that is spelled out needs no bundle; of one that is not, the bundle is what is missing.
    let (file, bundle) = match (file, bundle) {
        (Err(_), Err(fault)) => return Err(fault),
        (file, bundle) => (file?, bundle.ok()),
    };
    let mut check = Check::new(&sources, &tree);
    let spelled_out = tree::read::<File>(&sources, &above, "").is_ok();
    let mut written = Written::default();
    let whole_kernel = whole.then_some(bundle.as_ref());
    for (table, below) in [("machine", whole_machine), ("kernel", whole_kernel)] {
        if let Some(node) = tree.get(table) {
            written.note(&sources, table, node, below);
        }
    }
    // A kernel that is given in full may be from a file, with keys that the bundle of its release lacks.
    if let Some(bundle) = bundle.filter(|_| !spelled_out) {
        check_sysctls_exist(&bundle, &file.kernel, &mut check);
    }
    let File { title, machine, kernel, cgroup, process, run } = file;
    let machine = machine::resolve::resolve(machine, &mut check);
    let scenario = machine.map(|machine| {
        let mut scenario = Scenario { title, machine, kernel, cgroups: cgroup, processes: process, run, written };
        if !whole {
            boot(&mut scenario);
        }
        validate::check(&mut scenario, &mut check);
        if check.is_clean() {
            scenario.processes = instances::expand(scenario.processes, &scenario.machine);
        }
        scenario
    });
    check.finish(scenario)
}

/// Sysctls that a scenario leaves to its bundle, and that a kernel sets by the machine when it boots: NUMA balancing is off
/// on one node (`check_numabalancing_enable`, 3.8).
fn boot(scenario: &mut Scenario) {
    const BALANCING: &str = "kernel.sysctl.kernel.numa_balancing";
    if scenario.machine.nodes.len() == 1 && !scenario.written.keys().any(|key| key == BALANCING) {
        scenario.kernel.sysctl.kernel_numa_balancing.iter_mut().for_each(|mode| *mode = 0);
    }
}

/// True if a table has every key that its type needs, without a preset or bundle.
fn is_whole<T: DeserializeOwned>(sources: &Sources, tree: &Node, table: &str) -> bool {
    tree.get(table).is_some_and(|node| tree::read::<T>(sources, node, table).is_ok())
}

/// A scenario has a machine and a kernel.
fn require_tables(sources: &Sources, tree: &Node) -> Result<(), Faults> {
    let needed = [("machine", "it names a `preset`, or lists nodes"), ("kernel", "it names a `release`")];
    let missing = needed.iter().filter(|(table, _)| tree.get(table).is_none());
    let file = &sources.get(tree.place.source).name;
    let faults: Vec<Fault> =
        missing.map(|(table, why)| Fault::of_file(file, format!("missing table [{table}]: {why}"))).collect();
    if faults.is_empty() { Ok(()) } else { Err(Faults::new(faults)) }
}

/// Lays the preset or bundle that a scenario names, and what that builds on, under the scenario's own table. Returns
/// what was laid under.
fn lay_under(sources: &mut Sources, tree: &mut Node, library: &Library, directory: &Path) -> Result<Node, Faults> {
    let name = match tree.get(library.table).and_then(|table| table.get(library.key)) {
        Some(Node { value: Value::Text(name) | Value::Bare(name), place }) => Some((name.clone(), *place)),
        // Not a text: the reader reports that.
        Some(_) | None => None,
    };
    let layers = library.layers(sources, name.as_ref().map(|(name, place)| (name.as_str(), *place)), directory)?;
    let mut below = Node::table(tree.place);
    let mut figures = Vec::new();
    for layer in layers {
        overlay_keeping_figures(&mut below, layer, &mut figures);
    }
    let Value::Table(top) = &mut tree.value else { return Ok(below) };
    let Some((place, over)) = top.remove(library.table) else { return Ok(below) };
    let mut merged = below.clone();
    overlay_keeping_figures(&mut merged, over, &mut figures);
    if let Value::Table(table) = &mut merged.value {
        if !figures.is_empty() {
            table.insert(FIGURE.into(), (place, Node { place, value: Value::Array(figures) }));
        }
        // A bundle of a file is known by its own name: its path means nothing elsewhere.
        if let (Some(name), Some(own)) = (&name, below.get(library.key))
            && library::is_path(&name.0)
        {
            table.insert(library.key.into(), (name.1, own.clone()));
        }
    }
    top.insert(library.table.into(), (place, merged));
    Ok(below)
}

/// Key of the provenances of a machine's figures.
const FIGURE: &str = "figure";

/// Merges a layer over others. Provenances belong to their own layer, so all of them are kept.
fn overlay_keeping_figures(below: &mut Node, mut layer: Node, figures: &mut Vec<Node>) {
    match layer.remove(FIGURE) {
        Some(Node { value: Value::Array(nodes), .. }) => figures.extend(nodes),
        // Not a list: the reader reports that.
        Some(other) => figures.push(other),
        None => {}
    }
    below.overlay(layer);
}

/// A sysctl that the bundle does not list does not exist in that kernel, unless every kernel has it.
fn check_sysctls_exist(bundle: &Node, kernel: &Kernel, check: &mut Check<'_>) {
    let names = |tree: &Node| match tree.get("sysctl").map(|node| &node.value) {
        Some(Value::Table(table)) => table.keys().cloned().collect(),
        _ => Vec::new(),
    };
    let known = names(bundle);
    let given = check.tree.get("kernel").map(names).unwrap_or_default();
    for name in given.iter().filter(|name| !known.contains(name) && !Sysctl::EVERYWHERE.contains(&name.as_str())) {
        check.fault(&format!("kernel.sysctl.{name}"), format!("kernel {} has no sysctl {name}", kernel.release));
    }
}
