//! Reports that other daemons ask for, since this one has their part of the table in memory (`tables::homes`).

use std::sync::{Arc, Weak};

use bytes::Bytes;
use datafusion::execution::memory_pool::MemoryPool;
use futures::FutureExt;
use futures::future::BoxFuture;
use stoa_cluster::DaemonId;
use stoa_error::{Error, Result};
use stoa_member::Service;
use stoa_report::{Memory, Report};

use crate::run::memory::ReportMemory;
use crate::run::pool::Pool;
use crate::run::query_pool::QueryPool;
use crate::tables::data::Data;
use crate::tables::homes::{Asked, encode_answer, unreadable};

/// Answers reports of other daemons.
pub(crate) struct ReportsForOthers {
    pub(crate) data: Weak<Data>,
    pub(crate) memory: Arc<dyn MemoryPool>,
    pub(crate) pool: Arc<Pool>,
}

impl Service for ReportsForOthers {
    fn answer(&self, _from: DaemonId, body: Bytes) -> BoxFuture<'static, Result<Bytes>> {
        let (data, memory, pool) =
            (Weak::clone(&self.data), Arc::clone(&self.memory), Arc::clone(&self.pool));
        async move {
            let closed =
                || Error::unavailable("the server is shutting down").with_sqlstate("57P01");
            let data = data.upgrade().ok_or_else(closed)?;
            let memory =
                ReportMemory::of_statement(&memory, &QueryPool::new(pool), &Arc::default());
            answer_here(&data, body, &memory).await
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
    if let Some(homes) = data.homes() {
        homes.count_for_others();
    }
    encode_answer(answer.as_ref())
}
