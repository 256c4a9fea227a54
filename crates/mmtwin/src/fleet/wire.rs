//! What reading one recording gave, as bytes that another process or machine sends.

use mmtwin_report::fleet::{Summary, Unreadable};

/// What reading a recording gives.
pub type Read = Result<Summary, Unreadable>;

/// It as JSON, in which floating-point numbers keep their bits (`float_roundtrip`); the same version of the program reads it
/// with [`from_bytes`].
pub fn to_bytes(read: &Read) -> Vec<u8> {
    serde_json::to_vec(read).unwrap_or_default()
}

/// Reads it; `None`: these are no such bytes.
pub fn from_bytes(bytes: &[u8]) -> Option<Read> {
    serde_json::from_slice(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mmtwin_report::fleet::Found;

    #[test]
    fn what_was_sent_is_what_is_read() {
        let found = Found {
            key: "oom_kill".into(),
            severity: 95,
            waited_ns: Some(u64::MAX),
            share: Some(0.1 + 0.2),
            memory_some: None,
            io_some: Some(5e-324),
            cgroup: Some("/é".into()),
            sentence: "s".into(),
        };
        let summary = Summary {
            name: "a".into(),
            arm: "host".into(),
            seconds: Some(1.0 / 3.0),
            lost_events: Some(0),
            findings: vec![found.clone()],
            ..Summary::default()
        };
        let Some(Ok(read)) = from_bytes(&to_bytes(&Ok(summary))) else { panic!("it is unreadable") };
        assert_eq!((read.name.as_str(), read.arm.as_str(), read.kernel, read.events), ("a", "host", None, 0));
        assert_eq!((read.seconds, read.lost_events, read.findings), (Some(1.0 / 3.0), Some(0), vec![found]));
        let Some(Err(unreadable)) = from_bytes(&to_bytes(&Err(Unreadable { name: "b".into(), error: "e".into() })))
        else {
            panic!("it was read")
        };
        assert_eq!((unreadable.name.as_str(), unreadable.error.as_str()), ("b", "e"));
        assert!(from_bytes(b"{}").is_none());
    }
}
