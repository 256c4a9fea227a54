//! The NUMA balancing series of 2014 (pseudo-interleaving): SPECjbb2005 on eight and on four nodes.

use super::{Study, balancing};

/// The study.
pub(super) const STUDY: Study = Study {
    name: "pseudo-interleaving",
    page: Some("docs/model/series/numa-balancing-2014.md"),
    scenarios: &[
        ("scenario", include_str!("../../published/pseudo-interleaving/scenario.toml")),
        ("collector", include_str!("../../published/pseudo-interleaving/collector.toml")),
    ],
    published: include_str!("../../published/pseudo-interleaving/published.toml"),
    run: balancing::measure,
    derive: balancing::derive,
};
