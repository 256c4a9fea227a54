//! A resolved scenario as TOML, as JSON, and as a hash.

use crate::load::File;
use crate::machine::text::MachineText;
use crate::{Machine, Scenario};
use serde::{Serialize, Serializer};

impl From<Scenario> for File {
    fn from(scenario: Scenario) -> File {
        let Scenario { title, machine, kernel, cgroups, processes, run, written: _ } = scenario;
        File { title, machine: machine.into(), kernel, cgroup: cgroups, process: processes, run }
    }
}

impl Serialize for Scenario {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        File::from(self.clone()).serialize(serializer)
    }
}

impl Machine {
    /// A machine file: the table `[machine]` with everything spelled out, as a preset has it.
    pub fn to_toml(&self) -> String {
        #[derive(Serialize)]
        struct MachineFile {
            machine: MachineText,
        }
        toml::to_string(&MachineFile { machine: self.clone().into() }).expect("every value of a machine is one of TOML")
    }
}

impl Scenario {
    /// A scenario file in which everything is spelled out; read again it is the same scenario.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("every value of a scenario is one of TOML")
    }

    /// The same as JSON, for the manifest of a recording; [`from_json`](crate::from_json) reads it.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("every value of a scenario is one of JSON")
    }

    /// A hash of everything that decides what a run does: equal scenarios have equal hashes on every machine. The
    /// title, the machine's name and the provenance of its figures do not count, nor does the seed: runs of one
    /// scenario with several seeds are compared. Hexadecimal, BLAKE3.
    pub fn hash(&self) -> String {
        let mut decisive = self.clone();
        decisive.title.clear();
        decisive.machine.name.clear();
        decisive.machine.figures.clear();
        decisive.run.seed = 0;
        // Written by the types, in the order of their fields, and numbers have one form.
        let text = serde_json::to_string(&decisive).expect("every value of a scenario is one of JSON");
        blake3::hash(text.as_bytes()).to_hex().to_string()
    }
}
