//! Transaction blocks: what a session writes between BEGIN and COMMIT is kept aside until then.
//!
//! In: control statements, and what sinks would have written. Out, at COMMIT: rows alone as one
//! record of the commit log; everything else as files, in one transaction of the catalog. At
//! ROLLBACK: nothing.
//!
//! | written in a block | kept | seen by the block's own statements |
//! |---|---|---|
//! | a few rows (INSERT, COPY) | in memory | yes |
//! | UPDATE, DELETE, MERGE, TRUNCATE, INSERT OVERWRITE, or many rows; once per table | in files that no snapshot names | no: reading that table is refused |
//!
//! **Invariants:** nothing of a block is visible to others before its COMMIT, and all of it after.
//! A statement that fails, or is given up, leaves nothing in its block. What a block cannot take back
//! is refused in it (0A000) once something is kept that it could be mixed up with.
//!
//! Not here: which statements are allowed, and what they read (`dispatch::effects`); the state that the
//! PostgreSQL protocol tells clients (`stoa-pgwire`).

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::RecordBatch;
use arrow::compute::concat_batches;
use datafusion::catalog::Session as EngineSession;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use parking_lot::Mutex;
use stoa_catalog::TableIdent;
use stoa_error::{Error, ErrorKind, Result};
use stoa_ingest::{Durability, Ingest, TableRows};
use stoa_table::{RewriteOptions, Table, TableRewrite};

use crate::tables::changes::{self, Reading};
use crate::tables::table::StoaTable;
use stoa_sql::{Isolation, TransactionControl, TransactionModes};

/// Rows that a block keeps in memory, bytes.
const ROWS_BYTES_MAX: usize = 64 << 20;

/// Rows that one record of the commit log takes; more become files at COMMIT.
const RECORD_BYTES_MAX: usize = 16 << 20;

/// The transaction block of a session, if it is in one; shared with what runs for it.
pub(crate) struct Block {
    /// Whether there is a block: all that statements outside of one look at.
    is_open: AtomicBool,
    state: Mutex<State>,
    memory: Arc<dyn MemoryPool>,
}

#[derive(Default)]
struct State {
    open: Option<Open>,
    /// Counts the ends of blocks, and what undoes a part of one: no statement that began before may
    /// write after.
    era: u64,
}

/// A block that was begun.
struct Open {
    read_only: bool,
    isolation: Isolation,
    /// The one state that all statements read, if they are to.
    snapshot: Option<Arc<HashMap<TableIdent, StoaTable>>>,
    /// Whether a statement has run.
    used: bool,
    /// Whether one has failed: nothing but the end, or a savepoint, is left.
    failed: bool,
    /// Rows that were added, in the order in which they came.
    rows: Vec<TableRows>,
    /// The memory that they take.
    memory: MemoryReservation,
    /// Of each table at most one that removes rows, before those that only add some.
    changes: Vec<Change>,
    /// Commands that took effect at once.
    lasting: Vec<String>,
    savepoints: Vec<Savepoint>,
}

/// How much there was when it was made.
struct Savepoint {
    name: String,
    rows: usize,
    changes: usize,
    lasting: usize,
}

/// A change of one table that waits for its COMMIT.
pub(crate) struct Change {
    pub(crate) table: Table,
    pub(crate) rewrite: Box<TableRewrite>,
    pub(crate) removes: Removes,
    /// What must still be so at COMMIT.
    pub(crate) reading: Option<Arc<Reading>>,
}

/// What a change does beside adding rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Removes {
    Nothing,
    /// Rows that were chosen when it was made.
    Rows,
    /// The table partitions into which its own rows go: no other rows may come to these.
    WrittenPartitions,
}

/// The way of one statement's rows into the block that it belongs to.
#[derive(Clone)]
pub(crate) struct Staging {
    block: Arc<Block>,
    era: u64,
}

impl Block {
    /// No block yet; rows that one keeps are counted in `memory`.
    pub(crate) fn new(memory: Arc<dyn MemoryPool>) -> Self {
        Self { is_open: AtomicBool::new(false), state: Mutex::default(), memory }
    }

    /// Where a plan that is made in `state` writes to; `None` outside of a block.
    pub(crate) fn staging_of(state: &dyn EngineSession) -> Option<Staging> {
        state.config().get_extension::<Self>()?.staging()
    }

    /// Where a statement that begins now writes to; `None` outside of a block.
    pub(crate) fn staging(self: &Arc<Self>) -> Option<Staging> {
        if !self.is_open() {
            return None;
        }
        let state = self.state.lock();
        state.open.as_ref().map(|_| Staging { block: Arc::clone(self), era: state.era })
    }

    /// Whether there is a block.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// Notes that a statement failed.
    pub(crate) fn fail(&self) {
        if !self.is_open() {
            return;
        }
        let mut state = self.state.lock();
        state.era += 1;
        if let Some(open) = state.open.as_mut() {
            open.failed = true;
        }
    }

    /// Whether one did.
    pub(crate) fn has_failed(&self) -> bool {
        self.is_open() && self.with(|open| open.failed).unwrap_or(false)
    }

    /// Refuses statements after one that failed.
    ///
    /// # Errors
    /// 25P02.
    pub(crate) fn check_usable(&self, control: Option<&TransactionControl>) -> Result<()> {
        use TransactionControl::{Commit, Rollback, RollbackToSavepoint};
        let leaves = matches!(control, Some(Commit | Rollback | RollbackToSavepoint(_)));
        if leaves || !self.has_failed() {
            return Ok(());
        }
        let message =
            "current transaction is aborted, commands ignored until end of transaction block";
        Err(Error::invalid(message).with_sqlstate("25P02").with_hint("send ROLLBACK"))
    }

    /// Whether statements may not write; `None` outside of a block.
    pub(crate) fn is_read_only(&self) -> Option<bool> {
        if self.is_open() { self.with(|open| open.read_only) } else { None }
    }

    /// What statements see of others; `None` outside of a block.
    pub(crate) fn isolation(&self) -> Option<Isolation> {
        if self.is_open() { self.with(|open| open.isolation) } else { None }
    }

    /// Notes that a statement runs.
    pub(crate) fn note_used(&self) {
        self.with(|open| open.used = true);
    }

    /// Whether there is something that COMMIT would write.
    pub(crate) fn has_writes(&self) -> bool {
        self.is_open()
            && self.with(|open| !open.rows.is_empty() || !open.changes.is_empty()).unwrap_or(false)
    }

    /// Whether what is read is not what everybody reads.
    pub(crate) fn reads_its_own(&self) -> bool {
        let own = |open: &mut Open| {
            open.isolation == Isolation::RepeatableRead
                || !open.rows.is_empty()
                || !open.changes.is_empty()
        };
        self.is_open() && self.with(own).unwrap_or(false)
    }

    /// Whether all statements are to read one state, which is not there yet.
    pub(crate) fn wants_snapshot(&self) -> bool {
        let wants = |open: &mut Open| {
            open.isolation == Isolation::RepeatableRead && open.snapshot.is_none()
        };
        self.is_open() && self.with(wants).unwrap_or(false)
    }

    /// Takes the state that all statements read, if there is none yet.
    pub(crate) fn put_snapshot(&self, tables: Vec<StoaTable>) {
        let by_name = tables.into_iter().map(|table| (table.table.ident().clone(), table));
        let by_name = Arc::new(by_name.collect::<HashMap<_, _>>());
        self.with(|open| {
            open.snapshot.get_or_insert(by_name);
        });
    }

    /// The tables of the state that all statements read, if they do.
    ///
    /// # Errors
    /// `NotFound` (42P01) for one that was not there.
    pub(crate) fn snapshot(&self, idents: &[TableIdent]) -> Result<Option<Vec<StoaTable>>> {
        let snapshot = self.with(|open| open.snapshot.clone()).flatten();
        let Some(snapshot) = snapshot else { return Ok(None) };
        let table = |ident: &TableIdent| {
            snapshot.get(ident).cloned().ok_or_else(|| {
                Error::not_found(format!("relation \"{ident}\" does not exist"))
                    .with_sqlstate("42P01")
                    .with_detail("it was made after the transaction's snapshot")
            })
        };
        idents.iter().map(table).collect::<Result<_>>().map(Some)
    }

    /// The same tables with the rows that the block has added.
    ///
    /// # Errors
    /// `Unsupported` for a table whose change is not made yet; `Conflict` where its columns changed.
    pub(crate) fn with_own(&self, tables: Vec<StoaTable>) -> Result<Vec<StoaTable>> {
        let state = self.state.lock();
        let Some(open) = state.open.as_ref() else { return Ok(tables) };
        tables.into_iter().map(|table| open.with_own(table)).collect()
    }

    /// Whether the block may keep a change that removes rows of `table`; outside of one nothing is
    /// refused.
    ///
    /// # Errors
    /// `Unsupported` (0A000).
    pub(crate) fn check_removal(&self, table: &Table) -> Result<()> {
        if !self.is_open() {
            return Ok(());
        }
        self.with(|open| open.check_change(table, Removes::Rows)).unwrap_or(Ok(()))
    }

    /// Refuses a command that takes effect at once, where ROLLBACK would undo what was written before
    /// it, or the block's one state would not show what it does.
    ///
    /// # Errors
    /// `Unsupported` (0A000).
    pub(crate) fn check_lasting(&self, command: &str) -> Result<()> {
        let check = |open: &mut Open| {
            if !open.rows.is_empty() || !open.changes.is_empty() {
                return Err(refused(format!(
                    "{command} after writes in the same transaction block"
                )));
            }
            if open.snapshot.is_some() {
                return Err(refused(format!("{command} in a REPEATABLE READ transaction block")));
            }
            Ok(())
        };
        self.with(check).unwrap_or(Ok(()))
    }

    /// Notes a command that has taken effect; whether this is in a block.
    pub(crate) fn note_lasting(&self, command: &str) -> bool {
        self.with(|open| open.lasting.push(command.to_owned())).is_some()
    }

    /// Runs a control statement; `defaults` are the session's. Gives back what the user should know.
    ///
    /// # Errors
    /// Levels that there are not (0A000), no such savepoint (3B001), a savepoint outside of a block
    /// (25P01), and those of the commit: then nothing of the block is there, unless the error says
    /// otherwise.
    pub(crate) async fn control(
        &self,
        control: &TransactionControl,
        defaults: TransactionModes,
        ingest: Option<&Ingest>,
    ) -> Result<Option<String>> {
        use TransactionControl as Control;
        let is_open = self.is_open();
        match control {
            Control::Begin(_) if is_open => {
                Ok(Some("there is already a transaction in progress".to_owned()))
            }
            Control::Commit | Control::Rollback if !is_open => {
                Ok(Some("there is no transaction in progress".to_owned()))
            }
            Control::Savepoint(_) | Control::Release(_) | Control::RollbackToSavepoint(_)
                if !is_open =>
            {
                let tag = control.tag();
                Err(Error::invalid(format!("{tag} can only be used in transaction blocks"))
                    .with_sqlstate("25P01"))
            }
            Control::Begin(modes) => self.begin(*modes, defaults).map(|()| None),
            Control::Commit => match self.end() {
                Some(open) => open.commit(ingest).await.map(|()| None),
                None => Ok(None),
            },
            Control::Rollback => Ok(self.roll_back().await),
            Control::Modes(modes) => self.set_modes(*modes).map(|()| None),
            Control::Savepoint(name) => {
                self.with(|open| open.savepoint(name));
                Ok(None)
            }
            Control::Release(name) => {
                self.with(|open| open.release(name).map(drop)).unwrap_or(Ok(())).map(|()| None)
            }
            Control::RollbackToSavepoint(name) => {
                let (undone, notice) = self.roll_back_to(name)?;
                discard(undone).await;
                Ok(notice)
            }
        }
    }

    /// Ends the block without a trace, if there is one; what stays all the same, as a notice.
    pub(crate) async fn roll_back(&self) -> Option<String> {
        let open = self.end()?;
        discard(open.changes).await;
        what_stays(&open.lasting)
    }

    /// Ends the block, if there is one, without waiting for its files to be deleted.
    pub(crate) fn abandon(&self) {
        if self.is_open() {
            drop(self.end());
        }
    }

    /// Sets what the transaction is like; outside of one it has no effect.
    ///
    /// # Errors
    /// Levels that there are not (0A000), or too late (25001).
    pub(crate) fn set_modes(&self, modes: TransactionModes) -> Result<()> {
        modes.isolation.unwrap_or_default().check()?;
        self.with(|open| open.set_modes(modes)).unwrap_or(Ok(()))
    }

    fn begin(&self, modes: TransactionModes, defaults: TransactionModes) -> Result<()> {
        let isolation = modes.isolation.or(defaults.isolation).unwrap_or_default();
        isolation.check()?;
        let mut state = self.state.lock();
        state.open = Some(Open {
            read_only: modes.read_only.or(defaults.read_only).unwrap_or(false),
            isolation,
            snapshot: None,
            used: false,
            failed: false,
            rows: Vec::new(),
            memory: MemoryConsumer::new("transaction block").register(&self.memory),
            changes: Vec::new(),
            lasting: Vec::new(),
            savepoints: Vec::new(),
        });
        self.is_open.store(true, Ordering::Release);
        Ok(())
    }

    /// Takes the block's content.
    fn end(&self) -> Option<Open> {
        let mut state = self.state.lock();
        state.era += 1;
        self.is_open.store(false, Ordering::Release);
        state.open.take()
    }

    /// Undoes what was written since a savepoint, which stays.
    fn roll_back_to(&self, name: &str) -> Result<(Vec<Change>, Option<String>)> {
        let mut state = self.state.lock();
        state.era += 1;
        let Some(open) = state.open.as_mut() else { return Ok((Vec::new(), None)) };
        let savepoint = open.release(name)?;
        open.rows.truncate(savepoint.rows);
        let bytes: usize = open.rows.iter().map(|rows| bytes_of(&rows.batch)).sum();
        // There is less than before, so that this cannot fail.
        let _ = open.memory.try_resize(bytes);
        let undone = open.changes.split_off(savepoint.changes);
        let notice = what_stays(&open.lasting[savepoint.lasting..]);
        open.failed = false;
        open.savepoints.push(savepoint);
        Ok((undone, notice))
    }

    /// `None` outside of a block.
    fn with<T>(&self, act: impl FnOnce(&mut Open) -> T) -> Option<T> {
        self.state.lock().open.as_mut().map(act)
    }
}

impl Staging {
    /// Keeps rows of `table`, in its own types, until COMMIT.
    ///
    /// # Errors
    /// As [`Block::check_removal`]; `Exhausted` for more rows than a block keeps (54000), or than there is memory for (53200);
    /// `Cancelled` where the statement was given up.
    pub(crate) fn keep_rows(&self, table: &Table, batch: RecordBatch) -> Result<()> {
        let mut state = self.block.state.lock();
        let open = state.open_since(self.era)?;
        if batch.num_rows() == 0 {
            return Ok(());
        }
        open.check_change(table, Removes::Nothing)?;
        let bytes = bytes_of(&batch);
        if open.memory.size().saturating_add(bytes) > ROWS_BYTES_MAX {
            return Err(Error::new(
                ErrorKind::Exhausted,
                format!("a transaction keeps at most {} MiB of new rows", ROWS_BYTES_MAX >> 20),
            )
            .with_sqlstate("54000")
            .with_hint("commit more often, or send many rows in one INSERT or COPY"));
        }
        open.memory.try_grow(bytes).map_err(|source| {
            Error::new(ErrorKind::Exhausted, "there is no memory for the rows of a transaction")
                .with_sqlstate("53200")
                .with_source(source)
                .with_hint("commit more often, or raise memory_limit")
        })?;
        open.rows.push(TableRows { table: table.clone(), batch });
        Ok(())
    }

    /// Keeps a change until COMMIT; deletes its files where that is refused.
    ///
    /// # Errors
    /// As [`Block::check_removal`]; `Cancelled` where the statement was given up.
    pub(crate) async fn keep_change(&self, change: Change) -> Result<()> {
        match self.put(change) {
            Ok(()) => Ok(()),
            Err((change, error)) => {
                change.discard().await;
                Err(error)
            }
        }
    }

    fn put(&self, change: Change) -> std::result::Result<(), (Change, Error)> {
        let mut state = self.block.state.lock();
        let open = match state.open_since(self.era) {
            Ok(open) => open,
            Err(error) => return Err((change, error)),
        };
        match open.check_change(&change.table, change.removes) {
            Ok(()) => {
                open.changes.push(change);
                Ok(())
            }
            Err(error) => Err((change, error)),
        }
    }
}

impl State {
    fn open_since(&mut self, era: u64) -> Result<&mut Open> {
        let is_same = self.era == era;
        self.open.as_mut().filter(|_| is_same).ok_or_else(|| {
            Error::new(ErrorKind::Cancelled, "the transaction ended while a statement of it ran")
                .with_sqlstate("57014")
        })
    }
}

impl Open {
    fn with_own(&self, table: StoaTable) -> Result<StoaTable> {
        let (ident, uuid) = (table.table.ident(), table.table.uuid());
        if self.changes.iter().any(|change| change.table.uuid() == uuid) {
            return Err(refused(format!(
                "reading table {ident} after it was changed in the same transaction"
            )));
        }
        let own = self.rows.iter().filter(|rows| rows.table.uuid() == uuid);
        if own.clone().any(|rows| rows.table.schema_id() != table.table.schema_id()) {
            return Err(columns_changed(ident));
        }
        let own: Vec<RecordBatch> = own.map(|rows| rows.batch.clone()).collect();
        Ok(if own.is_empty() { table } else { table.with_own(own) })
    }

    fn check_change(&self, table: &Table, removes: Removes) -> Result<()> {
        let (ident, uuid) = (table.ident(), table.uuid());
        let mut earlier = self.changes.iter().filter(|change| change.table.uuid() == uuid);
        if earlier.clone().any(|change| change.removes == Removes::WrittenPartitions) {
            return Err(refused(format!(
                "writing to table {ident} after INSERT OVERWRITE in the same transaction"
            )));
        }
        if removes == Removes::Nothing {
            return Ok(());
        }
        if self.isolation == Isolation::RepeatableRead {
            return Err(refused("a change of rows in a REPEATABLE READ transaction"));
        }
        if earlier.next().is_some() {
            return Err(refused(format!("a second change of table {ident} in one transaction")));
        }
        if self.rows.iter().any(|rows| rows.table.uuid() == uuid) {
            return Err(refused(format!(
                "a change of table {ident} after INSERT into it in the same transaction"
            )));
        }
        Ok(())
    }

    fn set_modes(&mut self, modes: TransactionModes) -> Result<()> {
        let too_late =
            |message: &str| Err(Error::invalid(message.to_owned()).with_sqlstate("25001"));
        if let Some(isolation) = modes.isolation
            && isolation != self.isolation
        {
            if self.used {
                return too_late("SET TRANSACTION ISOLATION LEVEL must be called before any query");
            }
            self.isolation = isolation;
        }
        match modes.read_only {
            Some(false) if self.read_only && self.used => {
                too_late("transaction read-write mode must be set before any query")
            }
            Some(read_only) => {
                self.read_only = read_only;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn savepoint(&mut self, name: &str) {
        self.savepoints.push(Savepoint {
            name: name.to_owned(),
            rows: self.rows.len(),
            changes: self.changes.len(),
            lasting: self.lasting.len(),
        });
    }

    /// Forgets a savepoint and those after it.
    fn release(&mut self, name: &str) -> Result<Savepoint> {
        let place = self.savepoints.iter().rposition(|known| known.name == name);
        let found = place.and_then(|place| self.savepoints.drain(place..).next());
        found.ok_or_else(|| {
            Error::invalid(format!("savepoint \"{name}\" does not exist")).with_sqlstate("3B001")
        })
    }

    /// Makes all of it visible, or nothing.
    async fn commit(self, ingest: Option<&Ingest>) -> Result<()> {
        let Self { rows, changes, memory, .. } = self;
        let bytes = memory.size();
        let rows = match by_table(rows) {
            Ok(rows) => rows,
            Err(error) => {
                discard(changes).await;
                return Err(error);
            }
        };
        match ingest {
            Some(ingest) if changes.is_empty() && bytes <= RECORD_BYTES_MAX => {
                append(ingest, rows).await
            }
            _ => {
                let changes = with_rows(changes, rows).await?;
                commit_all(changes).await
            }
        }
    }
}

/// Rows alone: one record of the log.
async fn append(ingest: &Ingest, mut rows: Vec<TableRows>) -> Result<()> {
    match rows.len() {
        0 => Ok(()),
        1 => {
            let TableRows { table, batch } = rows.remove(0);
            ingest.append(&table, batch, Durability::Table).await.map(drop)
        }
        _ => ingest.append_all(rows, Durability::Table).await.map(drop),
    }
}

/// One change for each table, with its rows; a table that has only rows gets a change that adds them.
async fn with_rows(changes: Vec<Change>, rows: Vec<TableRows>) -> Result<Vec<Change>> {
    let mut merged = merged(changes).await?;
    for TableRows { table, batch } in rows {
        if let Err(error) = add_rows(&mut merged, table, batch).await {
            discard(merged).await;
            return Err(error);
        }
    }
    Ok(merged)
}

/// One change for each table.
async fn merged(changes: Vec<Change>) -> Result<Vec<Change>> {
    let mut merged: Vec<Change> = Vec::with_capacity(changes.len());
    let mut changes = changes.into_iter();
    while let Some(change) = changes.next() {
        let uuid = change.table.uuid();
        let Some(first) = merged.iter_mut().find(|first| first.table.uuid() == uuid) else {
            merged.push(change);
            continue;
        };
        if first.table.schema_id() != change.table.schema_id() {
            let error = columns_changed(change.table.ident());
            change.discard().await;
            discard(changes.collect()).await;
            discard(merged).await;
            return Err(error);
        }
        first.rewrite.take_over(*change.rewrite)?;
    }
    Ok(merged)
}

async fn add_rows(changes: &mut Vec<Change>, table: Table, batch: RecordBatch) -> Result<()> {
    let place = changes.iter().position(|change| change.table.uuid() == table.uuid());
    let place = match place {
        Some(place) => place,
        None => {
            let rewrite = Box::new(table.rewrite(RewriteOptions::default())?);
            let removes = Removes::Nothing;
            changes.push(Change { table: table.clone(), rewrite, removes, reading: None });
            changes.len() - 1
        }
    };
    let change = &mut changes[place];
    if change.table.schema_id() != table.schema_id() {
        return Err(columns_changed(table.ident()));
    }
    change.rewrite.write(batch).await
}

/// Commits changes of different tables in one transaction of the catalog.
async fn commit_all(changes: Vec<Change>) -> Result<()> {
    let readings: Vec<(Arc<Reading>, TableIdent)> = changes
        .iter()
        .filter_map(|change| {
            let reading = change.reading.as_ref()?;
            Some((Arc::clone(reading), change.table.ident().clone()))
        })
        .collect();
    let _publishing = match changes::publish_all(&readings).await {
        Ok(publishing) => publishing,
        Err(error) => {
            discard(changes).await;
            return Err(error);
        }
    };
    let mut rewrites: Vec<TableRewrite> =
        changes.into_iter().map(|change| *change.rewrite).collect();
    match rewrites.len() {
        0 => Ok(()),
        1 => rewrites.remove(0).commit().await?.committed().map(drop),
        _ => TableRewrite::commit_all(rewrites).await,
    }
}

impl Change {
    /// Deletes what was written. What cannot be deleted is an orphan.
    async fn discard(self) {
        if let Err(error) = self.rewrite.abort().await {
            let table = self.table.ident();
            tracing::debug!(%table, %error, "files of a rolled back transaction stay");
        }
    }
}

async fn discard(changes: Vec<Change>) {
    for change in changes {
        change.discard().await;
    }
}

/// The rows of each table together.
fn by_table(rows: Vec<TableRows>) -> Result<Vec<TableRows>> {
    let mut tables: Vec<(Table, Vec<RecordBatch>)> = Vec::new();
    for TableRows { table, batch } in rows {
        match tables.iter_mut().find(|(known, _)| known.uuid() == table.uuid()) {
            Some((known, _)) if known.schema_id() != table.schema_id() => {
                return Err(columns_changed(table.ident()));
            }
            Some((_, batches)) => batches.push(batch),
            None => tables.push((table, vec![batch])),
        }
    }
    let joined = |(table, batches): (Table, Vec<RecordBatch>)| -> Result<TableRows> {
        let schema = table.schema();
        let batch = concat_batches(&schema, &batches)
            .map_err(|e| Error::internal("cannot join the rows of a transaction").with_source(e))?;
        Ok(TableRows { table, batch })
    };
    tables.into_iter().map(joined).collect()
}

fn bytes_of(batch: &RecordBatch) -> usize {
    stoa_ingest::memory_bytes(batch)
}

/// What a rollback does not undo.
fn what_stays(lasting: &[String]) -> Option<String> {
    let commands = lasting.join(", ");
    (!lasting.is_empty()).then(|| format!("{commands} took effect at once and is not undone"))
}

fn columns_changed(ident: &TableIdent) -> Error {
    Error::conflict(format!("the columns of table {ident} changed during the transaction"))
        .with_hint("nothing was written; roll back and run the transaction again")
}

fn refused(what: impl std::fmt::Display) -> Error {
    Error::unsupported(format!("{what} is not supported"))
        .with_hint("docs/transactions.md says what a transaction may hold; run it outside of BEGIN")
}
