//! The arguments of `compare`: which inputs form a column.
//!
//! `[NAME=]INPUT[,INPUT...]`: inputs joined by commas are runs of one column, summarised as their median. A NAME
//! heads the column; without one a single input names itself. An argument that exists as a file is taken whole, so
//! names with `,` or `=` work too.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;

/// One column of a comparison, before its inputs are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnArgument {
    /// Heading.
    pub name: String,
    /// The inputs, at least one.
    pub inputs: Vec<OsString>,
}

/// An argument that names no inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnError {
    argument: String,
}

impl fmt::Display for ColumnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}': expected [NAME=]INPUT[,INPUT...], but an INPUT is empty", self.argument)
    }
}

impl std::error::Error for ColumnError {}

impl ColumnArgument {
    /// Reads one argument. `exists` tells whether a name is an input as it stands.
    pub fn parse(argument: &OsStr, exists: impl Fn(&OsStr) -> bool) -> Result<ColumnArgument, ColumnError> {
        let shown = |name: &OsStr| name.to_string_lossy().into_owned();
        if exists(argument) {
            return Ok(ColumnArgument { name: shown(argument), inputs: vec![argument.to_owned()] });
        }
        let bytes = argument.as_bytes();
        let (name, list) = match bytes.iter().position(|&b| b == b'=') {
            Some(at) if at > 0 && !bytes[..at].iter().any(|b| b"/,".contains(b)) => {
                (Some(&bytes[..at]), &bytes[at + 1..])
            }
            _ => (None, bytes),
        };
        let list = OsStr::from_bytes(list);
        let inputs: Vec<OsString> = if exists(list) {
            vec![list.to_owned()]
        } else {
            let inputs = list.as_bytes().split(|&b| b == b',');
            inputs.map(|input| OsStr::from_bytes(input.trim_ascii()).to_owned()).collect()
        };
        let first = inputs.first().filter(|_| inputs.iter().all(|input| !input.is_empty()));
        let Some(first) = first else { return Err(ColumnError { argument: shown(argument) }) };
        let name = match name {
            Some(name) => shown(OsStr::from_bytes(name)),
            None if inputs.len() == 1 => shown(first),
            None => format!("{} and {} more", shown(first), inputs.len() - 1),
        };
        Ok(ColumnArgument { name, inputs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(argument: &str) -> (String, Vec<String>) {
        let column = ColumnArgument::parse(argument.as_ref(), |name| name == "odd,name" || name == "x=y").unwrap();
        (column.name, column.inputs.into_iter().map(|input| input.into_string().unwrap()).collect())
    }

    #[test]
    fn forms() {
        let inputs = |names: &[&str]| names.iter().map(|n| n.to_string()).collect::<Vec<_>>();
        assert_eq!(parsed("a.mmt"), ("a.mmt".into(), inputs(&["a.mmt"])));
        assert_eq!(parsed("a1,a2,a3"), ("a1 and 2 more".into(), inputs(&["a1", "a2", "a3"])));
        assert_eq!(parsed("BASE=a1,a2"), ("BASE".into(), inputs(&["a1", "a2"])));
        assert_eq!(parsed("odd,name"), ("odd,name".into(), inputs(&["odd,name"])));
        assert_eq!(parsed("NEW=odd,name"), ("NEW".into(), inputs(&["odd,name"])));
        assert_eq!(parsed("x=y"), ("x=y".into(), inputs(&["x=y"])));
        // a directory called a=b is no name of a column
        assert_eq!(parsed("./a=b/c"), ("./a=b/c".into(), inputs(&["./a=b/c"])));
    }

    #[test]
    fn empty_inputs_are_refused() {
        for argument in ["", "a,", "NAME=", ",b", "NAME=a,,b"] {
            let error = ColumnArgument::parse(argument.as_ref(), |_| false).unwrap_err();
            assert!(error.to_string().contains("INPUT is empty"), "{argument}");
        }
    }
}
