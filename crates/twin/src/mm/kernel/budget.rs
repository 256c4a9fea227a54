//! CPUs that share the time of one, as those of QEMU do where it runs them one after another (`-icount`): one that
//! waits for others ends its turn (`pause`), and they use the rest of it.
//!
//! Not modelled: how long such a wait is depends on where in its turn each CPU is; here it is a measured time (`machine.cost`).
//! Checked by tests here and by times in guests (docs/model/reclaim.md).

use super::Kernel;
use crate::time::Ps;

impl Kernel {
    /// A CPU waits until others have done something for it, and leaves its part of the budget to them, if they share one.
    pub(crate) fn wait_for_others(&mut self, cpu: u32, time: Ps) {
        if self.share == 1 {
            return;
        }
        self.clocks[cpu as usize] += time;
        let others = self.left.iter_mut().zip(&self.busy).enumerate();
        others.filter(|(at, (_, busy))| **busy && *at != cpu as usize).for_each(|(_, (left, _))| *left += time);
    }
}

/// How long work takes on a CPU that is one of `share`, and one of fewer for the time that is left it.
pub(super) fn faster(work: Ps, share: u64, left: &mut Ps) -> Ps {
    let fewer = share - 1;
    let done = work.min(*left / fewer);
    // A rest that is shorter than any work is lost.
    *left = if done < work { 0 } else { *left - done * fewer };
    (done * fewer).saturating_add((work - done).saturating_mul(share))
}

#[cfg(test)]
mod tests {
    use super::faster;

    #[test]
    fn unused_shares_go_to_the_others() {
        // One of two: 30 of 50 at full speed while the other waits, the rest at half.
        let mut left = 30;
        assert_eq!((faster(20, 2, &mut left), left), (20, 10));
        assert_eq!((faster(30, 2, &mut left), left), (10 + 2 * 20, 0));
        // One of three has half instead of a third.
        let mut left = 100;
        assert_eq!((faster(50, 3, &mut left), left), (100, 0));
        assert_eq!((faster(50, 3, &mut left), left), (150, 0));
    }
}
