//! What a run gave, as bytes that another process or machine sends.

use super::journal::{better_of, status_of};
use super::row::Ran;
use mmtwin_report::sweep::{Number, Quantity};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
struct Wire {
    status: String,
    reason: Option<String>,
    findings: Vec<(String, String)>,
    values: Vec<Value>,
}

/// Key, label, unit and direction of a quantity; whether its value is no integer, and the value: of a floating-point
/// number its bits, which JSON would not keep.
type Value = (String, String, String, String, bool, i64);

impl Ran {
    /// It as JSON; the same version of the program reads it with [`Ran::from_bytes`].
    pub fn to_bytes(&self) -> Vec<u8> {
        let value = |(of, number): &(Quantity, Number)| {
            let (float, bits) = match number {
                Number::Int(value) => (false, *value),
                Number::Float(value) => (true, value.to_bits() as i64),
            };
            (of.key.clone(), of.label.clone(), of.unit.clone(), of.better.word().to_owned(), float, bits)
        };
        let wire = Wire {
            status: self.status.word().into(),
            reason: self.reason.clone(),
            findings: self.findings.clone(),
            values: self.values.iter().map(value).collect(),
        };
        serde_json::to_vec(&wire).unwrap_or_default()
    }

    /// Reads it; `None`: these are no such bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<Ran> {
        let wire: Wire = serde_json::from_slice(bytes).ok()?;
        let value = |(key, label, unit, better, float, bits): Value| {
            let number = if float { Number::Float(f64::from_bits(bits as u64)) } else { Number::Int(bits) };
            Some((Quantity { key, label, unit, better: better_of(&better)? }, number))
        };
        Some(Ran {
            status: status_of(&wire.status)?,
            reason: wire.reason,
            findings: wire.findings,
            values: wire.values.into_iter().map(value).collect::<Option<_>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mmtwin_report::model::Better;
    use mmtwin_report::sweep::Status;

    #[test]
    fn what_was_sent_is_what_is_read() {
        let of = |key: &str| Quantity { key: key.into(), label: "L".into(), unit: "ns".into(), better: Better::Lower };
        let ran = Ran {
            status: Status::OutOfMemory,
            reason: Some("é".into()),
            findings: vec![("oom_kill".into(), "a sentence".into())],
            values: vec![(of("a.b"), Number::Int(i64::MIN)), (of("a.c"), Number::Float(0.1 + 0.2))],
        };
        assert_eq!(Ran::from_bytes(&ran.to_bytes()), Some(ran));
        assert_eq!(Ran::from_bytes(b"{}"), None);
    }
}
