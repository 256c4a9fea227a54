//! Releases of the kernel, as far as they are compared.

/// A release: `6.1.0-13-amd64` is 6.1.0. Releases are ordered by age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KernelRelease([u32; 3]);

impl KernelRelease {
    /// A release by its numbers, the third of which most releases do not have: `[6, 1, 0]`.
    pub const fn new(numbers: [u32; 3]) -> KernelRelease {
        KernelRelease(numbers)
    }

    /// The release at the beginning of the text of `uname -r`. `None` if the text does not begin with two numbers.
    pub fn parse(text: &str) -> Option<KernelRelease> {
        let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map_while(|number| number.parse().ok());
        Some(KernelRelease([numbers.next()?, numbers.next()?, numbers.next().unwrap_or(0)]))
    }

    /// True if this is a release or a later one.
    pub fn is_at_least(self, major: u32, minor: u32) -> bool {
        self >= KernelRelease([major, minor, 0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_ordered_by_age() {
        let of = |text| KernelRelease::parse(text).expect("a release");
        assert_eq!(of("6.1.0-13-amd64"), KernelRelease::new([6, 1, 0]));
        assert!(of("2.6.36-rc4") < of("3.0") && of("3.9") < of("3.10") && of("6.12.1") > of("6.12"));
        assert!(of("4.19.0").is_at_least(4, 19) && !of("4.19.0").is_at_least(4, 20));
        assert_eq!(["", "unknown", "6"].map(KernelRelease::parse), [None; 3]);
    }
}
