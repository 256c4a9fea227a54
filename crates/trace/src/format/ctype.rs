//! C integer types, as far as format texts use them: widths, signs and the arithmetic conversions.
//!
//! Models the data models of Linux (`long` and pointers are 4 or 8 bytes). Structures and unknown typedefs have no
//! type here: a cast to them leaves a value as it is. Validated by the print tests, whose texts depend on it.

/// An integer type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Int {
    /// 8, 16, 32 or 64.
    pub bits: u8,
    /// Two's complement, sign-extended to 64 bits where it is held as `u64`.
    pub signed: bool,
}

impl Int {
    /// C's `int`.
    pub const INT: Int = Int { bits: 32, signed: true };
    /// C's `unsigned long long`.
    pub const U64: Int = Int { bits: 64, signed: false };

    /// The value of this type that the low bits of `value` hold, extended to 64 bits.
    #[inline]
    pub fn wrap(self, value: u64) -> u64 {
        let spare = u32::from(64 - self.bits) & 63;
        if self.signed { ((value << spare) as i64 >> spare) as u64 } else { (value << spare) >> spare }
    }

    /// After integer promotion: nothing is narrower than `int`.
    pub fn promoted(self) -> Int {
        if self.bits < 32 { Int::INT } else { self }
    }

    /// The type in which `self op other` is computed.
    pub fn common(self, other: Int) -> Int {
        let (a, b) = (self.promoted(), other.promoted());
        match a.bits.cmp(&b.bits) {
            std::cmp::Ordering::Greater => a,
            std::cmp::Ordering::Less => b,
            std::cmp::Ordering::Equal => Int { bits: a.bits, signed: a.signed && b.signed },
        }
    }
}

/// Finds the integer type that the words of a C type name mean. `None`: not known to be an integer.
/// Pointers are unsigned numbers as wide as `long`.
pub fn int_of(name: &str, long_size: u8) -> Option<Int> {
    let long = if long_size == 4 { 32 } else { 64 };
    if name.contains('*') {
        return Some(Int { bits: long, signed: false });
    }
    let mut unsigned = false;
    let mut longs = 0;
    let mut base = "";
    let skipped = ["const", "volatile", "static", "__force", "signed", "__signed__", "__data_loc", "__rel_loc"];
    for word in name.split_whitespace().filter(|w| !skipped.contains(w)) {
        match word {
            "unsigned" => unsigned = true,
            "long" => longs += 1,
            "enum" => return Some(Int { bits: 32, signed: false }),
            _ if base.is_empty() => base = word,
            "int" if base == "short" => {}
            _ => return None,
        }
    }
    let int = |bits: u8, signed: bool| Some(Int { bits, signed: signed && !unsigned });
    match (longs, base) {
        (1, "" | "int") => int(long, true),
        (2, "" | "int") => int(64, true),
        (0, "") if unsigned => int(32, false),
        (0, _) => match base {
            "char" | "s8" | "__s8" | "int8_t" => int(8, true),
            "u8" | "__u8" | "uint8_t" | "bool" | "_Bool" | "uchar" => int(8, false),
            "short" | "s16" | "__s16" | "int16_t" => int(16, true),
            "u16" | "__u16" | "uint16_t" | "ushort" | "umode_t" | "__le16" | "__be16" => int(16, false),
            "int" | "s32" | "__s32" | "int32_t" | "pid_t" | "clockid_t" => int(32, true),
            "u32" | "__u32" | "uint32_t" | "uint" | "gfp_t" | "dev_t" | "uid_t" | "gid_t" | "__le32" | "__be32" => {
                int(32, false)
            }
            "s64" | "__s64" | "int64_t" | "loff_t" | "ktime_t" | "time64_t" => int(64, true),
            "u64" | "__u64" | "uint64_t" | "sector_t" | "blkcnt_t" | "__le64" | "__be64" | "phys_addr_t" => {
                int(64, false)
            }
            "size_t" | "ulong" | "uintptr_t" | "ino_t" | "pgoff_t" => int(long, false),
            "ssize_t" | "off_t" | "intptr_t" => int(long, true),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_spellings() {
        let of = |name| int_of(name, 8).map(|i| (i.bits, i.signed));
        assert_eq!(of("unsigned long long"), Some((64, false)));
        assert_eq!(of("long unsigned int"), Some((64, false)));
        assert_eq!(int_of("unsigned long", 4), Some(Int { bits: 32, signed: false }));
        assert_eq!(of("unsigned"), Some((32, false)));
        assert_eq!(of("short int"), Some((16, true)));
        assert_eq!(of("const char"), Some((8, true)));
        assert_eq!(of("struct page *"), Some((64, false)));
        assert_eq!(of("enum zone_type"), Some((32, false)));
        assert_eq!(of("struct page"), None);
        assert_eq!(of("xfs_ino_t"), None);
        assert_eq!(of(""), None);
    }

    #[test]
    fn conversions_follow_c() {
        let (int, uint) = (Int::INT, Int { bits: 32, signed: false });
        assert_eq!(int.common(uint), uint);
        assert_eq!(int.common(Int { bits: 8, signed: false }), int);
        assert_eq!(uint.common(Int { bits: 64, signed: true }), Int { bits: 64, signed: true });
        assert_eq!(int.wrap(0xffff_ffff), u64::MAX);
        assert_eq!(uint.wrap(u64::MAX), 0xffff_ffff);
    }
}
