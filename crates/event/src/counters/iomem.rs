//! `/proc/iomem`: where memory and the kernel's image are in the physical address space.

use super::{Problem, lines};
use std::ops::Range;

/// Page frames, ascending. Without privileges the kernel prints no addresses: then there are none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Iomem {
    /// Memory that the kernel uses (`System RAM`): whole pages.
    pub ram: Vec<Range<u64>>,
    /// Its code and data (`Kernel code`, `Kernel rodata`, `Kernel data`, `Kernel bss`): pages of which it has a part.
    pub kernel: Vec<Range<u64>>,
}

/// Bytes of a page of x86-64, whose kernels print these names.
const PAGE: u64 = 4096;

/// Reads all lines; other ranges are passed over.
pub fn iomem(text: &str, problems: &mut Vec<Problem>) -> Iomem {
    let mut all = Iomem::default();
    for (line, text) in lines(text) {
        let Some((range, name)) = range(text) else {
            problems.push(Problem { line, message: "expected a range of addresses and its name" });
            continue;
        };
        let (list, frames) = match name {
            "System RAM" => (&mut all.ram, range.start.div_ceil(PAGE)..range.end / PAGE),
            "Kernel code" | "Kernel rodata" | "Kernel data" | "Kernel bss" => {
                (&mut all.kernel, range.start / PAGE..range.end.div_ceil(PAGE))
            }
            _ => continue,
        };
        if range.end > 1 && !frames.is_empty() && list.last().is_none_or(|before| before.end <= frames.start) {
            list.push(frames);
        }
    }
    all
}

/// `FIRST-LAST : NAME`, of which the last address belongs to the range.
fn range(line: &str) -> Option<(Range<u64>, &str)> {
    let (range, name) = line.trim().split_once(" : ")?;
    let (first, last) = range.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some((number(first)?..number(last)?.checked_add(1)?, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_the_kernel_are_found() {
        let text = "00001000-0009fbff : System RAM\n0009fc00-0009ffff : Reserved\n00100000-16dfffff : System RAM\n  \
                    01000000-01e01ef1 : Kernel code\n  02000000-02826fff : Kernel rodata\n16e00000-38dfffff : Persistent \
                    Memory (legacy)\n";
        let mut problems = Vec::new();
        let all = iomem(text, &mut problems);
        assert_eq!(all.ram, [1..0x9f, 0x100..0x16e00]);
        assert_eq!(all.kernel, [0x1000..0x1e02, 0x2000..0x2827]);
        assert_eq!(problems, []);
        assert_eq!(iomem("00000000-00000000 : System RAM\n", &mut problems), Iomem::default());
        iomem("00001000-0000 System RAM\n", &mut problems);
        assert_eq!(problems.len(), 1);
    }
}
