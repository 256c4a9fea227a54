//! The patch of 2018 that staggers the first scans of new threads: NAS OpenMP class D, SPECjbb2005.

use super::{Study, balancing};

macro_rules! scenario {
    ($name:literal) => {
        ($name, include_str!(concat!("../../published/staggered-scan/", $name, ".toml")))
    };
}

/// The study.
pub(super) const STUDY: Study = Study {
    name: "staggered-scan",
    page: Some("docs/model/series/staggered-scan-2018.md"),
    scenarios: &[
        scenario!("bt"),
        scenario!("cg"),
        scenario!("ep"),
        scenario!("is"),
        scenario!("lu"),
        scenario!("mg"),
        scenario!("sp"),
        scenario!("ua"),
        ("specjbb", include_str!("../../published/pseudo-interleaving/scenario.toml")),
    ],
    published: include_str!("../../published/staggered-scan/published.toml"),
    run: balancing::measure,
    derive: balancing::derive,
};
