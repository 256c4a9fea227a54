//! Elements of lists, members of tables, and words, for serde.

use super::At;
use super::wrong::Wrong;
use crate::tree::{Node, Place};
use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeSeed, EnumAccess, Error as _, IntoDeserializer, MapAccess, SeqAccess, VariantAccess, Visitor,
};

/// Elements of a list.
pub(super) struct Elements<I>(pub I);

impl<'a, 'de, I: Iterator<Item = At<'a>>> SeqAccess<'de> for Elements<I> {
    type Error = Wrong;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Wrong> {
        let element = |at: At<'a>| seed.deserialize(at.clone()).map_err(|wrong| at.failed(wrong));
        self.0.next().map(element).transpose()
    }
}

/// Members of a table.
pub(super) struct Members<'r, 'a> {
    pub at: &'r At<'a>,
    pub left: std::collections::btree_map::Iter<'a, String, (Place, Node)>,
    /// Keys that are passed on; `None`: all.
    pub known: Option<&'static [&'static str]>,
    pub value: Option<At<'a>>,
}

impl<'de> MapAccess<'de> for Members<'_, '_> {
    type Error = Wrong;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Wrong> {
        for (key, (_, node)) in self.left.by_ref() {
            let at = self.at.child(key, node);
            if at.is_bad() || self.known.is_some_and(|known| !known.contains(&key.as_str())) {
                continue;
            }
            self.value = Some(at);
            let key: StrDeserializer<'_, Wrong> = key.as_str().into_deserializer();
            return seed.deserialize(key).map(Some);
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Wrong> {
        let at = self.value.take().ok_or_else(|| Wrong::custom("a value without its key"))?;
        seed.deserialize(at.clone()).map_err(|wrong| at.failed(wrong))
    }
}

/// A word of an enum.
pub(super) struct Word(pub &'static str);

impl<'de> EnumAccess<'de> for Word {
    type Error = Wrong;
    type Variant = Word;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Word), Wrong> {
        let word: StrDeserializer<'_, Wrong> = self.0.into_deserializer();
        Ok((seed.deserialize(word)?, self))
    }
}

impl<'de> VariantAccess<'de> for Word {
    type Error = Wrong;

    fn unit_variant(self) -> Result<(), Wrong> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _: T) -> Result<T::Value, Wrong> {
        Err(Wrong::custom("a value that is no word"))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Wrong> {
        Err(Wrong::custom("a value that is no word"))
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], _: V) -> Result<V::Value, Wrong> {
        Err(Wrong::custom("a value that is no word"))
    }
}
