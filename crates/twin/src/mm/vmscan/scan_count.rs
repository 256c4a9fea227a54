//! How much of each list to scan: `prepare_scan_count`, `get_scan_count` (5.8 to 6.18).
//!
//! Anonymous memory and files share the pressure by what reclaiming them has cost; of a protected cgroup only the part that
//! is not protected counts. Not modelled: offline cgroups, demotion.
//! Checked by tests of the arithmetic here and by the counters of docs/fidelity.md.

use super::{Control, TaskCtx};
use crate::mm::lru::List;
use crate::vmstat::ZoneItem;
use mmtwin_scenario::kernel::ScanBalance;

/// Pages to scan by list, in the order of [`List::EVICTABLE`].
pub(super) type Counts = [u64; 4];

/// How the pressure is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Balance {
    /// All lists alike.
    Equal,
    /// Anonymous memory only.
    Anon,
    /// Files only.
    File,
    /// In proportion: anonymous memory, files.
    Parts([u64; 2]),
}

/// Looks at the lists of the reclaim's target before a node is shrunk.
pub(super) fn prepare(ctx: &mut TaskCtx<'_>, control: &mut Control, node: usize) {
    let reclaim = &mut ctx.kernel.reclaim;
    let number = reclaim.lru.number(node, control.target());
    if reclaim.rules.scan_balance == ScanBalance::CostSampled {
        reclaim.lru.sample_cost(number);
    }
    let lru = &ctx.kernel.reclaim.lru;
    let vec = lru.vec(number);
    control.cost = vec.cost;
    let shown = lru.shown(number);
    for file in [false, true] {
        let at = usize::from(file);
        let low = shown.activated[at] != vec.refaults[at] || shown.inactive_is_low(file);
        control.may_deactivate[usize::from(file)] = control.force_deactivate || low;
    }
    control.cache_trim_mode = shown.pages(List::InactiveFile) >> control.priority > 0 && !control.may_deactivate[1];
    if !control.is_cgroup() {
        let alloc = &ctx.kernel.alloc;
        let zones = || alloc.populated().filter(|&zone| alloc.zones[zone].node == node);
        let free: u64 = zones().map(|zone| ctx.kernel.stat.plain(zone, ZoneItem::FreePages)).sum();
        let high: u64 = zones().map(|zone| alloc.zones[zone].marks.high + alloc.zones[zone].boost).sum();
        let file = lru.pages(number, List::InactiveFile) + lru.pages(number, List::ActiveFile);
        let anon = lru.pages(number, List::InactiveAnon);
        control.file_is_tiny = file + free <= high && !control.may_deactivate[0] && anon >> control.priority > 0;
    }
}

/// Pages to scan of each list of a lruvec, by its number and its cgroup.
pub(super) fn counts(ctx: &TaskCtx<'_>, control: &mut Control, (number, cgroup): (usize, usize)) -> Counts {
    let reclaim = &ctx.kernel.reclaim;
    let (vec, target) = (reclaim.lru.vec(number), control.target());
    let swap = control.may_swap && reclaim.swap_left(cgroup) > 0;
    let balance = balance(control, swap, reclaim.rules.swappiness);
    List::EVICTABLE.map(|list| {
        let size = vec.size(list, control.highest);
        let (size, spared) = reclaim.scannable(target, cgroup, size, control.low_broken);
        control.low_spared |= spared;
        let scan = size >> control.priority;
        match balance {
            Balance::Equal => scan,
            Balance::Anon => {
                if list.is_file() {
                    0
                } else {
                    scan
                }
            }
            Balance::File => {
                if list.is_file() {
                    scan
                } else {
                    0
                }
            }
            Balance::Parts(parts) => scan * parts[usize::from(list.is_file())] / (parts[0] + parts[1]),
        }
    })
}

fn balance(control: &Control, swap: bool, swappiness: u64) -> Balance {
    if !swap || control.is_cgroup() && swappiness == 0 {
        return Balance::File;
    }
    if control.priority == 0 && swappiness > 0 {
        return Balance::Equal;
    }
    if control.file_is_tiny {
        return Balance::Anon;
    }
    if control.cache_trim_mode {
        return Balance::File;
    }
    let [anon, file] = control.cost;
    let all = anon + file;
    let (anon, file) = (all + anon, all + file);
    let sum = anon + file;
    let parts = [swappiness * (sum + 1) / (anon + 1), (200 - swappiness) * (sum + 1) / (file + 1)];
    // Without any cost at swappiness 0 or 200 one part is 0, never both.
    Balance::Parts(parts)
}

#[cfg(test)]
mod tests {
    use super::super::Reclaimer;
    use super::*;
    use crate::frame::ZoneKind;

    #[test]
    fn the_first_rule_that_fits_decides() {
        let mut control = Control::new(Reclaimer::Direct, 0, ZoneKind::Movable, "GFP_KERNEL");
        let parts = |of: &Control| balance(of, true, 60);
        // Without costs: swappiness and 200 less it, of a sum of 1.
        assert_eq!(parts(&control), Balance::Parts([60, 140]));
        control.cost = [300, 100];
        // 700 and 500 of 1200: 60 * 1201 / 701, 140 * 1201 / 501.
        assert_eq!(parts(&control), Balance::Parts([102, 335]));
        control.cache_trim_mode = true;
        assert_eq!(parts(&control), Balance::File);
        control.file_is_tiny = true;
        assert_eq!((parts(&control), balance(&control, false, 60)), (Balance::Anon, Balance::File));
        control.priority = 0;
        assert_eq!((parts(&control), balance(&control, true, 0)), (Balance::Equal, Balance::Anon));
        control.reclaimer = Reclaimer::Cgroup(1);
        assert_eq!(balance(&control, true, 0), Balance::File);
    }
}
