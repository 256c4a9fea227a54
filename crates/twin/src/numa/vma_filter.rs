//! Memory areas that a task's scan skips: the per-VMA filter of `task_numa_work`, `vma_is_accessed`,
//! `vma_set_access_pid_bit`; 6.8 to 6.12.
//!
//! An area is scanned by tasks that have faulted in it lately, once per pass. Every area here is one that can be
//! scanned or has a policy; read-only and inaccessible ones do not exist. Checked by tests here.

use super::Rules;

/// `numab_state` of an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VmaState {
    /// Jiffies.
    pub next_scan: u64,
    /// Jiffies.
    pub pids_active_reset: u64,
    /// Hashed pids that faulted: earlier, now.
    pub pids_active: [u64; 2],
    pub start_scan_seq: i32,
    pub prev_scan_seq: i32,
}

/// Why an area is skipped, as the event names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    Unsuitable,
    ScanDelay,
    PidInactive,
    IgnorePidInactive,
    SeqCompleted,
}

impl Reason {
    /// The word of `sched_skip_vma_numa`.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Reason::Unsuitable => "unsuitable",
            Reason::ScanDelay => "scan_delay",
            Reason::PidInactive => "pid_inactive",
            Reason::IgnorePidInactive => "ignore_pid_inactive",
            Reason::SeqCompleted => "seq_completed",
        }
    }
}

/// The task that scans, and the progress of the scan of its address space.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scan {
    pub jiffies: u64,
    pub pid: i32,
    /// Completed passes of the address space.
    pub seq: i32,
    /// Threads of the process.
    pub threads: i32,
    /// The area begins before the place where the scan stopped.
    pub begun: bool,
    /// Areas are scanned for all users.
    pub forced: bool,
}

/// Decision on an area; the reason is written as an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Scan,
    /// Scanned although this task does not use it.
    ScanAnyway,
    Skip(Reason),
}

impl VmaState {
    fn new(rules: &Rules, scan: &Scan) -> VmaState {
        let delay = rules.ms_to_jiffies(rules.config.scan_delay_ms.into());
        let next_scan = scan.jiffies + delay;
        VmaState {
            next_scan,
            pids_active_reset: next_scan + reset_period(rules),
            pids_active: [0; 2],
            start_scan_seq: scan.seq,
            prev_scan_seq: scan.seq - 1,
        }
    }

    /// A task faulted in the area.
    pub(crate) fn fault(&mut self, pid: i32) {
        self.pids_active[1] |= 1 << bit(pid);
    }
}

fn reset_period(rules: &Rules) -> u64 {
    rules.ms_to_jiffies(4 * u64::from(rules.config.scan_delay_ms))
}

/// `hash_32` of a pid to six bits.
fn bit(pid: i32) -> u32 {
    (pid as u32).wrapping_mul(0x61C8_8647) >> 26
}

/// Decides about one area; `state` is made at the first visit.
pub(crate) fn judge(rules: &Rules, state: &mut Option<VmaState>, scan: &Scan) -> Verdict {
    let state = state.get_or_insert_with(|| VmaState::new(rules, scan));
    if scan.seq != 0 && scan.jiffies < state.next_scan {
        return Verdict::Skip(Reason::ScanDelay);
    }
    if scan.jiffies > state.pids_active_reset {
        state.pids_active = [state.pids_active[1], 0];
        state.pids_active_reset += reset_period(rules);
    }
    if state.prev_scan_seq == scan.seq {
        return Verdict::Skip(Reason::SeqCompleted);
    }
    let both = state.pids_active[0] | state.pids_active[1];
    let known = scan.seq - state.start_scan_seq < 2 || both >> bit(scan.pid) & 1 == 1;
    if scan.forced || known {
        return Verdict::Scan;
    }
    if scan.begun {
        return Verdict::ScanAnyway;
    }
    if scan.seq > state.prev_scan_seq + scan.threads {
        return Verdict::Scan;
    }
    Verdict::Skip(Reason::PidInactive)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn areas_are_skipped_by_tasks_that_do_not_use_them() {
        let rules = Rules::of("6.12");
        let mut state = None;
        let scan = Scan { jiffies: 1000, pid: 7, seq: 0, threads: 3, begun: false, forced: false };
        assert_eq!(judge(&rules, &mut state, &scan), Verdict::Scan);
        let of = state.unwrap();
        assert_eq!((of.next_scan, of.pids_active_reset, of.prev_scan_seq), (1250, 2250, -1));
        let later = Scan { jiffies: 1249, seq: 1, ..scan };
        assert_eq!(judge(&rules, &mut state, &later), Verdict::Skip(Reason::ScanDelay));
        let later = Scan { jiffies: 1251, seq: 2, ..scan };
        state.as_mut().unwrap().prev_scan_seq = 1;
        assert_eq!(judge(&rules, &mut state, &later), Verdict::Skip(Reason::PidInactive));
        assert_eq!(judge(&rules, &mut state, &Scan { begun: true, ..later }), Verdict::ScanAnyway);
        assert_eq!(judge(&rules, &mut state, &Scan { forced: true, ..later }), Verdict::Scan);
        assert_eq!(judge(&rules, &mut state, &Scan { seq: 5, ..later }), Verdict::Scan);
        state.as_mut().unwrap().fault(7);
        assert_eq!(judge(&rules, &mut state, &later), Verdict::Scan);
        // Known for one more period, then forgotten.
        assert_eq!(judge(&rules, &mut state, &Scan { jiffies: 2251, ..later }), Verdict::Scan);
        assert_eq!(judge(&rules, &mut state, &Scan { jiffies: 3251, ..later }), Verdict::Skip(Reason::PidInactive));
        state.as_mut().unwrap().prev_scan_seq = 2;
        assert_eq!(judge(&rules, &mut state, &later), Verdict::Skip(Reason::SeqCompleted));
    }

    #[test]
    fn pids_hash_to_six_bits() {
        assert_eq!(
            [1, 2, 1000].map(bit),
            [0x61C8_8647u32 >> 26, (0x61C8_8647u32 << 1) >> 26, 1000u32.wrapping_mul(0x61C8_8647) >> 26]
        );
    }
}
