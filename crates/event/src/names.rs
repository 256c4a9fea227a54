//! The kernel's words for numbers: flags, lists, zones, reasons, modes.
//!
//! An index into a table is the project's own number for a word. Kernels renumber (migrate reason 5 was `cma`
//! in 3.12 and is `numa_misplaced` today), so readers translate: text by the word, binary through the
//! `__print_symbolic` list of the recording's own format, and only where a format has no such list (or leaves
//! enum names in it) through [`NameTable::numbers`].

/// A table of words.
#[derive(Debug, PartialEq, Eq)]
pub struct NameTable {
    /// Meaning of the words, for messages.
    pub what: &'static str,
    /// The words, by index. For flags: the word of bit `1 << index`.
    pub words: &'static [&'static str],
    /// The number that 6.x kernels record for each word (for flags: the bit).
    pub numbers: &'static [u64],
    /// Printed for 0 where the table holds flags.
    pub none: &'static str,
}

/// Slot value of a number that a table has no word for: this bit and the kernel's number.
pub const UNNAMED: u64 = 1 << 31;

impl NameTable {
    /// Index of a word.
    pub fn index_of(&self, word: &[u8]) -> Option<u64> {
        self.words.iter().position(|w| w.as_bytes() == word).map(|i| i as u64)
    }
    /// Index of a number as 6.x kernels record it.
    pub fn index_of_number(&self, number: u64) -> Option<u64> {
        self.numbers.iter().position(|&n| n == number).map(|i| i as u64)
    }
    /// The word of an index; unnamed numbers print as the kernel prints them, in hexadecimal.
    pub fn word(&self, index: u64) -> std::borrow::Cow<'static, str> {
        match self.words.get(index as usize) {
            Some(w) => (*w).into(),
            None => format!("{:#x}", index & !UNNAMED).into(),
        }
    }
    /// Bits of a flag text such as `A|B|0x40`; `None` if a word is unknown.
    pub fn parse_flags(&self, text: &[u8]) -> Option<u64> {
        if text == self.none.as_bytes() {
            return Some(0);
        }
        let mut bits = 0;
        for word in text.split(|&b| b == b'|') {
            bits |= match self.index_of(word) {
                Some(i) => self.numbers[i as usize],
                None => u64::from_str_radix(std::str::from_utf8(word.strip_prefix(b"0x")?).ok()?, 16).ok()?,
            };
        }
        Some(bits)
    }
    /// The text of a set of flags, as `__print_flags` prints it.
    pub fn flags_text(&self, bits: u64) -> String {
        if bits == 0 {
            return self.none.to_string();
        }
        let mut left = bits;
        let mut out: Vec<std::borrow::Cow<'_, str>> = Vec::new();
        for (word, &bit) in self.words.iter().zip(self.numbers) {
            if left & bit == bit {
                out.push((*word).into());
                left &= !bit;
            }
        }
        if left != 0 {
            out.push(format!("{left:#x}").into());
        }
        out.join("|")
    }
}

macro_rules! tables {
    ($($(#[$doc:meta])* $name:ident, $what:literal, $none:literal: $($word:literal = $number:literal),* ;)*) => {$(
        $(#[$doc])*
        pub static $name: NameTable = NameTable {
            what: $what,
            words: &[$($word),*],
            numbers: &[$($number),*],
            none: $none,
        };
    )*};
}

tables! {
    /// Reclaim flags, in the order in which they are printed.
    RECLAIM_FLAGS, "reclaim flags", "RECLAIM_WB_NONE":
        "RECLAIM_WB_ANON" = 1, "RECLAIM_WB_FILE" = 2, "RECLAIM_WB_MIXED" = 16, "RECLAIM_WB_SYNC" = 4, "RECLAIM_WB_ASYNC" = 8;
    /// LRU lists.
    LRU, "LRU list", "": "inactive_anon" = 0, "active_anon" = 1, "inactive_file" = 2, "active_file" = 3, "unevictable" = 4;
    /// Zones of x86-64.
    ZONE, "zone", "": "DMA" = 0, "DMA32" = 1, "Normal" = 2, "Movable" = 3, "Device" = 4, "HighMem" = 5;
    /// Reasons to throttle a reclaimer.
    THROTTLE, "throttle reason", "VMSCAN_THROTTLE_NONE":
        "VMSCAN_THROTTLE_WRITEBACK" = 1, "VMSCAN_THROTTLE_ISOLATED" = 2, "VMSCAN_THROTTLE_NOPROGRESS" = 4, "VMSCAN_THROTTLE_CONGESTED" = 8;
    /// Migration modes.
    MIGRATE_MODE, "migrate mode", "": "MIGRATE_ASYNC" = 0, "MIGRATE_SYNC_LIGHT" = 1, "MIGRATE_SYNC" = 2;
    /// Migration reasons.
    MIGRATE_REASON, "migrate reason", "":
        "compaction" = 0, "memory_failure" = 1, "memory_hotplug" = 2, "syscall_or_cpuset" = 3, "mempolicy_mbind" = 4,
        "numa_misplaced" = 5, "contig_range" = 6, "longterm_pin" = 7, "demotion" = 8, "damon" = 9, "cma" = 0x100;
    /// Compaction results.
    COMPACT_RESULT, "compaction result", "":
        "not_suitable_zone" = 0, "skipped" = 1, "deferred" = 2, "no_suitable_page" = 3, "continue" = 4,
        "complete" = 5, "partial_skipped" = 6, "contended" = 7, "success" = 8;
    /// Compaction priorities.
    COMPACT_PRIORITY, "compaction priority", "":
        "COMPACT_PRIO_SYNC_FULL" = 0, "COMPACT_PRIO_SYNC_LIGHT" = 1, "COMPACT_PRIO_ASYNC" = 2;
    /// Results seen by compaction retry.
    COMPACT_RETRY, "compaction retry result", "": "failed" = 1, "withdrawn" = 2, "progress" = 3;
    /// Writeback reasons (extra words of 3.3 at the end).
    WRITEBACK_REASON, "writeback reason", "":
        "background" = 0, "vmscan" = 1, "sync" = 2, "periodic" = 3, "laptop_timer" = 4, "fs_free_space" = 5,
        "forker_thread" = 6, "foreign_flush" = 7, "try_to_free_pages" = 0x100, "free_more_memory" = 0x101;
    /// Kinds of resident memory.
    RSS, "rss type", "": "MM_FILEPAGES" = 0, "MM_ANONPAGES" = 1, "MM_SWAPENTS" = 2, "MM_SHMEMPAGES" = 3;
    /// Why the NUMA scanner skipped an area.
    NUMA_SKIP, "NUMA skip reason", "":
        "unsuitable" = 0, "shared_ro" = 1, "inaccessible" = 2, "scan_delay" = 3, "pid_inactive" = 4,
        "ignore_pid_inactive" = 5, "seq_completed" = 6;
    /// khugepaged results (6.18 numbering; the last word is older).
    KHUGEPAGED, "khugepaged result", "":
        "failed" = 0, "succeeded" = 1, "pmd_null" = 2, "pmd_none" = 3, "page_pmd_mapped" = 4, "exceed_none_pte" = 5,
        "exceed_swap_pte" = 6, "exceed_shared_pte" = 7, "pte_non_present" = 8, "pte_uffd_wp" = 9,
        "pte_mapped_hugepage" = 10, "lack_referenced_page" = 11, "page_null" = 12, "scan_aborted" = 13,
        "not_suitable_page_count" = 14, "page_not_in_lru" = 15, "page_locked" = 16, "page_not_anon" = 17,
        "page_compound" = 18, "no_process_for_page" = 19, "vma_null" = 20, "vma_check_failed" = 21,
        "not_suitable_address_range" = 22, "could_not_delete_page_from_lru" = 23, "alloc_huge_page_failed" = 24,
        "ccgroup_charge_failed" = 25, "truncated" = 26, "page_has_private" = 27, "store_failed" = 28,
        "copy_poisoned_page" = 29, "page_filled" = 30, "no_writable_page" = 0x100;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_print_in_table_order_with_leftover() {
        assert_eq!(RECLAIM_FLAGS.flags_text(2 | 8), "RECLAIM_WB_FILE|RECLAIM_WB_ASYNC");
        assert_eq!(RECLAIM_FLAGS.flags_text(16 | 4), "RECLAIM_WB_MIXED|RECLAIM_WB_SYNC");
        assert_eq!(RECLAIM_FLAGS.flags_text(2 | 64), "RECLAIM_WB_FILE|0x40");
        assert_eq!(RECLAIM_FLAGS.flags_text(0), "RECLAIM_WB_NONE");
    }

    #[test]
    fn flags_parse_back() {
        for bits in 0..128 {
            assert_eq!(RECLAIM_FLAGS.parse_flags(RECLAIM_FLAGS.flags_text(bits).as_bytes()), Some(bits));
        }
        assert_eq!(RECLAIM_FLAGS.parse_flags(b"RECLAIM_WB_X"), None);
    }

    #[test]
    fn unnamed_numbers_print_as_the_kernel_prints_them() {
        assert_eq!(MIGRATE_MODE.word(UNNAMED | 3), "0x3");
    }
}
