//! The parts of a recording, made private one by one.

use super::names::Kind;
use super::{Private, json};
use mmtwin_event::counters::Row;
use mmtwin_event::manifest::{End, Manifest, Run, State, TaskLine};
use mmtwin_event::results::{Ending, Results};

/// A task's name has at most so many bytes.
const COMM: usize = 15;

/// Parameters of the kernel's command line that concern memory and CPUs; those that end with a dot are prefixes.
const PARAMETERS: &[&str] = &[
    "cgroup_disable",
    "cgroup_enable",
    "cgroup_no_v1",
    "cma",
    "default_hugepagesz",
    "hugepages",
    "hugepagesz",
    "hugetlb_cma",
    "init_on_alloc",
    "init_on_free",
    "isolcpus",
    "kernelcore",
    "lru_gen",
    "maxcpus",
    "mem",
    "mitigations",
    "movable_node",
    "movablecore",
    "nohz_full",
    "nokaslr",
    "nosmp",
    "nosmt",
    "nr_cpus",
    "numa",
    "numa_balancing",
    "numa_zonelist_order",
    "page_owner",
    "page_poison",
    "possible_cpus",
    "preempt",
    "psi",
    "slab_nomerge",
    "slub_debug",
    "slub_max_order",
    "slub_min_objects",
    "swapaccount",
    "systemd.unified_cgroup_hierarchy",
    "thp_anon",
    "transparent_hugepage",
    "transparent_hugepage_shmem",
    "vmalloc",
    "workingset.",
    "zswap.",
];

impl Private {
    /// What the manifest says of the command, cgroups, kernel command line and paths. The names that a scenario gives
    /// are shown from now on.
    pub fn manifest(&mut self, manifest: &Manifest) -> Manifest {
        let mut manifest = manifest.clone();
        if let Some(scenario) = &mut manifest.scenario {
            let mut given = Vec::new();
            json::strings_below(scenario, &["name", "cgroup", "file"], &mut given);
            for name in given.into_iter().map(str::to_string).collect::<Vec<_>>() {
                name.split('/').filter(|part| !part.is_empty()).for_each(|part| self.names.show(part));
                self.names.show(&name);
                self.names.show(&cut(&name));
            }
            json::paths_in(scenario, &mut self.names);
        }
        if let Some(command) = &mut manifest.command {
            let program = command.first().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
            *command = vec![self.names.task(&cut(program))];
        }
        for cgroup in &mut manifest.counters.cgroups {
            *cgroup = self.names.cgroup(cgroup);
        }
        manifest.counters.containers = Default::default();
        let evidence = &mut manifest.evidence;
        evidence.cmdline = evidence.cmdline.as_deref().map(of_memory);
        for text in evidence.files.values_mut().chain(&mut manifest.no_tracing) {
            *text = json::paths(text, &mut self.names);
        }
        manifest
    }

    /// The host's name.
    pub fn run(&mut self, run: &Run) -> Run {
        Run { host: self.names.of(Kind::Host, &run.host), ..run.clone() }
    }

    /// Name and cgroup of a task.
    pub fn task(&mut self, task: &TaskLine) -> TaskLine {
        let cgroup = task.cgroup.as_deref().map(|path| self.names.cgroup(path));
        TaskLine { comm: self.names.task(&task.comm), cgroup, ..task.clone() }
    }

    /// Keys that are paths of cgroups. Those of all other sources are numbers, zones, or regions of a scenario.
    pub fn rows(&mut self, rows: &[Row]) -> Vec<Row> {
        let key =
            |names: &mut super::Names, key: &str| if key.starts_with('/') { names.cgroup(key) } else { key.into() };
        rows.iter().map(|row| Row { key: key(&mut self.names, &row.key), ..row.clone() }).collect()
    }

    /// A text of `formats/`; `None`: it says more than it is needed for.
    pub fn text(&mut self, name: &str, text: &[u8]) -> Option<Vec<u8>> {
        match name {
            "kallsyms" => Some(self.kallsyms(text)),
            "printk_formats" => None,
            _ => Some(text.to_vec()),
        }
    }

    /// Symbols of modules and the modules' names. What the kernel itself has is in its source.
    fn kallsyms(&mut self, text: &[u8]) -> Vec<u8> {
        let mut private = Vec::with_capacity(text.len());
        for line in String::from_utf8_lossy(text).lines() {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            match words[..] {
                [address, kind, symbol, module] => {
                    let module = module.trim_start_matches('[').trim_end_matches(']');
                    let (symbol, module) = (self.names.of(Kind::Symbol, symbol), self.names.of(Kind::Module, module));
                    private.extend(format!("{address} {kind} {symbol}\t[{module}]\n").into_bytes());
                }
                _ => private.extend(line.bytes().chain(*b"\n")),
            }
        }
        private
    }

    /// Paths in the kernel's files (`/proc/swaps`).
    pub fn state(&mut self, state: &State) -> State {
        let mut state = state.clone();
        for text in state.files.values_mut() {
            *text = json::paths(text, &mut self.names);
        }
        state
    }

    /// Who was killed, and sentences.
    pub fn results(&mut self, results: &Results) -> Results {
        let mut results = results.clone();
        if let Ending::OutOfMemory { comm, message, .. } = &mut results.ending {
            let private = self.names.task(comm);
            // The kernel's words name the task, its cgroup and its node.
            *message = self.sentence(&message.replace(comm.as_str(), &private));
            *comm = private;
        }
        for note in &mut results.notes {
            *note = self.sentence(note);
        }
        results
    }

    /// Sentences. Names of containers go.
    pub fn end(&mut self, end: &End) -> End {
        let mut end = End { containers: Default::default(), ..end.clone() };
        for note in &mut end.notes {
            *note = self.sentence(note);
        }
        end
    }

    /// A sentence without paths, and without the names of tasks that stand in it as words.
    fn sentence(&mut self, text: &str) -> String {
        let is_part = |c: char| c.is_alphanumeric() || "_-.".contains(c);
        let text = json::paths(text, &mut self.names);
        let known: std::collections::BTreeMap<String, String> =
            self.names.iter().map(|(_, name, pseudonym)| (name.to_string(), pseudonym.to_string())).collect();
        let mut replaced = String::new();
        for piece in text.split_inclusive(|c| !is_part(c)) {
            let word = piece.trim_end_matches(|c| !is_part(c));
            // A full stop ends a sentence more often than a name.
            let name = word.trim_end_matches('.');
            replaced.push_str(known.get(name).map_or(name, String::as_str));
            replaced.push_str(&piece[name.len()..]);
        }
        replaced
    }
}

/// A name as the kernel cuts it for a task.
fn cut(name: &str) -> String {
    let end = (0..=COMM.min(name.len())).rev().find(|&end| name.is_char_boundary(end)).unwrap_or(0);
    name[..end].to_string()
}

/// The words of a kernel command line that concern memory and CPUs.
fn of_memory(line: &str) -> String {
    let name = |word: &str| word.split_once('=').map_or(word, |(name, _)| name).replace('-', "_");
    let known = |word: &&str| {
        let name = name(word);
        PARAMETERS.iter().any(|p| *p == name || p.ends_with('.') && name.starts_with(p))
    };
    line.split_ascii_whitespace().filter(known).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::Names;
    use super::*;

    #[test]
    fn a_command_line_of_the_kernel_keeps_what_concerns_memory() {
        let line = "BOOT_IMAGE=/vmlinuz root=UUID=12ab ip=10.0.0.7 transparent_hugepage=never numa-balancing=0 zswap.enabled=1 token=x";
        assert_eq!(of_memory(line), "transparent_hugepage=never numa-balancing=0 zswap.enabled=1");
    }

    #[test]
    fn a_manifest_keeps_the_names_of_its_scenario() {
        let mut private = Private::new(Names::default(), false, 8);
        let scenario = serde_json::json!({"process": [{"name": "server", "cgroup": "/web", "region": [{"name": "heap"}]}],
            "title": "of /home/alice/x.toml"});
        let command = ["/opt/acme/bin/ingest-customers", "--password", "hunter2"].map(String::from).to_vec();
        let manifest =
            private.manifest(&Manifest { scenario: Some(scenario), command: Some(command), ..Manifest::default() });
        assert_eq!(manifest.command, Some(vec!["task-1".to_string()]));
        let text = serde_json::to_string(&manifest).unwrap();
        assert!(text.contains("\"server\"") && text.contains("\"/web\"") && text.contains("of /path-1"), "{text}");
        assert!(!text.contains("alice") && !text.contains("hunter2") && !text.contains("acme"), "{text}");
        let task = |comm: &str, cgroup: &str| TaskLine {
            comm: comm.into(),
            cgroup: Some(cgroup.into()),
            ..TaskLine::default()
        };
        let server = private.task(&task("server", "/web"));
        assert_eq!((server.comm.as_str(), server.cgroup.as_deref()), ("server", Some("/web")));
        let other = private.task(&task("ingest-customer", "/acme.service"));
        assert_eq!((other.comm.as_str(), other.cgroup.as_deref()), ("task-1", Some("/cgroup-1.service")));
    }

    #[test]
    fn sentences_and_symbols_of_modules() {
        let mut private = Private::new(Names::default(), false, 8);
        private.task(&TaskLine { comm: "psql".into(), ..TaskLine::default() });
        let note = "Killed process 7 (psql) in /home/alice, psqlx stays.".to_string();
        let end = private.end(&End { notes: vec![note], ..End::default() });
        assert_eq!(end.notes, ["Killed process 7 (task-1) in /path-1, psqlx stays."]);
        let text =
            private.text("kallsyms", b"ffffffff81000000 T schedule\nffffffffc0000000 t secret_fn\t[acme]\n").unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "ffffffff81000000 T schedule\nffffffffc0000000 t symbol-1\t[module-1]\n"
        );
        assert_eq!(private.text("printk_formats", b"x"), None);
    }
}
