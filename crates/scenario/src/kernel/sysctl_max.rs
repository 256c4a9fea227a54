//! The largest values of sysctls that differ between kernels.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Largest values of sysctls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SysctlMax {
    /// 100; from 5.8 on 200, as swap may be faster than files.
    #[serde(rename = "vm.swappiness")]
    pub vm_swappiness: u32,
    /// 1000; from 5.17 on 3000.
    #[serde(rename = "vm.watermark_scale_factor")]
    pub vm_watermark_scale_factor: u32,
    /// 1; from 5.18 on 3, with tiering.
    #[serde(rename = "kernel.numa_balancing")]
    pub kernel_numa_balancing: u32,
}
