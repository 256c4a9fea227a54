//! Access traces: CSV and Parquet.

use crate::{Random, Seen, mutate, scratch};
use arrow_array::{ArrayRef, BooleanArray, Int32Array, RecordBatch, StringArray, UInt64Array};
use mmtwin_trace::access::{AccessTrace, Pages};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::sync::Arc;

const WORDS: &[&str] =
    &["r", "w", "R", "W", "0x1f", "time,pid,page,rw", ",", "\r\n", "\n", "2147483647", "18446744073709551615"];

/// Rows with every form of number.
pub fn csv_seeds() -> Vec<Vec<u8>> {
    let rows: String = (0..40u64)
        .map(|i| format!("{},{},{},{}\n", i * 5, 1000 + i % 3, i * 977 % 50, if i % 4 == 0 { 'w' } else { 'r' }))
        .collect();
    let head = "time,pid,page,rw\n";
    vec![format!("{head}{rows}").into_bytes(), format!("{head}0,7,0x1f,R\r\n9,8,18446744073709551615,W").into_bytes()]
}

/// By words.
pub fn mutate_csv(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    mutate::text_of(WORDS, input, other, random);
}

/// Small files of every kind of column, encoding and compression that writers use.
pub fn parquet_seeds() -> Vec<Vec<u8>> {
    let many = 30u64;
    let time: ArrayRef = Arc::new(UInt64Array::from_iter_values(0..many));
    let pid: ArrayRef = Arc::new(Int32Array::from_iter_values((0..many).map(|i| 7 + (i % 2) as i32)));
    let page: ArrayRef = Arc::new(UInt64Array::from_iter_values((0..many).map(|i| i * 3)));
    let words: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..many).map(|i| if i % 3 == 0 { "w" } else { "r" })));
    let flags: ArrayRef = Arc::new(BooleanArray::from_iter((0..many).map(|i| Some(i % 3 == 0))));
    let mut seeds = Vec::new();
    for (rw, compression, dictionary) in [
        (words.clone(), Compression::UNCOMPRESSED, true),
        (words.clone(), Compression::SNAPPY, false),
        (flags.clone(), Compression::UNCOMPRESSED, false),
        (flags, Compression::ZSTD(ZstdLevel::default()), true),
    ] {
        let columns = [("time", &time), ("pid", &pid), ("page", &page), ("rw", &rw)];
        let batch =
            RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array.clone(), dictionary)));
        let batch = batch.expect("columns of one length");
        let properties = WriterProperties::builder().set_compression(compression).set_dictionary_enabled(dictionary);
        let mut file = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), Some(properties.build())).expect("a schema");
        writer.write(&batch).expect("memory");
        writer.close().expect("memory");
        seeds.push(file);
    }
    seeds
}

/// Reads a trace and numbers its pages.
pub fn run(input: &[u8]) -> Seen {
    scratch::file(input, |name| {
        let trace = match AccessTrace::open(name) {
            Ok(trace) => trace,
            Err(error) => return Seen::refused(error),
        };
        let (mut pages, mut digest) = (Pages::default(), 0u64);
        for access in trace {
            match access {
                Ok(access) => {
                    let number = pages.number(&access).map_or(7, u64::from);
                    digest = digest
                        .wrapping_mul(31)
                        .wrapping_add(access.time ^ access.page ^ number ^ u64::from(access.write));
                }
                Err(error) => return Seen::refused(error),
            }
        }
        Seen::accepted(digest)
    })
}
