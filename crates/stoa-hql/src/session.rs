//! Runs statements: from what was written to calls of the store, and from cells to what is printed.
//!
//! In: one statement as text or as [`Statement`]. Out: through [`Output`], or an error. A session
//! has a namespace, which USE changes, and reads and writes files only through its
//! [`Files`].
//!
//! **Invariants:** a statement that fails has changed nothing (the store's promise), except that a
//! file it was writing may be there in part. Memory is bounded by batches.
//!
//! Not here: the grammar (`lang`), prompts and meta commands (`shell`), storage (`store`).

mod dump;
pub(crate) mod help;
mod load;
mod namespaces;
mod select;
mod spec;
mod tables;
mod write;

use std::sync::Arc;

use stoa_error::{Error, Result};

use crate::budget::{MemoryBudget, Unlimited};
use crate::files::Files;
use crate::lang::ast::{ClusterCommand, Compact, CompactTarget, Statement};
use crate::lang::parse;
use crate::name::{NamespacePath, TableName};
use crate::output::{Output, Statistics};
use crate::schema::TableSchema;
use crate::store::{CellStore, CompactScope, errors};
use crate::time_text::{TimestampFormat, Zone};

/// How a session prints and reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionOptions {
    /// How SELECT prints timestamps.
    pub timestamp_format: TimestampFormat,
    /// The zone of timestamps that are written as dates.
    pub zone: Zone,
    /// Leave out statistics and progress.
    pub silent: bool,
}

/// A client's view of a store. Starts in the root namespace.
pub struct Session {
    store: Arc<dyn CellStore>,
    files: Arc<dyn Files>,
    options: SessionOptions,
    namespace: NamespacePath,
    budget: Arc<dyn MemoryBudget>,
}

impl Session {
    /// A session on `store` that sees `files`.
    pub fn new(store: Arc<dyn CellStore>, files: Arc<dyn Files>, options: SessionOptions) -> Self {
        let namespace = NamespacePath::root();
        Self { store, files, options, namespace, budget: Arc::new(Unlimited) }
    }

    /// The session, with the memory of `budget` for long lines of load files.
    #[must_use]
    pub fn with_memory_budget(mut self, budget: Arc<dyn MemoryBudget>) -> Self {
        self.budget = budget;
        self
    }

    /// The namespace it is in.
    pub fn namespace(&self) -> &NamespacePath {
        &self.namespace
    }

    /// The store.
    pub fn store(&self) -> &Arc<dyn CellStore> {
        &self.store
    }

    /// The files it sees.
    pub fn files(&self) -> &Arc<dyn Files> {
        &self.files
    }

    /// Parses one statement and runs it.
    ///
    /// # Errors
    /// That the text is no statement, with the place; and those of [`run`](Self::run).
    pub async fn run_text(&mut self, text: &str, out: &mut dyn Output) -> Result<()> {
        let statement = parse(text)?;
        self.run(statement, out).await
    }

    /// Runs one statement.
    ///
    /// # Errors
    /// Those of the store and the files, and
    /// [`Invalid`](stoa_error::ErrorKind::Invalid) or
    /// [`NotFound`](stoa_error::ErrorKind::NotFound) for what the statement asks. Dropping the
    /// future cancels it: reads stop; a write may or may not have happened.
    pub async fn run(&mut self, statement: Statement, out: &mut dyn Output) -> Result<()> {
        match statement {
            Statement::Use(name) => self.use_namespace(&name).await,
            Statement::CreateNamespace { name, if_not_exists } => {
                self.create_namespace(&name, if_not_exists).await
            }
            Statement::DropNamespace { name, if_exists } => {
                self.drop_namespace(&name, if_exists).await
            }
            Statement::ShowTables => self.list(false, out).await,
            Statement::GetListing => self.list(true, out).await,
            Statement::CreateTable { name, source } => self.create_table(&name, source).await,
            Statement::AlterTable { name, change } => self.alter_table(&name, change).await,
            Statement::RenameTable { from, to } => {
                self.store.rename_table(&self.table(&from)?, &self.table(&to)?).await
            }
            Statement::DropTable { name, if_exists } => self.drop_table(&name, if_exists).await,
            Statement::ExistsTable(name) => self.exists_table(&name, out).await,
            Statement::DescribeTable { name, with_ids } => {
                self.describe_table(&name, with_ids, out).await
            }
            Statement::ShowCreateTable(name) => self.show_create_table(&name, out).await,
            Statement::Insert { table, cells } => self.insert(&table, &cells, out).await,
            Statement::Delete(delete) => self.delete(&delete, out).await,
            Statement::Select(select) => self.select(&select, out).await,
            Statement::LoadData(load) => self.load_data(load, out).await,
            Statement::DumpTable(dump) => self.dump_table(&dump, out).await,
            Statement::Compact(compact) => self.compact(compact).await,
            // Answers do not depend on indices, and a store keeps its own up to date.
            Statement::RebuildIndices { table, .. } => self.open(&table).await.map(|_| ()),
            Statement::SetReadonly(on) => self.store.set_readonly(on).await,
            Statement::Status => out.write(b"Hypertable OK\n"),
            Statement::WaitForMaintenance => self.store.wait_for_maintenance().await,
            Statement::Close => Ok(()),
            Statement::Help(topic) => out.write(help::text(&topic).as_bytes()),
            Statement::Cluster { command, .. } => Err(not_needed(command)),
        }
    }

    async fn compact(&self, compact: Compact) -> Result<()> {
        let scope = match compact.target {
            CompactTarget::Ranges(_) => CompactScope::Everything,
            CompactTarget::Table { name, row } => {
                let table = self.table(&name)?;
                CompactScope::Table { table, row: row.map(String::into_bytes) }
            }
        };
        self.store.compact(scope, compact.kind).await
    }

    /// The full name of a table.
    fn table(&self, name: &str) -> Result<TableName> {
        TableName::resolve(&self.namespace, name)
    }

    /// A table's full name and its schema.
    async fn open(&self, name: &str) -> Result<(TableName, Arc<TableSchema>)> {
        let table = self.table(name)?;
        match self.store.schema(&table).await? {
            Some(schema) => Ok((table, schema)),
            None => Err(self.missing_table(&table).await),
        }
    }

    /// The error of a table that does not exist; names the nearest one.
    async fn missing_table(&self, table: &TableName) -> Error {
        let error = errors::missing_table(table);
        let Ok(entries) = self.store.listing(&table.namespace).await else {
            return error.with_hint(format!("there is no namespace {} either", table.namespace));
        };
        let score = |name: &str| strsim::jaro_winkler(name, &table.name);
        let names = entries.iter().filter(|entry| !entry.is_namespace).map(|e| e.name.as_str());
        match names.max_by(|a, b| score(a).total_cmp(&score(b))) {
            Some(near) if score(near) > 0.75 => error.with_hint(format!("did you mean '{near}'?")),
            _ => error,
        }
    }

    fn print_statistics(
        &self,
        statistics: &Statistics,
        writes: bool,
        out: &mut dyn Output,
    ) -> Result<()> {
        if self.options.silent {
            return Ok(());
        }
        out.notice(&statistics.text(writes))
    }
}

fn not_needed(command: ClusterCommand) -> Error {
    let hint = match command {
        ClusterCommand::Balance => "every daemon reads every table: there is nothing to move",
        ClusterCommand::Stop | ClusterCommand::Shutdown => {
            "end the process; what was acknowledged is durable"
        }
        ClusterCommand::Heapcheck => "the console and /metrics show the memory in use",
    };
    Error::unsupported(format!("{command} is a command to Hypertable's cluster")).with_hint(hint)
}
