//! The NUMA balancing series of 2014 (pseudo-interleaving): SPECjbb2005 on eight and on four nodes.

use super::{Study, balancing};

/// The study.
pub(super) const STUDY: Study = Study {
    name: "pseudo-interleaving",
    scenarios: &[
        ("scenario", include_str!("../../published/pseudo-interleaving/scenario.toml")),
        ("collector", include_str!("../../published/pseudo-interleaving/collector.toml")),
    ],
    published: include_str!("../../published/pseudo-interleaving/published.toml"),
    run: |scenario, _| balancing::measure(scenario),
    derive: balancing::derive,
};
