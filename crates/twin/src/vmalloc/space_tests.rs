use crate::vmalloc::params::SmallPools;
use crate::procfs::vmallocinfo::vmallocinfo;
use super::*;
use proptest::prelude::*;

fn plain(size: u64, cpu: u32) -> Request {
    Request { size, align: 1, range: None, cpu, mapping: Mapping::Vmalloc { nid: 0 }, caller: "test+0x1/0x2" }
}

fn space(rules: Rules, cpus: u32, pages: u64) -> Space {
    Space::new(rules, cpus, cpus, (VMALLOC.0, VMALLOC.0 + pages * PAGE))
}

fn pass(space: &mut Space, full: bool) -> Pass {
    let pass = space.begin_pass(full);
    (0..pass.lists.len()).for_each(|node| space.purge_node(&pass, node));
    pass
}

#[derive(Clone, Debug)]
enum Do {
    Alloc { pages: u64, cpu: u32, shift: u32 },
    Free(usize),
    Pass(bool),
    Shrink,
}

fn step() -> impl Strategy<Value = Do> {
    prop_oneof![
        6 => (1u64..16, 0u32..8, 0u32..4).prop_map(|(pages, cpu, shift)| Do::Alloc { pages, cpu, shift }),
        1 => (250u64..300, 0u32..8).prop_map(|(pages, cpu)| Do::Alloc { pages, cpu, shift: 0 }),
        6 => any::<usize>().prop_map(Do::Free),
        2 => any::<bool>().prop_map(Do::Pass),
        1 => Just(Do::Shrink),
    ]
}

fn rules() -> impl Strategy<Value = Rules> {
    prop_oneof![Just(Rules::V6_1), Just(Rules::V6_11), Just(Rules::V6_12), Just(Rules::V6_18)]
}

proptest! {
    /// Every page of the range is in exactly one place: free, busy, lazy or in a pool.
    #[test]
    fn pages_are_never_lost_nor_used_twice(rules in rules(), steps in prop::collection::vec(step(), 1..120)) {
        const PAGES: u64 = 2000;
        let mut space = space(rules, 8, PAGES);
        let mut busy: Vec<Area> = Vec::new();
        let mut lazy: Vec<Area> = Vec::new();
        for step in steps {
            match step {
                Do::Alloc { pages, cpu, shift } => {
                    let request = Request { align: PAGE << shift, ..plain(pages * PAGE, cpu) };
                    let mut searches = Vec::new();
                    let got = space.alloc(&request, |search| searches.push(search));
                    if searches.len() == 2 {
                        lazy.clear();
                    }
                    prop_assert_eq!(searches.last().unwrap().failed, got.is_err());
                    let Ok(area) = got else { continue };
                    prop_assert_eq!((area.pages(), area.start % request.align), (pages + 1, 0));
                    let apart = |other: &Area| area.end <= other.start || other.end <= area.start;
                    prop_assert!(busy.iter().chain(&lazy).all(apart), "a busy or lazy area was given away");
                    busy.push(area);
                }
                Do::Free(which) if !busy.is_empty() => {
                    let area = busy.swap_remove(which % busy.len());
                    let before = space.vmap_lazy_nr();
                    prop_assert_eq!(space.free(area.start), Ok((area, before + area.pages())));
                    prop_assert_eq!(space.free(area.start), Err(SpaceError::NotBusy(area.start)));
                    lazy.push(area);
                }
                Do::Free(_) => {}
                Do::Pass(full) => {
                    pass(&mut space, full);
                    lazy.clear();
                }
                Do::Shrink => space.shrink(),
            }
            prop_assert_eq!(space.vmap_lazy_nr(), lazy.iter().map(Area::pages).sum::<u64>());
            prop_assert_eq!(space.used_pages(), busy.iter().map(|area| area.pages() - 1).sum::<u64>());
            let pooled = space.nodes.iter().flat_map(|node| node.pools.iter().flatten()).map(Area::pages).sum::<u64>();
            let free: u64 = space.free_ranges().map(|(start, end)| (end - start) / PAGE).sum();
            let in_use: u64 = busy.iter().chain(&lazy).map(Area::pages).sum();
            prop_assert_eq!(pooled + free + in_use, PAGES);
            let ranges: Vec<_> = space.free_ranges().collect();
            prop_assert!(ranges.windows(2).all(|pair| pair[0].1 < pair[1].0), "free neighbours did not merge");
        }
        busy.iter().for_each(|area| { space.free(area.start).unwrap(); });
        pass(&mut space, true);
        let all = vec![(VMALLOC.0, VMALLOC.0 + PAGES * PAGE)];
        prop_assert_eq!(space.free_ranges().collect::<Vec<_>>(), all, "a full pass leaves nothing in pools");
    }
}

#[test]
fn a_request_of_one_page_takes_two() {
    let mut space = space(Rules::V6_12, 2, 1000);
    let small = space.alloc(&plain(1, 0), |_| {}).unwrap();
    let large = space.alloc(&plain(100 * PAGE, 0), |_| {}).unwrap();
    assert_eq!((small.pages(), large.pages(), large.start), (2, 101, small.end));
    assert_eq!(space.free(large.start).unwrap().1, 101);
}

#[test]
fn an_area_is_reused_from_the_pool_of_its_home() {
    let mut space = space(Rules::V6_12, 4, 1000);
    let area = space.alloc(&plain(PAGE, 3), |_| {}).unwrap();
    space.free(area.start).unwrap();
    assert_ne!(space.alloc(&plain(PAGE, 3), |_| {}).unwrap().start, area.start, "still lazy");
    pass(&mut space, false);
    assert_eq!((space.pooled(3, 2), space.nr_purged(3)), (1, 1));
    assert_ne!(space.alloc(&plain(PAGE, 2), |_| {}).unwrap().start, area.start, "another node's pool");
    assert_ne!(space.alloc(&plain(2 * PAGE, 3), |_| {}).unwrap().start, area.start, "another size");
    assert_eq!(space.alloc(&plain(PAGE, 3), |_| {}).unwrap().start, area.start);
}

#[test]
fn a_misaligned_area_moves_to_the_end_of_its_pool() {
    let mut space = space(Rules::V6_18, 1, 1000);
    let areas: Vec<Area> = (0..2).map(|_| space.alloc(&plain(2 * PAGE, 0), |_| {}).unwrap()).collect();
    areas.iter().for_each(|area| {
        space.free(area.start).unwrap();
    });
    pass(&mut space, false);
    // Last in, first out: the second one, three pages from the start, is tried.
    let aligned = Request { align: 2 * PAGE, ..plain(2 * PAGE, 0) };
    assert_eq!(space.alloc(&aligned, |_| {}).unwrap().start, areas[1].end);
    assert_eq!(space.alloc(&aligned, |_| {}).unwrap().start, areas[0].start);
}

#[test]
fn large_and_special_areas_never_enter_pools() {
    let mut space = space(Rules::V6_12, 1, 4000);
    let special = Request { range: Some((VMALLOC.0, VMALLOC.1)), ..plain(PAGE, 0) };
    for request in [plain(255 * PAGE, 0), plain(256 * PAGE, 0), special] {
        let area = space.alloc(&request, |_| {}).unwrap();
        space.free(area.start).unwrap();
    }
    pass(&mut space, false);
    assert_eq!((space.pooled(0, 256), space.pooled(0, 257), space.pooled(0, 2)), (1, 0, 0));
}

#[test]
fn small_pools_differ_between_6_12_and_6_18() {
    for (rules, left) in [(Rules::V6_12, 0), (Rules::V6_18, 3)] {
        let mut space = space(rules, 1, 1000);
        let areas: Vec<Area> = (0..3).map(|_| space.alloc(&plain(PAGE, 0), |_| {}).unwrap()).collect();
        areas.iter().for_each(|area| {
            space.free(area.start).unwrap();
        });
        pass(&mut space, false);
        assert_eq!(space.pooled(0, 2), 3);
        pass(&mut space, false);
        assert_eq!(space.pooled(0, 2), left);
    }
    assert_eq!([0, 3, 4, 7, 8].map(|len| pass::decayed(len, false, SmallPools::Emptied)), [0, 3, 1, 1, 2]);
    assert_eq!([0, 3, 4, 7, 8].map(|len| pass::decayed(len, false, SmallPools::Kept)), [0, 0, 1, 1, 2]);
    assert_eq!(pass::decayed(7, true, SmallPools::Kept), 7);
}

#[test]
fn the_count_falls_per_area_or_per_list() {
    for (rules, after_one) in [(Rules::V6_11, 2), (Rules::V6_12, 4)] {
        let mut space = space(rules, 1, 1000);
        let areas: Vec<Area> = (0..2).map(|_| space.alloc(&plain(PAGE, 0), |_| {}).unwrap()).collect();
        areas.iter().for_each(|area| {
            space.free(area.start).unwrap();
        });
        let pass = space.begin_pass(false);
        space.purge_area(&pass, 0, pass.lists[0][0]);
        assert_eq!((space.vmap_lazy_nr(), space.nr_purged(0)), (after_one, 1), "a dump now shows a partial number");
        space.purge_area(&pass, 0, pass.lists[0][1]);
        space.end_node(&pass, 0);
        assert_eq!((space.vmap_lazy_nr(), space.nr_purged(0)), (0, 2));
    }
}

#[test]
fn the_single_list_merges_lazy_neighbours() {
    let mut space = space(Rules::V6_1, 8, 1000);
    assert_eq!(space.nodes(), 1);
    let areas: Vec<Area> = (0..4).map(|cpu| space.alloc(&plain(PAGE, cpu), |_| {}).unwrap()).collect();
    [2, 0, 1].iter().for_each(|&i| {
        space.free(areas[i].start).unwrap();
    });
    let pass = pass(&mut space, false);
    assert_eq!((pass.areas(), pass.lists[0][0].pages(), pass.range), (1, 6, (areas[0].start, areas[2].end)));
    assert_eq!(space.alloc(&plain(PAGE, 0), |_| {}).unwrap().start, areas[0].start);
}

#[test]
fn an_empty_pass_has_an_empty_range() {
    let pass = space(Rules::V6_12, 2, 10).begin_pass(false);
    assert_eq!((pass.range, pass.areas(), pass.helpers), ((u64::MAX, 0), 0, 0));
}

#[test]
fn an_inner_address_is_found_in_the_tree_of_the_areas_start() {
    let mut space = space(Rules::V6_12, 8, 1000);
    let area = space.alloc(&plain(100 * PAGE, 5), |_| {}).unwrap();
    assert_eq!(space.find(area.start).unwrap().1, 1);
    let (busy, trees) = space.find(area.start + 4 * ZONE + 5).unwrap();
    assert_eq!((busy.area, trees), (area, 5));
    assert!(space.find(area.end).is_none());
}

#[test]
fn a_failing_search_purges_everything_and_tries_again() {
    let mut space = space(Rules::V6_12, 2, 20);
    let areas: Vec<Area> = (0..2).map(|_| space.alloc(&plain(8 * PAGE, 0), |_| {}).unwrap()).collect();
    areas.iter().for_each(|area| {
        space.free(area.start).unwrap();
    });
    let mut searches = Vec::new();
    let area = space.alloc(&plain(15 * PAGE, 1), |search| searches.push(search)).unwrap();
    assert_eq!((area.start, searches.len(), searches[0].failed), (VMALLOC.0, 2, true));
    assert_eq!(searches[0].addr, VMALLOC.0 + 20 * PAGE, "the end of the range");
    assert_eq!(space.alloc(&plain(15 * PAGE, 1), |_| {}), Err(SpaceError::Full(15 * PAGE)));
    for (size, align) in [(0, 1), (1, 3), (1, 0), (u64::MAX, 1)] {
        let request = Request { align, ..plain(size, 0) };
        assert_eq!(space.alloc(&request, |_| {}), Err(SpaceError::Invalid(size, align)));
    }
}

#[test]
fn vmallocinfo_prints_busy_areas_then_lazy_ones() {
    let mut space = space(Rules::V6_12, 2, 1000);
    let lazy = space.alloc(&plain(4 * PAGE, 0), |_| {}).unwrap();
    space.alloc(&Request { mapping: Mapping::Vmalloc { nid: 1 }, ..plain(100 * PAGE, 0) }, |_| {}).unwrap();
    space.alloc(&Request { mapping: Mapping::Vmap, ..plain(PAGE, 0) }, |_| {}).unwrap();
    space.alloc(&Request { mapping: Mapping::Ioremap { phys: 0xfed0_0000 }, ..plain(PAGE, 0) }, |_| {}).unwrap();
    space.free(lazy.start).unwrap();
    assert_eq!(
        vmallocinfo(&space),
        "0xffffc90000005000-0xffffc9000006a000  413696 test+0x1/0x2 pages=100 vmalloc N1=100\n\
         0xffffc9000006a000-0xffffc9000006c000    8192 test+0x1/0x2 pages=1 vmap\n\
         0xffffc9000006c000-0xffffc9000006e000    8192 test+0x1/0x2 phys=0x00000000fed00000 ioremap\n\
         0xffffc90000000000-0xffffc90000005000   20480 unpurged vm_area\n"
    );
}
