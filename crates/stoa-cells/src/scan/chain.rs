//! Files that follow each other, as one sorted input.
//!
//! Files whose rows do not overlap form a chain and are read one after the other; so a table that was
//! compacted is read without a merge, and only one file of a chain is open at a time.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;

use futures::{StreamExt, stream};
use stoa_env::task;
use stoa_error::{Error, Result};
use stoa_hql::batch::ROW;
use stoa_hql::{CellBatch, CellStream};
use stoa_orc::Literal;
use stoa_table::ScanFile;
use tokio::sync::mpsc;

use super::file::{FileReader, Part, ReadPlan};
use super::fused;
use crate::layout::Layout;
use crate::state::Inner;

/// Bytes of files from which on a chain is read by a task of its own, ahead of the merge.
const AHEAD_BYTES_MIN: u64 = 1 << 20;

/// Batches that such a task is ahead.
const AHEAD_BATCHES: usize = 2;

/// Files, and which of their rows.
pub(super) struct Chain {
    files: VecDeque<(Arc<ScanFile>, Part)>,
    bytes: u64,
}

/// The files as few chains.
pub(super) fn chains(files: Vec<Arc<ScanFile>>, layout: &Layout) -> Result<Vec<Chain>> {
    let row = layout.id(ROW)?;
    let mut chains = Vec::new();
    let mut spans: Vec<(String, String, Arc<ScanFile>)> = Vec::new();
    for file in files {
        let sorted = file.sort_order_id.is_some_and(|order| order > 0);
        let all_text = file.null_counts.get(&row) == Some(&0);
        match (file.lower_bounds.get(&row), file.upper_bounds.get(&row)) {
            _ if !sorted => chains.push(Chain::of(file, Part::Unsorted)),
            (Some(Literal::String(lower)), Some(Literal::String(upper))) if all_text => {
                spans.push((lower.clone(), upper.clone(), file));
            }
            _ if all_text => chains.push(Chain::of(file, Part::All)),
            _ => {
                chains.push(Chain::of(Arc::clone(&file), Part::Text));
                chains.push(Chain::of(file, Part::Bytes));
            }
        }
    }
    spans.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.cmp(&b.1)));
    let mut open: Vec<(String, Chain)> = Vec::new();
    for (lower, upper, file) in spans {
        // Bounds may be wider than the rows are, never narrower.
        match open.iter_mut().find(|(end, _)| end.as_str().cmp(&lower) == Ordering::Less) {
            Some((end, chain)) => {
                *end = upper;
                chain.push(file, Part::All);
            }
            None => open.push((upper, Chain::of(file, Part::All))),
        }
    }
    chains.extend(open.into_iter().map(|(_, chain)| chain));
    Ok(chains)
}

impl Chain {
    fn of(file: Arc<ScanFile>, part: Part) -> Self {
        let mut chain = Self { files: VecDeque::new(), bytes: 0 };
        chain.push(file, part);
        chain
    }

    fn push(&mut self, file: Arc<ScanFile>, part: Part) {
        self.bytes += file.file_bytes;
        self.files.push_back((file, part));
    }

    /// The cells of all files.
    pub(super) fn stream(self, inner: &Arc<Inner>, plan: &Arc<ReadPlan>) -> CellStream {
        // Little is read for single rows: a task is worth its while only beside others.
        let is_little = plan.picks_rows && !plan.is_merged;
        let ahead = self.bytes >= AHEAD_BYTES_MIN && !is_little;
        let reader = ChainReader {
            inner: Arc::clone(inner),
            plan: Arc::clone(plan),
            files: self.files,
            open: None,
        };
        if !ahead {
            return reader.stream();
        }
        // Started when the first batch is wanted.
        fused(stream::once(async move { reader.ahead() }).flatten())
    }
}

struct ChainReader {
    inner: Arc<Inner>,
    plan: Arc<ReadPlan>,
    files: VecDeque<(Arc<ScanFile>, Part)>,
    open: Option<FileReader>,
}

impl ChainReader {
    fn stream(self) -> CellStream {
        fused(stream::try_unfold(self, |mut reader| async move {
            let batch = reader.next().await?;
            Ok(batch.map(|batch| (batch, reader)))
        }))
    }

    /// Reads in a task of its own, which ends when nobody takes its batches.
    fn ahead(mut self) -> CellStream {
        let (sender, receiver) = mpsc::channel(AHEAD_BATCHES);
        let reading = task::spawn(async move {
            while let Some(batch) = self.next().await.transpose() {
                let ended = batch.is_err();
                if sender.send(batch).await.is_err() || ended {
                    return;
                }
            }
        });
        let next = |(mut receiver, reading): (mpsc::Receiver<Result<CellBatch>>, Reading)| async move {
            match receiver.recv().await {
                Some(batch) => Some((batch, (receiver, reading))),
                // A task that broke off must not look like the end.
                None => {
                    let ended = reading.await.err()?;
                    let error = Error::internal("reading a file broke off").with_source(ended);
                    Some((Err(error), (receiver, task::spawn(async {}))))
                }
            }
        };
        fused(stream::unfold((receiver, reading), next))
    }

    async fn next(&mut self) -> Result<Option<CellBatch>> {
        loop {
            if let Some(open) = &mut self.open {
                match open.next().await? {
                    Some(batch) if batch.is_empty() => continue,
                    Some(batch) => return Ok(Some(batch)),
                    None => self.open = None,
                }
            }
            let Some((file, part)) = self.files.pop_front() else { return Ok(None) };
            let plan = Arc::clone(&self.plan);
            self.open = Some(FileReader::open(&self.inner, plan, file, part).await?);
        }
    }
}

type Reading = tokio::task::JoinHandle<()>;
