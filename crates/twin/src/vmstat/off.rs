//! No NUMA counters: a kernel built without them, or the published row with statistics off.

use super::{File, NUMA_ITEMS, NumaCounters, NumaItem, ReadCost};
use crate::hw::CounterType;

/// Counts nothing, shows zeros.
#[derive(Clone, Copy, Debug)]
pub struct Off;

impl NumaCounters for Off {
    fn counter_type(&self) -> Option<CounterType> {
        None
    }
    fn count(&mut self, _zone: usize, _cpu: u32, _item: NumaItem) -> bool {
        false
    }
    fn run(&mut self, _zone: usize, _cpu: u32, _item: NumaItem, _n: u64) {}
    fn until_shared(&self, _zone: usize, _cpu: u32, _item: NumaItem) -> Option<u64> {
        None
    }
    fn period(&self, _zone: usize) -> Option<u64> {
        None
    }
    fn zone_threshold(&mut self, _zone: usize, _threshold: u32) {}
    fn fold(&mut self, _zone: usize, _cpu: u32) -> bool {
        false
    }
    fn needs_update(&self, _cpu: u32) -> bool {
        false
    }
    fn offline(&mut self, _zone: usize, _cpu: u32) -> bool {
        false
    }
    fn before_read(&mut self, _file: File, _zones: &[usize], _online: &[u32], _cost: &mut ReadCost) {}
    fn zone(&self, _zone: usize, _online: &[u32], _cost: &mut ReadCost) -> [u64; NUMA_ITEMS] {
        [0; NUMA_ITEMS]
    }
    fn system(&self, _cost: &mut ReadCost) -> [u64; NUMA_ITEMS] {
        [0; NUMA_ITEMS]
    }
    fn snapshot(&self, _zone: usize, _online: &[u32]) -> [u64; NUMA_ITEMS] {
        [0; NUMA_ITEMS]
    }
    fn negative(&self) -> Vec<NumaItem> {
        Vec::new()
    }
    fn set_enabled(&mut self, _enabled: bool, _online: &[u32]) -> Option<&'static str> {
        None
    }
}
