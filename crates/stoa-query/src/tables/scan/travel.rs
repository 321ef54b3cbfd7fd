//! Scans that are computed by several daemons.
//!
//! In: a scan, and the daemons. Out: a scan for each, which together read each row once; and a scan as bytes, for the
//! daemon that is to compute it. The bytes name the version of the table by its metadata file and the parts of files
//! by location, so what is read does not depend on what the other daemon knows. It looks the files up when the
//! scan begins, with the same predicate in the same version.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result as EngineResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, ReplaceChildrenOptions,
};
use datafusion_proto::protobuf;
use futures::{TryStreamExt, stream};
use prost::Message;
use stoa_catalog::TableIdent;
use stoa_cluster::placement::{Bucket, Candidate, Placement};
use stoa_cluster::{DaemonId, TableId};
use stoa_error::{Error, Result};
use stoa_orc::{ColumnRef, CompareOp, Literal, Predicate};
use stoa_semantics::errors::to_datafusion;
use stoa_table::{ScanFile, TableVersion};
use tokio::sync::OnceCell;
use twox_hash::XxHash3_64;
use uuid::Uuid;

use super::{OrcScanExec, Split, cut, deal, properties_of};
use crate::run::progress::Progress;
use crate::tables::data::Data;

/// A scan as it is sent.
#[derive(Clone, PartialEq, Message)]
struct ScanMessage {
    #[prost(bytes = "vec", tag = "1")]
    table: Vec<u8>,
    #[prost(string, tag = "2")]
    namespace: String,
    #[prost(string, tag = "3")]
    name: String,
    #[prost(string, tag = "4")]
    metadata_location: String,
    #[prost(int64, optional, tag = "5")]
    snapshot: Option<i64>,
    #[prost(uint32, repeated, tag = "6")]
    columns: Vec<u32>,
    #[prost(message, optional, tag = "7")]
    predicate: Option<PredicateMessage>,
    #[prost(uint64, tag = "8")]
    batch_rows: u64,
    #[prost(message, repeated, tag = "9")]
    partitions: Vec<PartitionMessage>,
    #[prost(message, optional, tag = "10")]
    schema: Option<protobuf::Schema>,
}

#[derive(Clone, PartialEq, Message)]
struct PartitionMessage {
    #[prost(message, repeated, tag = "1")]
    splits: Vec<SplitMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct SplitMessage {
    #[prost(string, tag = "1")]
    location: String,
    #[prost(uint32, tag = "2")]
    part: u32,
    #[prost(uint32, tag = "3")]
    parts: u32,
}

#[derive(Clone, PartialEq, Message)]
struct PredicateMessage {
    #[prost(enumeration = "PredicateKind", tag = "1")]
    kind: i32,
    #[prost(message, repeated, tag = "2")]
    parts: Vec<PredicateMessage>,
    #[prost(int32, tag = "3")]
    field_id: i32,
    #[prost(message, repeated, tag = "4")]
    values: Vec<LiteralMessage>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
enum PredicateKind {
    And = 0,
    Or = 1,
    Eq = 2,
    NotEq = 3,
    Lt = 4,
    LtEq = 5,
    Gt = 6,
    GtEq = 7,
    In = 8,
    IsNull = 9,
    IsNotNull = 10,
}

#[derive(Clone, PartialEq, Message)]
struct LiteralMessage {
    #[prost(oneof = "LiteralValue", tags = "1, 2, 3, 4, 5, 6, 7, 8")]
    value: Option<LiteralValue>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum LiteralValue {
    #[prost(bool, tag = "1")]
    Boolean(bool),
    #[prost(int64, tag = "2")]
    Int(i64),
    #[prost(double, tag = "3")]
    Float(f64),
    #[prost(message, tag = "4")]
    Decimal(DecimalMessage),
    #[prost(string, tag = "5")]
    String(String),
    #[prost(bytes, tag = "6")]
    Binary(Vec<u8>),
    #[prost(int32, tag = "7")]
    Date(i32),
    #[prost(int64, tag = "8")]
    TimestampMicros(i64),
}

#[derive(Clone, PartialEq, Message)]
struct DecimalMessage {
    #[prost(bytes = "vec", tag = "1")]
    unscaled: Vec<u8>,
    #[prost(int32, tag = "2")]
    scale: i32,
}

impl OrcScanExec {
    /// The scan as bytes; `None` where another daemon cannot do it: the table is not in the catalog yet, or a
    /// statement keeps to some of its files.
    pub(crate) fn encode(&self) -> Option<Vec<u8>> {
        self.message().map(|message| message.encode_to_vec())
    }

    fn message(&self) -> Option<ScanMessage> {
        let table = &self.table.table;
        if table.is_staged() || !self.table.scans_all() {
            return None;
        }
        let small = |number: usize| u32::try_from(number).ok();
        let partition = |splits: &Vec<Split>| {
            let split = |split: &Split| {
                let (part, parts) = (small(split.part)?, small(split.parts)?);
                Some(SplitMessage { location: split.file.location.clone(), part, parts })
            };
            let splits = splits.iter().map(split).collect::<Option<_>>()?;
            Some(PartitionMessage { splits })
        };
        Some(ScanMessage {
            table: table.uuid().as_bytes().to_vec(),
            namespace: table.ident().namespace.clone(),
            name: table.ident().name.clone(),
            metadata_location: table.metadata_location().to_owned(),
            snapshot: self.plan.snapshot_id,
            columns: self.columns.iter().map(|column| small(*column)).collect::<Option<_>>()?,
            predicate: Some(predicate_message(&self.predicate)?),
            batch_rows: self.batch_rows as u64,
            partitions: self.partitions.iter().map(partition).collect::<Option<_>>()?,
            schema: Some(self.schema.as_ref().try_into().ok()?),
        })
    }

    /// Rows in the files that it reads.
    pub(crate) fn rows(&self) -> u64 {
        let rows = |split: &Split| split.file.rows / split.parts.max(1) as u64;
        self.partitions.iter().flatten().map(rows).sum()
    }

    /// A scan for each daemon, in their order. They have as many plan partitions as this one. Parts of files go to the
    /// daemons that read them the last time, as far as that is even.
    ///
    /// # Errors
    /// None that a caller could do something about.
    pub(crate) fn shares(&self, daemons: &[DaemonId]) -> Result<Vec<Self>> {
        let partitions = self.partitions.len();
        let count = daemons.len().saturating_mul(partitions);
        let splits = cut(&self.plan.files, count, 1);
        let buckets: Vec<Bucket> = splits
            .iter()
            .map(|(bytes, split)| Bucket { number: number_of(split), since: 0, bytes: *bytes })
            .collect();
        let candidates: Vec<Candidate> =
            daemons.iter().map(|daemon| Candidate { daemon: *daemon, weight: 1 }).collect();
        let table = TableId(self.table.table.uuid().into_bytes());
        let placement = Placement::new(table, &buckets, &candidates);
        let mut shares = vec![Vec::new(); daemons.len()];
        for (bytes, split) in splits {
            let home = placement.homes(number_of(&split)).first();
            let home = home.and_then(|home| daemons.iter().position(|daemon| daemon == home));
            if let Some(share) = shares.get_mut(home.unwrap_or_default()) {
                share.push((bytes, split));
            }
        }
        let mut scans: Vec<Self> = shares
            .into_iter()
            .map(|share| self.of_splits(deal(share, partitions)))
            .collect::<Result<_>>()?;
        // What this daemon does itself is counted where the statement is.
        if let Some(own) = scans.first_mut() {
            own.metrics = self.metrics.clone();
            own.progress = Arc::clone(&self.progress);
        }
        Ok(scans)
    }

    fn of_splits(&self, partitions: Vec<Vec<Split>>) -> Result<Self> {
        let (columns, predicate) = (self.columns.clone(), self.predicate.clone());
        let (table, plan) = (self.table.clone(), Arc::clone(&self.plan));
        Self::of_parts(table, columns, predicate, plan, partitions, self.batch_rows)
    }

    /// The scan that another daemon sent.
    async fn open(data: &Data, message: &ScanMessage) -> Result<Self> {
        let ident = TableIdent::new(&message.namespace, &message.name);
        let mut table = data.warehouse().table_at(&ident, &message.metadata_location).await?;
        if Uuid::from_slice(&message.table).ok() != Some(table.uuid()) {
            return Err(Error::conflict(format!("{ident} is another table here")));
        }
        if let Some(id) = message.snapshot
            && table.current_snapshot().is_none_or(|current| current.id != id)
        {
            table = table.at_version(&TableVersion::Snapshot(id))?;
        }
        let table = data.as_engine_table(table);
        let sent = message.predicate.as_ref().ok_or_else(unreadable)?;
        let predicate = predicate_of(sent).ok_or_else(unreadable)?;
        let plan = Arc::new(table.plan_scan(&predicate).await?);
        if plan.snapshot_id != message.snapshot {
            return Err(Error::conflict(format!("{ident} has another snapshot here")));
        }
        let partitions = splits_of(message, &plan.files)?;
        let columns = message.columns.iter().map(|column| *column as usize).collect();
        let batch_rows = usize::try_from(message.batch_rows).unwrap_or(1).max(1);
        Self::of_parts(table, columns, predicate, plan, partitions, batch_rows)
    }
}

/// Names a part of a file among those of its table.
fn number_of(split: &Split) -> u32 {
    let hash = XxHash3_64::oneshot(split.file.location.as_bytes());
    (hash as u32).wrapping_add(u32::try_from(split.part).unwrap_or_default())
}

fn splits_of(message: &ScanMessage, files: &[Arc<ScanFile>]) -> Result<Vec<Vec<Split>>> {
    let files: HashMap<&str, &Arc<ScanFile>> =
        files.iter().map(|file| (file.location.as_str(), file)).collect();
    let split = |sent: &SplitMessage| {
        let file = files.get(sent.location.as_str()).ok_or_else(|| {
            Error::conflict(format!("{} is not in the snapshot here", sent.location))
        })?;
        let (part, parts) = (sent.part as usize, sent.parts as usize);
        match part < parts {
            true => Ok(Split { file: Arc::clone(file), part, parts }),
            false => Err(unreadable()),
        }
    };
    let partition = |sent: &PartitionMessage| sent.splits.iter().map(split).collect();
    message.partitions.iter().map(partition).collect()
}

fn unreadable() -> Error {
    Error::invalid("a scan of another daemon cannot be read").with_sqlstate("08P01")
}

fn predicate_message(predicate: &Predicate) -> Option<PredicateMessage> {
    let of_parts = |kind: PredicateKind, parts: &[Predicate]| {
        let parts = parts.iter().map(predicate_message).collect::<Option<_>>()?;
        Some(PredicateMessage { kind: kind.into(), parts, field_id: 0, values: Vec::new() })
    };
    let of_column = |kind: PredicateKind, column: &ColumnRef, values: &[Literal]| {
        let ColumnRef::Field(field_id) = column else { return None };
        let values = values.iter().map(literal_message).collect();
        Some(PredicateMessage { kind: kind.into(), parts: Vec::new(), field_id: *field_id, values })
    };
    match predicate {
        Predicate::And(parts) => of_parts(PredicateKind::And, parts),
        Predicate::Or(parts) => of_parts(PredicateKind::Or, parts),
        Predicate::Compare { column, op, value } => {
            of_column(kind_of(*op), column, std::slice::from_ref(value))
        }
        Predicate::In { column, values } => of_column(PredicateKind::In, column, values),
        Predicate::IsNull(column) => of_column(PredicateKind::IsNull, column, &[]),
        Predicate::IsNotNull(column) => of_column(PredicateKind::IsNotNull, column, &[]),
    }
}

fn kind_of(op: CompareOp) -> PredicateKind {
    match op {
        CompareOp::Eq => PredicateKind::Eq,
        CompareOp::NotEq => PredicateKind::NotEq,
        CompareOp::Lt => PredicateKind::Lt,
        CompareOp::LtEq => PredicateKind::LtEq,
        CompareOp::Gt => PredicateKind::Gt,
        CompareOp::GtEq => PredicateKind::GtEq,
    }
}

fn literal_message(literal: &Literal) -> LiteralMessage {
    let value = match literal {
        Literal::Boolean(value) => LiteralValue::Boolean(*value),
        Literal::Int(value) => LiteralValue::Int(*value),
        Literal::Float(value) => LiteralValue::Float(*value),
        Literal::Decimal(unscaled, scale) => LiteralValue::Decimal(DecimalMessage {
            unscaled: unscaled.to_le_bytes().to_vec(),
            scale: i32::from(*scale),
        }),
        Literal::String(text) => LiteralValue::String(text.clone()),
        Literal::Binary(bytes) => LiteralValue::Binary(bytes.clone()),
        Literal::Date(days) => LiteralValue::Date(*days),
        Literal::TimestampMicros(micros) => LiteralValue::TimestampMicros(*micros),
    };
    LiteralMessage { value: Some(value) }
}

fn predicate_of(sent: &PredicateMessage) -> Option<Predicate> {
    let parts = || sent.parts.iter().map(predicate_of).collect::<Option<Vec<_>>>();
    let values = || sent.values.iter().map(literal_of).collect::<Option<Vec<_>>>();
    let column = ColumnRef::Field(sent.field_id);
    let compare = |op| Some(Predicate::Compare { column, op, value: values()?.pop()? });
    match PredicateKind::try_from(sent.kind).ok()? {
        PredicateKind::And => parts().map(Predicate::And),
        PredicateKind::Or => parts().map(Predicate::Or),
        PredicateKind::Eq => compare(CompareOp::Eq),
        PredicateKind::NotEq => compare(CompareOp::NotEq),
        PredicateKind::Lt => compare(CompareOp::Lt),
        PredicateKind::LtEq => compare(CompareOp::LtEq),
        PredicateKind::Gt => compare(CompareOp::Gt),
        PredicateKind::GtEq => compare(CompareOp::GtEq),
        PredicateKind::In => values().map(|values| Predicate::In { column, values }),
        PredicateKind::IsNull => Some(Predicate::IsNull(column)),
        PredicateKind::IsNotNull => Some(Predicate::IsNotNull(column)),
    }
}

fn literal_of(sent: &LiteralMessage) -> Option<Literal> {
    Some(match sent.value.clone()? {
        LiteralValue::Boolean(value) => Literal::Boolean(value),
        LiteralValue::Int(value) => Literal::Int(value),
        LiteralValue::Float(value) => Literal::Float(value),
        LiteralValue::Decimal(decimal) => {
            let unscaled = i128::from_le_bytes(decimal.unscaled.try_into().ok()?);
            Literal::Decimal(unscaled, i8::try_from(decimal.scale).ok()?)
        }
        LiteralValue::String(text) => Literal::String(text),
        LiteralValue::Binary(bytes) => Literal::Binary(bytes),
        LiteralValue::Date(days) => Literal::Date(days),
        LiteralValue::TimestampMicros(micros) => Literal::TimestampMicros(micros),
    })
}

/// Both forms of a scan read alike, so that a plan and what is decoded of its bytes can be compared.
impl fmt::Debug for OrcScanExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.message() {
            Some(message) => message.fmt(f),
            None => {
                f.debug_struct("OrcScanExec").field("table", &self.table).finish_non_exhaustive()
            }
        }
    }
}

/// A scan of another daemon. Its files are looked up when it begins.
pub(crate) struct SentScanExec {
    data: Arc<Data>,
    message: Arc<ScanMessage>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    opened: Arc<OnceCell<Arc<OrcScanExec>>>,
    /// Where it counts.
    progress: Arc<OnceLock<Arc<Progress>>>,
}

/// Makes the scans of a plan that another daemon sent count into `progress`.
pub(crate) fn count_sent_scans(plan: &Arc<dyn ExecutionPlan>, progress: &Arc<Progress>) {
    if let Some(scan) = plan.downcast_ref::<SentScanExec>() {
        let _ = scan.progress.set(Arc::clone(progress));
    }
    for input in plan.children() {
        count_sent_scans(input, progress);
    }
}

impl SentScanExec {
    /// The scan that [`OrcScanExec::encode`] wrote.
    ///
    /// # Errors
    /// 08P01: the bytes are no scan.
    pub(crate) fn decode(data: Arc<Data>, bytes: &[u8]) -> Result<Self> {
        let message = ScanMessage::decode(bytes).map_err(|e| unreadable().with_source(e))?;
        let schema = message.schema.as_ref().ok_or_else(unreadable)?;
        let schema: Schema = schema.try_into().map_err(|_| unreadable())?;
        let schema = Arc::new(schema);
        let properties = properties_of(&schema, message.partitions.len());
        let (message, opened, progress) = (Arc::new(message), Arc::default(), Arc::default());
        Ok(Self { data, message, schema, properties, opened, progress })
    }
}

async fn opened(
    data: Arc<Data>,
    message: Arc<ScanMessage>,
    schema: SchemaRef,
    cell: Arc<OnceCell<Arc<OrcScanExec>>>,
    progress: Arc<OnceLock<Arc<Progress>>>,
) -> Result<Arc<OrcScanExec>> {
    let open = || async {
        let scan = OrcScanExec::open(&data, &message).await?;
        if let Some(progress) = progress.get() {
            *scan.progress.write() = Arc::clone(progress);
        }
        match scan.schema == schema {
            true => Ok(Arc::new(scan)),
            false => Err(Error::conflict(format!("{} has other columns here", message.name))),
        }
    };
    cell.get_or_try_init(open).await.map(Arc::clone)
}

impl fmt::Debug for SentScanExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.message.fmt(f)
    }
}

impl DisplayAs for SentScanExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OrcScanExec: table={}.{}", self.message.namespace, self.message.name)
    }
}

impl ExecutionPlan for SentScanExec {
    fn name(&self) -> &str {
        "OrcScanExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> EngineResult<TreeNodeRecursion>,
    ) -> EngineResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        _children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn replace_children(
        self: Arc<Self>,
        _children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.opened.get().and_then(|scan| scan.metrics())
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> EngineResult<SendableRecordBatchStream> {
        let (data, message) = (Arc::clone(&self.data), Arc::clone(&self.message));
        let (schema, cell) = (Arc::clone(&self.schema), Arc::clone(&self.opened));
        let progress = Arc::clone(&self.progress);
        let batches = stream::once(async move {
            let scan = opened(data, message, schema, cell, progress).await;
            let scan = scan.map_err(to_datafusion)?;
            scan.execute(partition, context)
        });
        let schema = Arc::clone(&self.schema);
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches.try_flatten())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn predicates_come_back_as_they_were() {
        let column = ColumnRef::Field(7);
        let values = vec![
            Literal::Boolean(true),
            Literal::Int(i64::MIN),
            Literal::Float(-0.0),
            Literal::Decimal(i128::MAX, -3),
            Literal::String("ä\0".to_owned()),
            Literal::Binary(vec![0, 255]),
            Literal::Date(-1),
            Literal::TimestampMicros(i64::MAX),
        ];
        let compare = |op| Predicate::Compare { column, op, value: Literal::Int(3) };
        use CompareOp::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
        let all = Predicate::And(vec![
            Predicate::Or(vec![]),
            Predicate::Or([Eq, NotEq, Lt, LtEq, Gt, GtEq].map(compare).to_vec()),
            Predicate::In { column, values },
            Predicate::In { column, values: vec![] },
            Predicate::IsNull(column),
            Predicate::IsNotNull(column),
        ]);
        let message = predicate_message(&all).unwrap();
        let bytes = message.encode_to_vec();
        let read = predicate_of(&PredicateMessage::decode(bytes.as_slice()).unwrap()).unwrap();
        assert_eq!(format!("{read:?}"), format!("{all:?}"));
    }
}
