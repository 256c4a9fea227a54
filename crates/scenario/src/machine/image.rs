//! Where the kernel's code and data are in memory.

use crate::units::PAGE;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::{Range, RangeInclusive};

/// Physical addresses of the kernel's code and data, ascending, as `/proc/iomem` prints them: `"01000000-01e01ef1"`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct KernelImage(#[schemars(with = "Vec<String>")] Vec<RangeInclusive<u64>>);

/// Reasons why texts are not the ranges of an image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KernelImageError {
    /// Not two hexadecimal numbers, the first of which is not above the second.
    #[error("`{0}` is no range of addresses as in /proc/iomem, such as \"01000000-01e01ef1\"")]
    Range(String),
    /// A range that begins in or before the last page of the one before.
    #[error("ranges of addresses ascend and share no page; `{0}` does not")]
    Order(String),
}

impl KernelImage {
    /// The page frames, ascending.
    pub fn frames(&self) -> impl Iterator<Item = Range<u64>> {
        self.0.iter().map(|range| range.start() / PAGE..range.end() / PAGE + 1)
    }

    /// True if it is not known.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl TryFrom<Vec<String>> for KernelImage {
    type Error = KernelImageError;

    fn try_from(texts: Vec<String>) -> Result<KernelImage, KernelImageError> {
        let mut ranges: Vec<RangeInclusive<u64>> = Vec::new();
        for text in texts {
            let number = |part: &str| u64::from_str_radix(part.trim(), 16).ok();
            let range = text.split_once('-').and_then(|(first, last)| Some(number(first)?..=number(last)?));
            let range = range.filter(|range| !range.is_empty()).ok_or(KernelImageError::Range(text.clone()))?;
            if ranges.last().is_some_and(|before| range.start() / PAGE <= before.end() / PAGE) {
                return Err(KernelImageError::Order(text));
            }
            ranges.push(range);
        }
        Ok(KernelImage(ranges))
    }
}

impl From<KernelImage> for Vec<String> {
    fn from(image: KernelImage) -> Vec<String> {
        image.0.iter().map(|range| format!("{:08x}-{:08x}", range.start(), range.end())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_iomem() {
        let texts: Vec<String> = ["01000000-01e01ef1", "02000000-02826fff"].map(String::from).to_vec();
        let image = KernelImage::try_from(texts.clone()).unwrap();
        assert_eq!(image.frames().collect::<Vec<_>>(), [0x1000..0x1e02, 0x2000..0x2827]);
        assert_eq!(Vec::from(image), texts);
        let refused =
            |texts: &[&str]| KernelImage::try_from(texts.iter().map(|text| text.to_string()).collect::<Vec<_>>());
        for text in ["", "1000", "1000-", "x-y", "2000-1000"] {
            assert_eq!(refused(&[text]), Err(KernelImageError::Range(text.into())));
        }
        assert_eq!(refused(&["1000-2000", "2fff-3000"]), Err(KernelImageError::Order("2fff-3000".into())));
    }
}
