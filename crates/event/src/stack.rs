//! Records of the kernel's stack, which `stacktrace` triggers and options write behind an event.

/// Name of such records, of the system `ftrace`.
pub const KERNEL_STACK: &str = "kernel_stack";

/// Where a record holds the addresses of its callers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackRecord {
    /// Offset of the first.
    pub offset: u16,
    /// Bytes of each: the kernel's `long`, 4 or 8.
    pub long_size: u8,
    /// Byte order.
    pub big_endian: bool,
}

impl StackRecord {
    /// Addresses in a record, the innermost first. Older kernels fill unused places with ones, some with zeros.
    pub fn addresses<'a>(&self, record: &'a [u8]) -> impl Iterator<Item = u64> + use<'a> {
        let Self { offset, long_size, big_endian } = *self;
        let long = usize::from(long_size.max(1));
        let unused = u64::MAX >> (64 - 8 * long.min(8));
        let number = move |bytes: &[u8]| {
            let digits = bytes.iter().map(|&b| u64::from(b));
            if big_endian { digits.fold(0, |n, b| n << 8 | b) } else { digits.rev().fold(0, |n, b| n << 8 | b) }
        };
        let callers = record.get(usize::from(offset)..).unwrap_or_default().chunks_exact(long);
        callers.map(number).take_while(move |&address| address != unused && address != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_end_where_they_are_unused() {
        let record = |words: &[u64]| [vec![9; 16], words.iter().flat_map(|w| w.to_le_bytes()).collect()].concat();
        let layout = StackRecord { offset: 16, long_size: 8, big_endian: false };
        let found = |record: &[u8]| layout.addresses(record).collect::<Vec<_>>();
        assert_eq!(found(&record(&[5, 6])), [5, 6]);
        assert_eq!(found(&record(&[5, u64::MAX, 7])), [5]);
        assert_eq!(found(&record(&[5])[..20]), [0; 0]);
        assert_eq!(found(&[]), [0; 0]);
        let small = StackRecord { offset: 4, long_size: 4, big_endian: true };
        let words = [0, 0, 0, 0, 0, 0, 1, 2, 255, 255, 255, 255];
        assert_eq!(small.addresses(&words).collect::<Vec<_>>(), [0x102]);
    }
}
