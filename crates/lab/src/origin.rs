//! What a guest is made of.

use crate::{Error, Kernel, Qemu};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Digits of the agent's digest.
const DIGITS: usize = 16;

/// What ran a guest. Runs of one seed in mode exact are equal only where these are: another agent takes other time for
/// an access, and what a kernel then does can differ by more than between seeds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Origin {
    /// Version of the emulator as it prints it.
    pub qemu: String,
    /// The kernel as `uname -r` prints it.
    pub kernel: String,
    /// The first digits of the agent's BLAKE3 digest.
    pub agent: String,
}

impl Origin {
    /// Of these parts.
    ///
    /// # Errors
    /// If the agent cannot be read.
    pub fn of(qemu: &Qemu, kernel: &Kernel, agent: &Path) -> Result<Origin, Error> {
        let program = std::fs::read(agent).map_err(|e| Error::io(agent.display(), e))?;
        let mut agent = blake3::hash(&program).to_hex().to_string();
        agent.truncate(DIGITS);
        Ok(Origin { qemu: qemu.version.clone(), kernel: kernel.version.clone(), agent })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_agent_is_another_origin() {
        let qemu = Qemu { program: "q".into(), version: "10.0.2".into() };
        let (image, modules, probes) = ("k".into(), None, String::new());
        let kernel = Kernel { bundle: None, version: "6.1.0-1-amd64".into(), image, modules, probes };
        let folder = tempfile::tempdir().expect("a directory");
        let of = |content: &str| {
            let agent = folder.path().join("agent");
            std::fs::write(&agent, content).expect("a file");
            Origin::of(&qemu, &kernel, &agent).expect("an origin")
        };
        let first = of("one");
        assert_eq!(
            (first.qemu.as_str(), first.kernel.as_str(), first.agent.len()),
            ("10.0.2", "6.1.0-1-amd64", DIGITS)
        );
        assert_eq!(of("one"), first);
        assert_ne!(of("two"), first);
        assert!(Origin::of(&qemu, &kernel, Path::new("nowhere")).is_err());
    }
}
