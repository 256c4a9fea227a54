//! A node as serde reads it.

use super::access::{Elements, Members, Word};
use super::wrong::{Wrong, shown};
use super::{At, Number, TEXT};
use crate::renamed;
use crate::tree::{Value, suggest};
use serde::de::{Expected, Visitor};

/// Whole numbers by their type's limits.
macro_rules! integers {
    ($($method:ident $type:ty)+) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
            let value = self.integer(<$type>::MIN as i64, <$type>::MAX as u64)?;
            visitor.visit_i64::<Wrong>(value).map_err(|wrong| self.failed(wrong))
        })+
    };
}

impl<'de> serde::Deserializer<'de> for At<'_> {
    type Error = Wrong;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let result = match (&self.node.value, self.number()) {
            (Value::Array(_), _) => return self.deserialize_seq(visitor),
            (Value::Table(_), _) => return self.deserialize_map(visitor),
            (_, Some(Number::Integer(value))) => visitor.visit_i64(value),
            (_, Some(Number::Float(value))) => visitor.visit_f64(value),
            (Value::Bool(value), _) => visitor.visit_bool(*value),
            (Value::Text(text) | Value::Bare(text) | Value::Date(text), _) => visitor.visit_str(text),
            (Value::Integer(_) | Value::Float(_), None) => Err(Wrong::Noted),
        };
        result.map_err(|wrong| self.failed(wrong))
    }

    integers! {
        deserialize_u8 u8
        deserialize_u16 u16
        deserialize_u32 u32
        deserialize_u64 u64
        deserialize_i8 i8
        deserialize_i16 i16
        deserialize_i32 i32
        deserialize_i64 i64
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let value = match self.number() {
            Some(Number::Float(value)) => value,
            Some(Number::Integer(value)) => value as f64,
            None => return Err(self.mismatch("a number")),
        };
        visitor.visit_f64::<Wrong>(value).map_err(|wrong| self.failed(wrong))
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let value = match &self.node.value {
            Value::Bool(value) => *value,
            Value::Bare(word) if word == "true" || word == "false" => word == "true",
            _ => return Err(self.mismatch("true or false")),
        };
        visitor.visit_bool::<Wrong>(value).map_err(|wrong| self.failed(wrong))
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        match &self.node.value {
            Value::Text(text) | Value::Bare(text) => {
                visitor.visit_str::<Wrong>(text).map_err(|wrong| self.failed(wrong))
            }
            _ => {
                let expecting = (&visitor as &dyn Expected).to_string();
                Err(self.mismatch(if expecting == "a string" { TEXT } else { &expecting }))
            }
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let Value::Array(nodes) = &self.node.value else { return Err(self.mismatch("a list")) };
        let elements =
            nodes.iter().enumerate().map(|(i, node)| At { path: format!("{}[{i}]", self.path), node, ..self.clone() });
        let elements = elements.filter(|at| !at.is_bad());
        visitor.visit_seq(Elements(elements)).map_err(|wrong| self.failed(wrong))
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Wrong> {
        // A tuple cannot do without an element.
        if let Value::Array(nodes) = &self.node.value
            && nodes.iter().any(|node| At { node, ..self.clone() }.is_bad())
        {
            self.leave_out(self.node);
            return Err(Wrong::Noted);
        }
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        let members = Members { at: &self, left: self.table()?.iter(), known: None, value: None };
        visitor.visit_map(members).map_err(|wrong| self.failed(wrong))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        let table = self.table()?;
        self.check_keys(table, fields);
        let members = Members { at: &self, left: table.iter(), known: Some(fields), value: None };
        visitor.visit_map(members).map_err(|wrong| self.failed(wrong))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        words: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
        let expected = || match words {
            [first, second] => format!("\"{first}\" or \"{second}\""),
            _ => format!("one of {}", words.iter().map(|w| format!("\"{w}\"")).collect::<Vec<_>>().join(", ")),
        };
        let (Value::Text(word) | Value::Bare(word)) = &self.node.value else {
            return Err(self.mismatch(&expected()));
        };
        match words.iter().find(|known| *known == word) {
            Some(word) => visitor.visit_enum(Word(word)),
            None => {
                let near = || suggest(word, words.iter().copied()).map(|word| format!("did you mean \"{word}\"?"));
                let near = renamed::word(word, words).map(renamed::help).or_else(near);
                let known = if near.is_some() && words.len() > 6 {
                    String::new()
                } else {
                    format!(": expected {}", expected())
                };
                self.note(self.node.place, format!("unknown value \"{}\"{known}", shown(word)), near);
                self.leave_out(self.node);
                Err(Wrong::Noted)
            }
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! { i128 u128 char bytes byte_buf unit unit_struct tuple_struct identifier }
}
