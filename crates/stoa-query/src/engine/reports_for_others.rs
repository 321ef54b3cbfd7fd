//! Reports that other daemons ask for, since this one has their part of the table in memory (`tables::homes`).

use std::sync::{Arc, Weak};

use bytes::Bytes;
use datafusion::execution::memory_pool::MemoryPool;
use futures::FutureExt;
use futures::future::BoxFuture;
use stoa_cluster::DaemonId;
use stoa_error::{Error, Result};
use stoa_ingest::FreshRows;
use stoa_member::Service;
use stoa_report::{Answer, Memory, Report};

use crate::run::memory::ReportMemory;
use crate::run::pool::Pool;
use crate::run::query_pool::QueryPool;
use crate::tables::data::Data;
use crate::tables::homes::{Asked, AskedParts, encode_answer, unreadable};

/// Answers reports of other daemons, or their parts.
#[derive(Clone)]
pub(crate) struct ReportsForOthers {
    /// Whether requests are for some parts of a version.
    pub(crate) in_parts: bool,
    pub(crate) data: Weak<Data>,
    pub(crate) memory: Arc<dyn MemoryPool>,
    pub(crate) pool: Arc<Pool>,
}

impl Service for ReportsForOthers {
    fn answer(&self, _from: DaemonId, body: Bytes) -> BoxFuture<'static, Result<Bytes>> {
        let Self { in_parts, data, memory, pool } = self.clone();
        async move {
            let closed =
                || Error::unavailable("the server is shutting down").with_sqlstate("57P01");
            let data = data.upgrade().ok_or_else(closed)?;
            let memory =
                ReportMemory::of_statement(&memory, &QueryPool::new(pool), &Arc::default());
            match in_parts {
                true => answer_parts(&data, body, &memory).await,
                false => answer_here(&data, body, &memory).await,
            }
        }
        .boxed()
    }
}

async fn answer_here(data: &Data, mut body: Bytes, memory: &dyn Memory) -> Result<Bytes> {
    let asked = Asked::read(&mut body).ok_or_else(unreadable)?;
    let snapshot = data.snapshot(&asked.ident).await?;
    let table = &snapshot.table;
    if table.uuid() != asked.uuid || table.schema_id() != asked.schema_id {
        return Err(Error::conflict(format!("{} is another table here", asked.ident)));
    }
    let report = Report::decode(body, table)?;
    let answer = data.reports().run_within(table, &snapshot.fresh, &report, memory).await?;
    answered(data, answer.as_ref())
}

/// Answers a report on the data files of some parts of a version, which must be the current one.
async fn answer_parts(data: &Data, mut body: Bytes, memory: &dyn Memory) -> Result<Bytes> {
    let asked = Asked::read(&mut body).ok_or_else(unreadable)?;
    let AskedParts { version, first_sort_column, parts } =
        AskedParts::read(&mut body).ok_or_else(unreadable)?;
    let table = data.warehouse().table(&asked.ident).await?;
    if table.uuid() != asked.uuid || table.metadata_location() != version {
        return Err(Error::conflict(format!("{} has another version here", asked.ident)));
    }
    let report = Report::decode(body, &table)?;
    let (fresh, parts) = (FreshRows::none(&table), (first_sort_column, &parts));
    let answer = data.reports().run_parts(&table, &fresh, &report, parts, memory).await?;
    answered(data, answer.as_ref())
}

fn answered(data: &Data, answer: Option<&Answer>) -> Result<Bytes> {
    if let Some(homes) = data.homes() {
        homes.count_for_others();
    }
    encode_answer(answer)
}
