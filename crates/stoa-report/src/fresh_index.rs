//! Of which batches of fresh rows something is kept, so that it goes when they have gone.

use std::collections::HashMap;

use parking_lot::Mutex;
use stoa_ingest::FreshBatchId;

use crate::cache::Key;

/// Rows of a block; the last of a batch may have fewer.
pub(crate) const BLOCK_ROWS: usize = 8192;

/// Of which batches, by number, something is kept.
#[derive(Default)]
pub(crate) struct FreshIndex(Mutex<HashMap<u64, KeptBatch>>);

struct KeptBatch {
    id: FreshBatchId,
    blocks: u32,
    /// Columns of which there are zones or chunks.
    fields: Vec<i32>,
}

impl KeptBatch {
    fn keys(&self) -> impl Iterator<Item = Key> {
        let batch = self.id.number();
        self.fields.iter().flat_map(move |field| {
            let field = *field;
            let chunk = move |block| Key::FreshChunk { batch, block, field };
            (0..self.blocks).map(chunk).chain([Key::FreshZones { batch, field }])
        })
    }
}

impl FreshIndex {
    /// Takes note that something of a batch will be kept. Gives back what is kept of batches that
    /// have gone.
    pub(crate) fn note(&self, id: &FreshBatchId, rows: usize, field: i32) -> Vec<Key> {
        let mut batches = self.0.lock();
        let mut gone = Vec::new();
        if !batches.contains_key(&id.number()) {
            let is_gone = |_: &u64, batch: &mut KeptBatch| batch.id.is_gone();
            gone.extend(
                batches.extract_if(is_gone).flat_map(|(_, b)| b.keys().collect::<Vec<_>>()),
            );
        }
        let blocks = rows.div_ceil(BLOCK_ROWS) as u32;
        let new = || KeptBatch { id: id.clone(), blocks, fields: Vec::new() };
        let batch = batches.entry(id.number()).or_insert_with(new);
        if !batch.fields.contains(&field) {
            batch.fields.push(field);
        }
        gone
    }
}
