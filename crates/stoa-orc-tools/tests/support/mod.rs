//! What the tests of this crate share: files to look into, and damage to them.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use stoa_orc::{Compression, Writer, WriterOptions};
use tempfile::TempDir;

/// A directory with a file `t.orc`.
pub struct File {
    directory: TempDir,
}

impl File {
    /// Writes columns to a file.
    pub fn of(columns: Vec<(&str, ArrayRef)>, options: WriterOptions) -> Self {
        let batch = RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, array)| (name, array, true)),
        );
        Self::of_batch(&batch.unwrap(), options)
    }

    pub fn of_batch(batch: &RecordBatch, options: WriterOptions) -> Self {
        let mut writer = Writer::new(&batch.schema(), options).unwrap();
        writer.write(batch).unwrap();
        writer.finish().unwrap();
        Self::of_bytes(&writer.take_output())
    }

    pub fn of_bytes(bytes: &[u8]) -> Self {
        let file = Self { directory: tempfile::tempdir().unwrap() };
        std::fs::write(file.path(), bytes).unwrap();
        file
    }

    pub fn path(&self) -> PathBuf {
        self.directory.path().join("t.orc")
    }

    pub fn bytes(&self) -> Vec<u8> {
        std::fs::read(self.path()).unwrap()
    }

    /// The same file with bytes turned over.
    pub fn damaged(&self, at: u64, count: usize) -> Self {
        let mut bytes = self.bytes();
        for byte in &mut bytes[at as usize..at as usize + count] {
            *byte ^= 0x55;
        }
        Self::of_bytes(&bytes)
    }

    /// What the file says about itself.
    pub fn meta(&self) -> serde_json::Value {
        self.meta_with_index("0")
    }

    /// The same, with the row index of a column.
    pub fn meta_with_index(&self, column: &str) -> serde_json::Value {
        let options = stoa_orc_tools::MetaOptions {
            json: true,
            row_index: vec![column.to_owned()],
            ..Default::default()
        };
        let mut out = Vec::new();
        stoa_orc_tools::meta(&self.path(), &options, &mut out).unwrap();
        serde_json::from_slice(&out).unwrap()
    }
}

/// No compression, so that what is in the file depends on this crate only.
pub fn plain() -> WriterOptions {
    WriterOptions::default().with_compression(Compression::None).with_checksums(false)
}

/// Numbers 0, 1, 2 … as a column.
pub fn counting(rows: i64) -> ArrayRef {
    Arc::new(arrow_array::Int64Array::from_iter_values(0..rows))
}

/// Texts of numbers as a column; all different.
pub fn texts(rows: i64) -> ArrayRef {
    let values = (0..rows).map(|row| format!("text {}", row * 7919 % 1_000_003));
    Arc::new(arrow_array::StringArray::from_iter_values(values))
}

/// The text without the directory of the file.
pub fn without_directory(text: &str, path: &Path) -> String {
    text.replace(&path.display().to_string(), "t.orc")
}
