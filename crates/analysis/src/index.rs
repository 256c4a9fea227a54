//! A small map from 64-bit keys to positions 0, 1, 2, ... in the order in which the keys came.
//!
//! The statistics live in plain vectors in that order, so nothing depends on the order of a hash table. Open
//! addressing with linear probing, at most half full.

/// Key of those beyond the bound of [`Index::insert_up_to`]: no thread id, node or place has it.
pub const SHARED: u64 = u64::MAX;

/// The map.
#[derive(Clone, Debug, Default)]
pub struct Index {
    /// (key, position plus 1); 0 = empty. The length is zero or a power of two.
    slots: Vec<(u64, u32)>,
    len: u32,
}

impl Index {
    /// Position of a key.
    #[inline]
    pub fn get(&self, key: u64) -> Option<u32> {
        let mut at = self.home(key);
        loop {
            match *self.slots.get(at)? {
                (_, 0) => return None,
                (k, position) if k == key => return Some(position - 1),
                _ => at = (at + 1) & (self.slots.len() - 1),
            }
        }
    }

    /// Position of a key, and true if it is new.
    #[inline]
    pub fn insert(&mut self, key: u64) -> (u32, bool) {
        match self.get(key) {
            Some(position) => (position, false),
            None => (self.add(key), true),
        }
    }

    /// The same for at most `most` keys; those beyond share the position of [`SHARED`], which is the last one.
    #[inline]
    pub fn insert_up_to(&mut self, key: u64, most: u32) -> (u32, bool) {
        match self.get(key) {
            Some(position) => (position, false),
            None if self.len < most => (self.add(key), true),
            None => self.insert(SHARED),
        }
    }

    #[cold]
    fn add(&mut self, key: u64) -> u32 {
        if self.slots.len() <= 2 * self.len as usize {
            let grown = vec![(0, 0); (2 * self.slots.len()).max(16)];
            for (k, position) in std::mem::replace(&mut self.slots, grown) {
                if position != 0 {
                    self.place(k, position);
                }
            }
        }
        self.len += 1;
        self.place(key, self.len);
        self.len - 1
    }

    fn place(&mut self, key: u64, position: u32) {
        let mut at = self.home(key);
        while self.slots[at].1 != 0 {
            at = (at + 1) & (self.slots.len() - 1);
        }
        self.slots[at] = (key, position);
    }

    /// Where the search for a key begins: the high bits of a multiplicative hash.
    #[inline]
    fn home(&self, key: u64) -> usize {
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & self.slots.len().wrapping_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_get_positions_in_their_order() {
        let mut index = Index::default();
        assert_eq!(index.get(5), None);
        let keys: Vec<u64> = (0..1000u64).map(|i| i.wrapping_mul(0x1_0000_0001) ^ i << 60).collect();
        for (i, &key) in keys.iter().enumerate() {
            assert_eq!(index.insert(key), (i as u32, true));
        }
        for (i, &key) in keys.iter().enumerate() {
            assert_eq!(index.insert(key), (i as u32, false));
            assert_eq!(index.get(key), Some(i as u32));
        }
        assert_eq!(index.get(u64::MAX), None);
    }
}
