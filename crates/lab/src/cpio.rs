//! The archive that the kernel unpacks as its first file system: the format `newc`, described in the kernel's
//! `Documentation/driver-api/early-userspace/buffer-format.rst`. Owner and times are 0, so that equal files make
//! equal archives.

/// An archive being written.
pub(crate) struct Cpio {
    bytes: Vec<u8>,
    inode: u32,
}

const DIRECTORY: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
const DEVICE: u32 = 0o020_000;

impl Cpio {
    pub fn new() -> Cpio {
        Cpio { bytes: Vec::new(), inode: 0 }
    }

    /// A directory. Directories precede their files.
    pub fn directory(&mut self, name: &str) {
        self.entry(name, DIRECTORY | 0o755, (0, 0), &[]);
    }

    /// A file; every file can be executed.
    pub fn file(&mut self, name: &str, content: &[u8]) {
        self.entry(name, FILE | 0o755, (0, 0), content);
    }

    /// A symbolic link.
    pub fn link(&mut self, name: &str, target: &str) {
        self.entry(name, LINK | 0o777, (0, 0), target.as_bytes());
    }

    /// A character device.
    pub fn device(&mut self, name: &str, major: u32, minor: u32) {
        self.entry(name, DEVICE | 0o600, (major, minor), &[]);
    }

    /// The archive.
    pub fn finish(mut self) -> Vec<u8> {
        self.inode = 0;
        self.header("TRAILER!!!", 0, (0, 0), 0);
        self.bytes
    }

    fn entry(&mut self, name: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        self.inode += 1;
        self.header(name, mode, device, content.len());
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn header(&mut self, name: &str, mode: u32, device: (u32, u32), size: usize) {
        // Inode, mode, uid, gid, links, time, size, device of the file system, device, length of the name, checksum.
        let fields = [
            self.inode,
            mode,
            0,
            0,
            1,
            0,
            // The lab puts no file of 4 GiB into an image; the kernel could not unpack it.
            u32::try_from(size).unwrap_or(u32::MAX),
            0,
            0,
            device.0,
            device.1,
            name.len() as u32 + 1,
            0,
        ];
        self.bytes.extend_from_slice(b"070701");
        for field in fields {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_file_byte_by_byte() {
        let mut cpio = Cpio::new();
        cpio.file("ab", b"12345");
        let archive = cpio.finish();
        let header = b"07070100000001000081ed00000000000000000000000100000000000000050000000000000000\
                       00000000000000000000000300000000ab\0\0\0\0";
        assert_eq!(&archive[..116], &header[..]);
        assert_eq!(&archive[116..124], b"12345\0\0\0");
        assert!(archive[124..].starts_with(b"070701") && archive.len().is_multiple_of(4));
    }

    /// Names and contents as a reader finds them.
    fn read(archive: &[u8]) -> Vec<(String, Vec<u8>)> {
        let number = |at: usize| {
            let text = std::str::from_utf8(&archive[at..at + 8]).expect("digits");
            usize::from_str_radix(text, 16).expect("hexadecimal")
        };
        let (mut at, mut files) = (0, Vec::new());
        loop {
            let (size, name) = (number(at + 54), number(at + 94));
            let text = String::from_utf8(archive[at + 110..at + 110 + name - 1].to_vec()).expect("UTF-8");
            let content = (at + 110 + name).next_multiple_of(4);
            if text == "TRAILER!!!" {
                return files;
            }
            files.push((text, archive[content..content + size].to_vec()));
            at = (content + size).next_multiple_of(4);
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(files in prop::collection::vec(("[a-z/]{1,20}", prop::collection::vec(any::<u8>(), 0..50)), 0..10)) {
            let mut cpio = Cpio::new();
            for (name, content) in &files {
                cpio.file(name, content);
            }
            prop_assert_eq!(read(&cpio.finish()), files);
        }
    }
}
