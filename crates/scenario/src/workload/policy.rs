//! NUMA memory policies, as `numactl` names them.

use crate::units::{List, ListError};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// A memory policy: `default`, `local`, `bind:NODES`, `bind-balancing:NODES`, `preferred:NODE`, `preferred-many:NODES`,
/// `interleave:NODES`; NODES is a list, or `all` for every node with memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// None: the node of the running CPU, and NUMA balancing may move the page.
    #[default]
    Default,
    /// `MPOL_LOCAL`, set explicitly, so NUMA balancing leaves the memory alone.
    Local,
    /// `MPOL_BIND`.
    Bind(Nodes),
    /// `MPOL_BIND` with `MPOL_F_NUMA_BALANCING` (5.12+): NUMA balancing may move the page among these nodes.
    BindBalancing(Nodes),
    /// `MPOL_PREFERRED`.
    Preferred(u32),
    /// `MPOL_PREFERRED_MANY` (5.15+).
    PreferredMany(Nodes),
    /// `MPOL_INTERLEAVE`.
    Interleave(Nodes),
}

/// Nodes of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nodes {
    /// Every node with memory.
    All,
    /// These; not empty.
    These(List),
}

/// Reasons why a text is not a policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// Not a policy's name.
    #[error(
        "unknown memory policy `{0}`: expected default, local, bind:NODES, bind-balancing:NODES, preferred:NODE, \
         preferred-many:NODES or interleave:NODES"
    )]
    Name(String),
    /// A policy that needs nodes has none, or the other way round.
    #[error("policy `{0}` needs nodes, such as `{0}:0-3` or `{0}:all`")]
    NoNodes(String),
    /// `preferred` with other than one node.
    #[error("policy `preferred` takes one node, such as `preferred:1`; for several there is `preferred-many`")]
    OneNode,
    /// Bad list.
    #[error(transparent)]
    List(#[from] ListError),
}

impl Policy {
    /// True if it is the default policy.
    pub fn is_default(&self) -> bool {
        *self == Policy::Default
    }

    /// The nodes it names, as a list; `None`: it names none, or all.
    pub fn listed(&self) -> Option<List> {
        match self {
            Policy::Bind(Nodes::These(list))
            | Policy::BindBalancing(Nodes::These(list))
            | Policy::PreferredMany(Nodes::These(list))
            | Policy::Interleave(Nodes::These(list)) => Some(list.clone()),
            Policy::Preferred(node) => Some(List::from_iter([*node])),
            _ => None,
        }
    }
}

impl fmt::Display for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Nodes::All => f.write_str("all"),
            Nodes::These(list) => list.fmt(f),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Policy::Default => f.write_str("default"),
            Policy::Local => f.write_str("local"),
            Policy::Bind(nodes) => write!(f, "bind:{nodes}"),
            Policy::BindBalancing(nodes) => write!(f, "bind-balancing:{nodes}"),
            Policy::Preferred(node) => write!(f, "preferred:{node}"),
            Policy::PreferredMany(nodes) => write!(f, "preferred-many:{nodes}"),
            Policy::Interleave(nodes) => write!(f, "interleave:{nodes}"),
        }
    }
}

impl FromStr for Policy {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Policy, PolicyError> {
        let (name, nodes) = match text.split_once(':') {
            Some((name, nodes)) => (name.trim(), Some(nodes.trim())),
            None => (text.trim(), None),
        };
        let list = || -> Result<Nodes, PolicyError> {
            match nodes {
                None | Some("") => Err(PolicyError::NoNodes(name.into())),
                Some("all") => Ok(Nodes::All),
                Some(list) => Ok(Nodes::These(list.parse()?)),
            }
        };
        match (name, nodes) {
            ("default", None) => Ok(Policy::Default),
            ("local", None) => Ok(Policy::Local),
            ("bind", _) => Ok(Policy::Bind(list()?)),
            ("bind-balancing", _) => Ok(Policy::BindBalancing(list()?)),
            ("interleave", _) => Ok(Policy::Interleave(list()?)),
            ("preferred-many", _) => Ok(Policy::PreferredMany(list()?)),
            ("preferred", _) => match list()? {
                Nodes::These(list) if list.len() == 1 => Ok(Policy::Preferred(list.numbers()[0])),
                _ => Err(PolicyError::OneNode),
            },
            _ => Err(PolicyError::Name(text.trim().into())),
        }
    }
}

impl Serialize for Policy {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Policy {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl serde::de::Visitor<'_> for Visitor {
            type Value = Policy;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a memory policy such as \"default\" or \"bind:0-3\"")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Policy, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Visitor)
    }
}

impl JsonSchema for Policy {
    fn schema_name() -> Cow<'static, str> {
        "Policy".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "default, local, bind:NODES, bind-balancing:NODES, preferred:NODE, preferred-many:NODES or interleave:NODES",
            "pattern": r"^\s*(default|local|preferred\s*:\s*[0-9]+|(bind|bind-balancing|interleave|preferred-many)\s*:\s*(all|[0-9][0-9,\s-]*))\s*$",
        })
    }
}
