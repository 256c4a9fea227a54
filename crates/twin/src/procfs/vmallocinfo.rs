//! /proc/vmallocinfo.
//!
//! Models `vmalloc_info_show` and `show_purge_info` (6.12; before 6.9 there is one tree, so lines are sorted). Not
//! modelled: the words `user`, `dma-coherent`, `sparse` and `vpages`, whose users are not modelled. Addresses are not hashed, as
//! with `no_hash_pointers`.

use crate::vmalloc::space::{Mapping, Space};
use std::fmt::Write;

/// The file's text.
pub fn vmallocinfo(space: &Space) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    for busy in space.busy() {
        let area = busy.area;
        let _ = write!(text, "{:#018x}-{:#018x} {:7} {}", area.start, area.end, area.end - area.start, busy.caller);
        let pages = area.pages() - 1;
        let _ = match busy.mapping {
            Mapping::Vmalloc { nid } => writeln!(text, " pages={pages} vmalloc N{nid}={pages}"),
            Mapping::Vmap => writeln!(text, " pages={pages} vmap"),
            Mapping::Ioremap { phys } => writeln!(text, " phys={phys:#018x} ioremap"),
        };
    }
    for area in space.lazy() {
        let _ = writeln!(text, "{:#018x}-{:#018x} {:7} unpurged vm_area", area.start, area.end, area.end - area.start);
    }
    text
}
