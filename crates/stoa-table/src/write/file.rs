//! One ORC data file on its way to the store.

use std::collections::VecDeque;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use iceberg::spec::{DataContentType, DataFile, DataFileBuilder, DataFileFormat, Schema, Struct};
use object_store::{ObjectStoreExt, PutPayload};
use parking_lot::Mutex;
use stoa_error::{Error, Place, Result};
use stoa_orc::{FileSummary, Writer};
use stoa_store::{Location, Stores, Upload, from_object_store};

use super::OrcOptions;
use crate::metrics::file_metrics;
use crate::order::{OrderWatch, TableOrder};

/// Bytes of one part of an upload. Object stores want at least 5 MiB, and some (R2) that all but the
/// last are equal. A file that is smaller is put whole: one request instead of three.
const PART_BYTES: usize = 8 << 20;

/// Parts on their way at a time, per file.
const PARTS_IN_FLIGHT_MAX: usize = 2;

/// What all files of a writer have in common.
pub(super) struct FileTarget<'a> {
    pub(super) schema: &'a SchemaRef,
    pub(super) options: &'a OrcOptions,
}

/// A file being written. Dropped unfinished, the upload is given up.
///
/// The mutexes are never locked: they make the whole `Sync`, so that futures that borrow it can
/// move between threads.
pub(super) struct OpenFile {
    location: String,
    place: Location,
    orc: Mutex<Writer>,
    /// Begun with the first part.
    upload: Mutex<Option<Upload>>,
    /// The encoder's own estimates, after the last batch.
    orc_memory_bytes: usize,
    estimated_bytes: u64,
    /// Output not yet handed to the store.
    pending: VecDeque<Bytes>,
    pending_bytes: usize,
    /// Bytes of the parts that may be on their way, the latest last.
    in_flight: VecDeque<usize>,
    watch: OrderWatch,
}

/// A finished, durable file.
pub(super) struct WrittenFile {
    location: String,
    summary: FileSummary,
    in_order: bool,
}

impl OpenFile {
    pub(super) fn create(
        stores: &Stores,
        location: String,
        target: &FileTarget<'_>,
    ) -> Result<Self> {
        let orc = Writer::new(target.schema, target.options.as_ref().clone())?;
        let place = stores.resolve(&location)?;
        Ok(Self {
            location,
            orc_memory_bytes: orc.memory_bytes(),
            estimated_bytes: 0,
            orc: Mutex::new(orc),
            place,
            upload: Mutex::new(None),
            pending: VecDeque::new(),
            pending_bytes: 0,
            in_flight: VecDeque::new(),
            watch: OrderWatch::default(),
        })
    }

    /// Adds rows; hands full parts to the store.
    pub(super) async fn write(
        &mut self,
        batch: &RecordBatch,
        order: Option<&TableOrder>,
    ) -> Result<()> {
        if let Some(order) = order {
            self.watch.observe(order, batch)?;
        }
        self.orc.get_mut().write(batch).map_err(|error| error.at(Place::file(&self.location)))?;
        self.collect();
        while self.pending_bytes >= PART_BYTES {
            self.send(PART_BYTES).await?;
        }
        Ok(())
    }

    /// About how large the file would be if it ended now.
    pub(super) fn estimated_bytes(&self) -> u64 {
        self.estimated_bytes
    }

    /// Bytes held in memory for the file, parts on their way included.
    pub(super) fn memory_bytes(&self) -> usize {
        let in_flight: usize = self.in_flight.iter().sum();
        self.orc_memory_bytes + self.pending_bytes + in_flight
    }

    /// Writes the rest and makes the file durable.
    pub(super) async fn finish(mut self) -> Result<WrittenFile> {
        let summary =
            self.orc.get_mut().finish().map_err(|error| error.at(Place::file(&self.location)))?;
        self.collect();
        while self.pending_bytes > PART_BYTES {
            self.send(PART_BYTES).await?;
        }
        self.complete(summary.file_bytes).await?;
        Ok(WrittenFile { location: self.location, summary, in_order: self.watch.in_order() })
    }

    /// Sends what is pending and makes the whole, of `file_bytes`, durable.
    async fn complete(&mut self, file_bytes: u64) -> Result<()> {
        let failed = |source| from_object_store(&self.location, source);
        if self.upload.get_mut().is_none() {
            let payload: PutPayload = std::mem::take(&mut self.pending).into_iter().collect();
            self.pending_bytes = 0;
            let put = self.place.store.put(&self.place.path, payload).await;
            return put.map(drop).map_err(failed);
        }
        self.send(self.pending_bytes).await?;
        let Some(upload) = self.upload.get_mut().take() else { return Ok(()) };
        let Err(error) = upload.complete().await else { return Ok(()) };
        // If the answer to a first try was lost, the second finds no upload, but the file: its name is
        // nobody else's.
        if matches!(error, object_store::Error::NotFound { .. })
            && let Ok(there) = self.place.store.head(&self.place.path).await
            && there.size == file_bytes
        {
            return Ok(());
        }
        Err(from_object_store(&self.location, error))
    }

    /// Gives the upload up; nothing of it stays.
    pub(super) async fn abort(mut self) -> Result<()> {
        let Some(upload) = self.upload.get_mut().take() else { return Ok(()) };
        upload.abort().await.map_err(|source| from_object_store(&self.location, source))
    }

    fn collect(&mut self) {
        let orc = self.orc.get_mut();
        let output = orc.take_output();
        self.orc_memory_bytes = orc.memory_bytes();
        self.estimated_bytes = orc.estimated_bytes();
        if !output.is_empty() {
            self.pending_bytes += output.len();
            self.pending.push_back(output);
        }
    }

    /// Hands the first `bytes` of pending output to the store as one part, in the background.
    async fn send(&mut self, bytes: usize) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let payload = self.take(bytes);
        let bytes = payload.content_length();
        let failed = |source| from_object_store(&self.location, source);
        let upload = match self.upload.get_mut() {
            Some(upload) => upload,
            none => {
                let begun = Upload::begin(&self.place.store, &self.place.path).await;
                none.insert(begun.map_err(failed)?)
            }
        };
        upload.put_part(payload, PARTS_IN_FLIGHT_MAX).await.map_err(failed)?;
        self.in_flight.push_back(bytes);
        if self.in_flight.len() > PARTS_IN_FLIGHT_MAX {
            self.in_flight.pop_front();
        }
        Ok(())
    }

    /// The first `bytes` of pending output, which is that long at least.
    fn take(&mut self, bytes: usize) -> PutPayload {
        let mut parts = Vec::new();
        let mut wanted = bytes;
        while wanted > 0
            && let Some(mut first) = self.pending.pop_front()
        {
            if first.len() > wanted {
                self.pending.push_front(first.split_off(wanted));
            }
            wanted -= first.len();
            parts.push(first);
        }
        self.pending_bytes -= bytes - wanted;
        parts.into_iter().collect()
    }
}

impl WrittenFile {
    /// Whether its rows are in the order that they were watched for.
    pub(super) fn in_order(&self) -> bool {
        self.in_order
    }

    /// The file's entry in a manifest.
    pub(super) fn data_file(
        self,
        schema: &Schema,
        partition: Struct,
        partition_spec_id: i32,
        sort_order_id: Option<i32>,
    ) -> Result<DataFile> {
        let metrics = file_metrics(schema, &self.summary);
        let offsets = self.summary.stripe_offsets.iter();
        let offsets = offsets.filter_map(|offset| i64::try_from(*offset).ok()).collect();
        let mut builder = DataFileBuilder::default();
        builder
            .content(DataContentType::Data)
            .file_path(self.location.clone())
            .file_format(DataFileFormat::Orc)
            .partition(partition)
            .partition_spec_id(partition_spec_id)
            .record_count(self.summary.rows)
            .file_size_in_bytes(self.summary.file_bytes)
            .column_sizes(metrics.column_sizes)
            .value_counts(metrics.value_counts)
            .null_value_counts(metrics.null_counts)
            .nan_value_counts(metrics.nan_counts)
            .lower_bounds(metrics.lower_bounds)
            .upper_bounds(metrics.upper_bounds)
            .split_offsets(Some(offsets));
        if let Some(order) = sort_order_id {
            builder.sort_order_id(order);
        }
        builder.build().map_err(|source| {
            Error::internal("no manifest entry can be made")
                .at(Place::file(&self.location))
                .with_source(source)
        })
    }
}
