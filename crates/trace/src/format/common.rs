//! The fields that every record begins with.
//!
//! Type, flags, preempt count and pid; 2.6.36 had `common_lock_depth` and 3.x `common_padding` behind them, which
//! only moves the fields of the event itself. Their places come from the first format of a recording.

use super::parse::{FieldDef, Storage};
use crate::{Error, Place};
use mmtwin_event::Place as FieldPlace;

/// Where the common fields are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Common {
    id: FieldPlace,
    flags: FieldPlace,
    preempt_count: FieldPlace,
    pid: FieldPlace,
    big_endian: bool,
    /// Bytes up to the end of the last of them.
    size: usize,
    /// Little endian, and laid out as almost always: one word holds all four.
    is_usual: bool,
}

/// Values of the common fields of one record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CommonFields {
    /// Format id of the event.
    pub id: u16,
    /// Bits as in [`Event::flags`](mmtwin_event::Event::flags).
    pub flags: u8,
    /// Preempt depth in the low nibble, migrate-disable depth in the high one.
    pub preempt_count: u8,
    /// Thread id.
    pub pid: i32,
}

impl Common {
    /// The layout of every kernel from 2.6.36 on.
    pub fn usual(big_endian: bool) -> Common {
        let place = |offset, bits, signed| FieldPlace { offset, bits, signed, ..FieldPlace::default() };
        Common {
            id: place(0, 16, false),
            flags: place(2, 8, false),
            preempt_count: place(3, 8, false),
            pid: place(4, 32, true),
            big_endian,
            size: 8,
            is_usual: !big_endian,
        }
    }

    /// The layout that the fields of a format show. `None`: they have no `common_type` or no `common_pid`.
    pub(super) fn of(fields: &[FieldDef], big_endian: bool, place: &Place) -> Result<Common, Error> {
        let find = |name: &str, widths: &[u32]| -> Result<Option<FieldPlace>, Error> {
            let Some(f) = fields.iter().find(|f| f.name == name) else { return Ok(None) };
            if f.storage != Storage::Inline || !widths.contains(&f.size) || f.offset > 4096 {
                return Err(Error::at(place.clone(), format!("impossible place of the field {name}")));
            }
            let (offset, bits) = (f.offset as u16, f.size as u8 * 8);
            Ok(Some(FieldPlace { offset, bits, signed: f.signed, ..FieldPlace::default() }))
        };
        let required = |name: &str, widths: &[u32]| {
            find(name, widths)?
                .ok_or_else(|| Error::at(place.clone(), format!("the format does not have the field {name}")))
        };
        let mut common = Common {
            id: required("common_type", &[2])?,
            flags: find("common_flags", &[1])?.unwrap_or_default(),
            preempt_count: find("common_preempt_count", &[1])?.unwrap_or_default(),
            pid: required("common_pid", &[4])?,
            big_endian,
            size: 0,
            is_usual: false,
        };
        let usual = Common::usual(big_endian);
        common.is_usual = usual.is_usual && common == Common { size: 0, is_usual: false, ..usual };
        let places = [common.id, common.flags, common.preempt_count, common.pid];
        common.size = places.iter().map(|p| usize::from(p.offset) + usize::from(p.bits / 8)).max().unwrap_or(0);
        Ok(common)
    }

    /// Reads them; `None` if the record is too short.
    #[inline]
    pub fn read(&self, raw: &[u8]) -> Option<CommonFields> {
        if self.is_usual {
            // One load instead of four: this is read for every event.
            let word = u64::from_le_bytes(*raw.first_chunk()?);
            return Some(CommonFields {
                id: word as u16,
                flags: (word >> 16) as u8,
                preempt_count: (word >> 24) as u8,
                pid: (word >> 32) as i32,
            });
        }
        if raw.len() < self.size {
            return None;
        }
        let number = |place: FieldPlace| place.number(raw, self.big_endian);
        Some(CommonFields {
            id: number(self.id) as u16,
            flags: number(self.flags) as u8,
            preempt_count: number(self.preempt_count) as u8,
            pid: number(self.pid) as i32,
        })
    }
}
