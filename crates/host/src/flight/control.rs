//! The socket of a flight recorder: who connects asks for a recording of now, and gets its name when it is written.
//!
//! The answer is one line, `ok PATH` or `error MESSAGE`. Sockets are reached by the directory's descriptor: the name of
//! a socket may have 107 bytes only, that of a directory more.

use crate::Error;
use rustix::fs::{Mode, OFlags, open};
use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest time that `mmtwin snap` waits for an answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// Requests that wait for one recording.
const MOST: usize = 16;

/// The recorder's side.
pub struct Control {
    listener: UnixListener,
    path: PathBuf,
}

/// Somebody who waits for a recording.
pub struct Request(UnixStream);

/// The directory's descriptor and the name of the socket by it.
fn socket(directory: &Path) -> io::Result<(OwnedFd, PathBuf)> {
    let fd = open(directory, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let path = PathBuf::from(format!("/proc/self/fd/{}/socket", fd.as_raw_fd()));
    Ok((fd, path))
}

impl Control {
    /// Listens in a directory that this process holds.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn listen(directory: &Path) -> Result<Control, Error> {
        let path = directory.join("socket");
        let listen = || -> io::Result<UnixListener> {
            // One of a recorder that was killed.
            let _ = fs::remove_file(&path);
            let (_fd, by_descriptor) = socket(directory)?;
            let listener = UnixListener::bind(by_descriptor)?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        let listener = listen().map_err(|e| Error::io(path.to_string_lossy(), e))?;
        Ok(Control { listener, path })
    }

    /// Readable when somebody asks.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Who asked since the last call.
    pub fn requests(&self) -> Vec<Request> {
        let accepted = std::iter::from_fn(|| self.listener.accept().ok()).take(MOST);
        accepted.map(|(stream, _)| Request(stream)).collect()
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

impl Request {
    /// Answers with the name of the recording, or why there is none.
    pub fn answer(mut self, result: &Result<PathBuf, String>) {
        let line = match result {
            Ok(path) => format!("ok {}\n", path.display()),
            Err(message) => format!("error {}\n", message.replace('\n', " ")),
        };
        // Who asked may have gone.
        let _ = self.0.set_nonblocking(true).and_then(|()| self.0.write_all(line.as_bytes()));
    }
}

/// Asks the recorder of a directory for a recording. `None`: none runs there.
///
/// # Errors
/// What the recorder says, or the system.
pub fn ask(directory: &Path) -> Result<Option<PathBuf>, Error> {
    let fail = |e: io::Error| Error::io(format!("recorder of {}", directory.display()), e);
    let (_fd, by_descriptor) = socket(directory).map_err(fail)?;
    let mut stream = match UnixStream::connect(by_descriptor) {
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => return Ok(None),
        stream => stream.map_err(fail)?,
    };
    let mut answer = String::new();
    stream.set_read_timeout(Some(PATIENCE)).and_then(|()| stream.read_to_string(&mut answer)).map_err(fail)?;
    match answer.trim_end().split_once(' ') {
        Some(("ok", path)) => Ok(Some(path.into())),
        Some(("error", message)) => {
            Err(Error::Flight { directory: directory.to_string_lossy().into_owned(), message: message.into() })
        }
        _ => Err(Error::Flight {
            directory: directory.to_string_lossy().into_owned(),
            message: "the recorder ended before it answered".into(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_answered() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("d".repeat(120));
        fs::create_dir(&directory).unwrap();
        assert!(ask(&directory).unwrap().is_none());
        for (answer, expected) in [
            (Ok(PathBuf::from("/a b.mmt")), Ok(Some(PathBuf::from("/a b.mmt")))),
            (Err("no\nroom".to_owned()), Err(format!("{}: no room", directory.display()))),
        ] {
            let control = Control::listen(&directory).unwrap();
            let asked = std::thread::scope(|scope| {
                let asking = scope.spawn(|| ask(&directory).map_err(|e| e.to_string()));
                loop {
                    let requests = control.requests();
                    if !requests.is_empty() {
                        requests.into_iter().for_each(|request| request.answer(&answer));
                        break;
                    }
                    std::thread::yield_now();
                }
                asking.join().unwrap()
            });
            assert_eq!(asked, expected);
        }
        assert!(!directory.join("socket").exists());
    }
}
