//! A column of a table while its rows are collected.

use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Int32Builder, Int64Builder, StringBuilder, UInt8Builder, UInt32Builder,
    UInt64Builder,
};
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray};
use arrow_schema::{ArrowError, DataType, Field};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    UInt8,
    UInt32,
    UInt64,
    Int32,
    Int64,
    Bool,
    /// Any text.
    Text,
    /// Text with few distinct values.
    Words,
    Bytes,
}

/// A value that is there.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'v> {
    Int(i64),
    Uint(u64),
    Bool(bool),
    /// Characters; those that are no UTF-8 are replaced.
    Text(&'v [u8]),
    Bytes(&'v [u8]),
}

/// A column of rows that are not written yet.
#[derive(Debug)]
pub(super) enum Column {
    UInt8(UInt8Builder),
    UInt32(UInt32Builder),
    UInt64(UInt64Builder),
    Int32(Int32Builder),
    Int64(Int64Builder),
    Bool(BooleanBuilder),
    Text(StringBuilder),
    Words(Words),
    Bytes(BinaryBuilder),
}

/// Numbers of words, and the words. Numbers of the source are remembered, so that most rows need no text.
#[derive(Debug)]
pub(super) struct Words {
    keys: Int32Builder,
    words: StringBuilder,
    by_text: FxHashMap<Box<[u8]>, i32>,
    by_number: FxHashMap<u64, i32>,
}

impl Type {
    /// The column in a schema.
    pub fn field(self, name: &str, nullable: bool) -> Field {
        let data_type = match self {
            Type::UInt8 => DataType::UInt8,
            Type::UInt32 => DataType::UInt32,
            Type::UInt64 => DataType::UInt64,
            Type::Int32 => DataType::Int32,
            Type::Int64 => DataType::Int64,
            Type::Bool => DataType::Boolean,
            Type::Text => DataType::Utf8,
            Type::Words => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
            Type::Bytes => DataType::Binary,
        };
        Field::new(name, data_type, nullable)
    }

    /// A column without rows.
    pub fn column(self) -> Column {
        match self {
            Type::UInt8 => Column::UInt8(UInt8Builder::with_capacity(0)),
            Type::UInt32 => Column::UInt32(UInt32Builder::with_capacity(0)),
            Type::UInt64 => Column::UInt64(UInt64Builder::with_capacity(0)),
            Type::Int32 => Column::Int32(Int32Builder::with_capacity(0)),
            Type::Int64 => Column::Int64(Int64Builder::with_capacity(0)),
            Type::Bool => Column::Bool(BooleanBuilder::with_capacity(0)),
            Type::Text => Column::Text(StringBuilder::with_capacity(0, 0)),
            Type::Words => Column::Words(Words::new()),
            Type::Bytes => Column::Bytes(BinaryBuilder::with_capacity(0, 0)),
        }
    }
}

impl Column {
    /// Adds a value. Returns the bytes it takes, about.
    #[inline]
    pub fn push(&mut self, value: Value<'_>) -> usize {
        match (self, value) {
            (Column::UInt64(c), Value::Uint(v)) => c.append_value(v),
            (Column::Int64(c), Value::Int(v)) => c.append_value(v),
            (Column::Int32(c), Value::Int(v)) => c.append_value(v as i32),
            (Column::UInt32(c), Value::Uint(v)) => c.append_value(v as u32),
            (Column::UInt8(c), Value::Uint(v)) => c.append_value(v as u8),
            (Column::Bool(c), Value::Bool(v)) => c.append_value(v),
            (Column::Words(c), Value::Text(v)) => return c.text(v),
            (Column::Text(c), Value::Text(v)) => {
                c.append_value(String::from_utf8_lossy(v));
                return 8 + v.len();
            }
            (Column::Bytes(c), Value::Bytes(v)) => {
                c.append_value(v);
                return 8 + v.len();
            }
            (column, value) => unreachable!("{value:?} for {column:?}"),
        }
        8
    }

    /// Adds the word of a number; `make` tells it where it is not known yet.
    #[inline]
    pub fn push_word(&mut self, number: u64, make: impl FnOnce() -> Vec<u8>) -> usize {
        match self {
            Column::Words(c) => c.number(number, make),
            column => unreachable!("a word for {column:?}"),
        }
    }

    /// Adds a value that is not there.
    pub fn push_null(&mut self) -> usize {
        match self {
            Column::UInt8(c) => c.append_null(),
            Column::UInt32(c) => c.append_null(),
            Column::UInt64(c) => c.append_null(),
            Column::Int32(c) => c.append_null(),
            Column::Int64(c) => c.append_null(),
            Column::Bool(c) => c.append_null(),
            Column::Text(c) => c.append_null(),
            Column::Words(c) => c.keys.append_null(),
            Column::Bytes(c) => c.append_null(),
        }
        8
    }

    /// Adds a value or, where it is absent, none.
    #[inline]
    pub fn push_option(&mut self, value: Option<Value<'_>>) -> usize {
        match value {
            Some(value) => self.push(value),
            None => self.push_null(),
        }
    }

    /// Takes the rows out. The room they took is returned.
    pub fn take(&mut self) -> Result<ArrayRef, ArrowError> {
        Ok(match self {
            Column::UInt8(c) => Arc::new(c.finish()),
            Column::UInt32(c) => Arc::new(c.finish()),
            Column::UInt64(c) => Arc::new(c.finish()),
            Column::Int32(c) => Arc::new(c.finish()),
            Column::Int64(c) => Arc::new(c.finish()),
            Column::Bool(c) => Arc::new(c.finish()),
            Column::Text(c) => Arc::new(c.finish()),
            Column::Words(c) => return c.take(),
            Column::Bytes(c) => Arc::new(c.finish()),
        })
    }
}

impl Words {
    fn new() -> Words {
        let (keys, words) = (Int32Builder::with_capacity(0), StringBuilder::with_capacity(0, 0));
        Words { keys, words, by_text: FxHashMap::default(), by_number: FxHashMap::default() }
    }

    /// Number of a word; the bytes a new one takes.
    fn key(&mut self, text: &[u8]) -> (i32, usize) {
        if let Some(&key) = self.by_text.get(text) {
            return (key, 0);
        }
        // Rows are written long before there are so many.
        let key = self.by_text.len() as i32;
        self.words.append_value(String::from_utf8_lossy(text));
        self.by_text.insert(text.into(), key);
        (key, 64 + 2 * text.len())
    }

    fn text(&mut self, text: &[u8]) -> usize {
        let (key, bytes) = self.key(text);
        self.keys.append_value(key);
        4 + bytes
    }

    #[inline]
    fn number(&mut self, number: u64, make: impl FnOnce() -> Vec<u8>) -> usize {
        if let Some(&key) = self.by_number.get(&number) {
            self.keys.append_value(key);
            return 4;
        }
        let (key, bytes) = self.key(&make());
        self.by_number.insert(number, key);
        self.keys.append_value(key);
        4 + 32 + bytes
    }

    fn take(&mut self) -> Result<ArrayRef, ArrowError> {
        let Words { mut keys, mut words, .. } = std::mem::replace(self, Words::new());
        let array = DictionaryArray::<Int32Type>::try_new(keys.finish(), Arc::new(words.finish()))?;
        Ok(Arc::new(array))
    }
}
