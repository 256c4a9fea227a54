//! Requests of a fault for a transparent huge page: `vma_thp_gfp_mask`, `vma_alloc_folio` (6.1; before 4.6
//! `alloc_hugepage_direct_gfpmask`, `alloc_pages_vma`).
//!
//! `transparent_hugepage/defrag` selects the faults that may reclaim and compact: none, those in areas with
//! `MADV_HUGEPAGE`, or all. From 4.1 on only the node of the policy is tried. From 5.4 on a fault that may wait tries
//! all nodes after that, and gives up earlier on the first. When all fail the fault allocates a base page. Not
//! modelled: khugepaged, which collapses base pages later. Checked by tests here and by `tests/huge_pages.rs`.

use super::kernel::by_zone;
use crate::page_alloc::{HUGE_ORDER, Policy, Request};
use mmtwin_scenario::kernel::{Kernel, Thp, ThpDefrag, ThpNodes};
use mmtwin_scenario::workload::Huge;

/// A request that neither reclaims nor wakes kswapd.
const LIGHT: Request =
    Request { order: HUGE_ORDER, may_wait: false, kswapd: false, gfp: "GFP_TRANSHUGE_LIGHT", ..Request::USER };
/// Faults that wake kswapd, which wakes kcompactd.
const DEFERRING: Request = Request { kswapd: true, gfp: "GFP_TRANSHUGE_LIGHT|__GFP_KSWAPD_RECLAIM", ..LIGHT };
/// Faults that reclaim and compact.
const WAITING: Request = Request { may_wait: true, gfp: "GFP_TRANSHUGE", ..LIGHT };
/// Faults that reclaim and compact once.
const WAITING_ONCE: Request = Request { no_retry: true, gfp: "GFP_TRANSHUGE|__GFP_NORETRY", ..WAITING };

/// Requests for a huge page of a region, tried in this order; none if it has no huge pages.
pub(crate) fn requests(kernel: &Kernel, said: Huge, policy: Policy) -> Vec<Request> {
    let asked_for = said == Huge::Madvise;
    let allowed = match kernel.thp {
        Thp::Always => said != Huge::Never,
        Thp::Madvise => asked_for,
        Thp::Never => false,
    };
    // Where zones are reclaimed they would have to be split for swap, which they are not here.
    if !allowed || by_zone(kernel).is_some() {
        return Vec::new();
    }
    let always_noretry = kernel.page_alloc.thp_noretry;
    let request = match (kernel.thp_defrag, asked_for) {
        (ThpDefrag::Always | ThpDefrag::DeferMadvise | ThpDefrag::Madvise, true) => WAITING,
        (ThpDefrag::Always, false) if always_noretry => WAITING,
        (ThpDefrag::Always, false) => WAITING_ONCE,
        (ThpDefrag::Defer, _) | (ThpDefrag::DeferMadvise, false) => DEFERRING,
        (ThpDefrag::Madvise, false) | (ThpDefrag::Never, _) => LIGHT,
    };
    let request = Request { no_retry: request.no_retry || always_noretry, ..request };
    let interleaved = matches!(policy, Policy::Interleave(_));
    let nodes = kernel.page_alloc.thp_nodes;
    if interleaved || nodes == ThpNodes::All {
        return vec![request];
    }
    let twice = request.may_wait && nodes == ThpNodes::PreferredThenAll;
    let near = Request { this_node: true, no_retry: request.no_retry || twice, ..request };
    let near = Request { gfp: near_name(&near), ..near };
    if twice { vec![near, request] } else { vec![near] }
}

/// The flags of a request for a node alone.
fn near_name(request: &Request) -> &'static str {
    match (request.may_wait, request.no_retry, request.kswapd) {
        (true, true, _) => "GFP_TRANSHUGE|__GFP_NORETRY|__GFP_THISNODE",
        (true, false, _) => "GFP_TRANSHUGE|__GFP_THISNODE",
        (false, _, true) => "GFP_TRANSHUGE_LIGHT|__GFP_KSWAPD_RECLAIM|__GFP_THISNODE",
        (false, _, false) => "GFP_TRANSHUGE_LIGHT|__GFP_THISNODE",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Requests of a kernel, by their flags.
    fn flags(release: &str, defrag: &str, said: Huge, policy: Policy) -> Vec<&'static str> {
        let text = format!(
            "[machine]\npreset = \"broadwell-2s-88\"\n[kernel]\nrelease = \"{release}\"\nthp = \"always\"\nthp_defrag = \"{defrag}\"\n"
        );
        let kernel = mmtwin_scenario::parse("test", &text, Path::new(""), &[]).unwrap().kernel;
        requests(&kernel, said, policy).iter().map(|request| request.gfp).collect()
    }

    #[test]
    fn faults_with_madv_hugepage_wait() {
        let of = |defrag, said| flags("6.1", defrag, said, Policy::Default);
        let waits = ["GFP_TRANSHUGE|__GFP_NORETRY|__GFP_THISNODE", "GFP_TRANSHUGE"];
        assert_eq!(of("madvise", Huge::Madvise), waits);
        assert_eq!(of("defer+madvise", Huge::Madvise), waits);
        assert_eq!(of("madvise", Huge::Default), ["GFP_TRANSHUGE_LIGHT|__GFP_THISNODE"]);
        assert_eq!(of("never", Huge::Madvise), ["GFP_TRANSHUGE_LIGHT|__GFP_THISNODE"]);
        assert_eq!(of("defer", Huge::Madvise), ["GFP_TRANSHUGE_LIGHT|__GFP_KSWAPD_RECLAIM|__GFP_THISNODE"]);
        assert_eq!(of("always", Huge::Default), [waits[0], "GFP_TRANSHUGE|__GFP_NORETRY"]);
        assert!(of("always", Huge::Never).is_empty());
    }

    #[test]
    fn older_kernels_and_interleaving_ask_all_nodes_or_one_at_once() {
        let of = |release, policy| flags(release, "always", Huge::Madvise, policy);
        assert_eq!(of("3.13", Policy::Default), ["GFP_TRANSHUGE"]);
        assert_eq!(of("4.13", Policy::Default), ["GFP_TRANSHUGE|__GFP_THISNODE"]);
        assert_eq!(of("6.1", Policy::Interleave(crate::page_alloc::NodeMask::ALL)), ["GFP_TRANSHUGE"]);
    }
}
