//! A kernel that can be booted.

use crate::Error;
use std::io::Read;
use std::path::{Path, PathBuf};

/// A bzImage and its modules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Bundle of the scenario crate that describes it; `None`: it is the user's own, and taken at its word.
    pub bundle: Option<String>,
    /// Version as `uname -r` prints it.
    pub version: String,
    /// The bzImage.
    pub image: PathBuf,
    /// Directory of its modules; `None`: it needs none.
    pub modules: Option<PathBuf>,
    /// Lines for `kprobe_events`: places in its code that become events of the system `mmtwin`.
    pub probes: String,
}

/// Part of the image that is read: the boot sector, the set-up code and the version's text are in it.
const HEAD: u64 = 64 << 10;

impl Kernel {
    /// Reads the header of a bzImage, described in the kernel's `Documentation/arch/x86/boot.rst`.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a bzImage.
    pub fn open(image: &Path, modules: Option<PathBuf>) -> Result<Kernel, Error> {
        let name = image.display();
        let mut head = Vec::new();
        let file = std::fs::File::open(image).map_err(|e| Error::io(name, e))?;
        file.take(HEAD).read_to_end(&mut head).map_err(|e| Error::io(image.display(), e))?;
        let version = version(&head)
            .ok_or_else(|| Error::Kernel { path: image.into(), message: "is not a Linux bzImage for x86".into() })?;
        if let Some(directory) = modules.as_deref().filter(|path| !path.is_dir()) {
            return Err(Error::Kernel { path: directory.into(), message: "is not a directory of modules".into() });
        }
        Ok(Kernel { bundle: None, version, image: image.into(), modules, probes: String::new() })
    }

    /// Whether a module that is not the kernel's own has been put among its modules.
    pub(crate) fn has_extra(&self, name: &str) -> bool {
        self.modules.as_ref().is_some_and(|modules| modules.join(format!("extra/{name}.ko")).is_file())
    }
}

/// The version: a pointer at offset 0x20e, counted from 0x200, leads to the text that begins with it.
fn version(head: &[u8]) -> Option<String> {
    if head.get(0x202..0x206)? != b"HdrS" {
        return None;
    }
    let pointer = usize::from(u16::from_le_bytes(head.get(0x20e..0x210)?.try_into().ok()?));
    let text = head.get(pointer + 0x200..)?;
    let end = text.iter().position(|byte| *byte == 0)?;
    let text = std::str::from_utf8(&text[..end]).ok()?;
    text.split_whitespace().next().map(str::to_string)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The header of a kernel with this version.
    pub fn image(version: &str) -> Vec<u8> {
        let mut image = vec![0; 0x400];
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x20e..0x210].copy_from_slice(&0x110u16.to_le_bytes());
        image[0x310..0x310 + version.len()].copy_from_slice(version.as_bytes());
        image
    }

    #[test]
    fn the_version_is_in_the_header() {
        assert_eq!(
            version(&image("6.12.1+deb12-cloud-amd64 (who@where) #1 SMP")),
            Some("6.12.1+deb12-cloud-amd64".into())
        );
    }

    #[test]
    fn no_other_file_is_a_kernel() {
        assert_eq!(version(b""), None);
        assert_eq!(version(&vec![0; 0x400]), None);
        let mut beyond = image("6.1");
        beyond[0x20e..0x210].copy_from_slice(&u16::MAX.to_le_bytes());
        assert_eq!(version(&beyond), None);
        let mut endless = image("6.1");
        endless[0x310..].fill(b'x');
        assert_eq!(version(&endless), None);
    }
}
