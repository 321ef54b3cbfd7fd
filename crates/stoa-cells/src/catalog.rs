//! Namespaces and tables as names: making, listing, altering, renaming, dropping.
//!
//! Every change is one transaction or one compare-and-swap of the catalog. A name may stand for a
//! namespace or for a table, as in Hypertable; both are asked for before one is made. Tables of other
//! kinds take their names, but are not listed.

use std::collections::BTreeMap;

use futures::{StreamExt, TryStreamExt, stream};
use stoa_error::{Condition, ErrorKind, Result};
use stoa_hql::store::errors;
use stoa_hql::{ListingEntry, NamespacePath, TableName, TableSchema};
use stoa_table::{Table, TableChange, TableIdent, Warehouse};

use crate::layout::{KIND_CELLS, KIND_PROPERTY, SCHEMA_PROPERTY, schema_text, spec};
use crate::names::{ROOT_NAMESPACE, ident_of, name_of, namespace_of, path_of};
use crate::table::{CellTable, in_words_of_hql, is_missing};

/// Property of the root namespace: whether the store takes no writes. It lasts until it is changed.
const READONLY: &str = "stoa.cells.readonly";

/// Tables whose metadata is read at the same time.
const OPEN_MAX: usize = 8;

pub(crate) async fn namespace_exists(
    warehouse: &Warehouse,
    namespace: &NamespacePath,
) -> Result<bool> {
    if namespace.is_root() {
        return Ok(true);
    }
    warehouse.catalog().namespace_exists(&namespace_of(namespace)).await
}

/// Whether the store was told to take no writes.
pub(crate) async fn is_readonly(warehouse: &Warehouse) -> Result<bool> {
    match warehouse.catalog().namespace_properties(ROOT_NAMESPACE).await {
        Ok(properties) => Ok(properties.get(READONLY).is_some_and(|value| value == "true")),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Notes that the store shall take no writes, or take them again.
pub(crate) async fn set_readonly(warehouse: &Warehouse, readonly: bool) -> Result<()> {
    let change = BTreeMap::from([(READONLY.to_owned(), readonly.then(|| "true".to_owned()))]);
    warehouse.catalog().set_namespace_properties(ROOT_NAMESPACE, &change).await
}

pub(crate) async fn create_namespace(
    warehouse: &Warehouse,
    namespace: &NamespacePath,
) -> Result<()> {
    let (Some(parent), Some(name)) = (namespace.parent(), namespace.name()) else {
        return Err(errors::namespace_exists(namespace));
    };
    check_namespace(warehouse, &parent).await?;
    let as_table = TableName { namespace: parent, name: name.to_owned() };
    if table_exists(warehouse, &as_table).await? {
        return Err(errors::namespace_exists(namespace));
    }
    let made = warehouse.create_namespace(&namespace_of(namespace), &BTreeMap::new()).await;
    made.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => errors::namespace_exists(namespace),
        _ => error,
    })
}

pub(crate) async fn drop_namespace(warehouse: &Warehouse, namespace: &NamespacePath) -> Result<()> {
    check_namespace(warehouse, namespace).await?;
    let inner = inner_namespaces(warehouse, namespace).await?;
    if namespace.is_root() || !inner.is_empty() {
        return Err(errors::namespace_not_empty(namespace));
    }
    let dropped = warehouse.drop_namespace(&namespace_of(namespace)).await;
    dropped.map_err(|error| {
        if error.is(Condition::DependentObjects) {
            errors::namespace_not_empty(namespace)
        } else if error.is(Condition::UndefinedSchema) {
            errors::missing_namespace(namespace)
        } else {
            error
        }
    })
}

pub(crate) async fn listing(
    warehouse: &Warehouse,
    namespace: &NamespacePath,
) -> Result<Vec<ListingEntry>> {
    check_namespace(warehouse, namespace).await?;
    let inner = inner_namespaces(warehouse, namespace).await?;
    let inner = inner.into_iter().map(|name| ListingEntry { name, is_namespace: true });
    let tables = cell_tables(warehouse, &namespace_of(namespace)).await?;
    let tables = tables.iter().filter_map(|table| name_of(table.ident()));
    let tables = tables.map(|table| ListingEntry { name: table.name, is_namespace: false });
    let mut entries: Vec<ListingEntry> = inner.chain(tables).collect();
    entries.sort();
    Ok(entries)
}

/// The tables of cells in a namespace of the catalog; none if there is no such namespace.
pub(crate) async fn cell_tables(warehouse: &Warehouse, namespace: &str) -> Result<Vec<Table>> {
    let idents = match warehouse.tables(namespace).await {
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        idents => idents?,
    };
    let open = |ident: TableIdent| async move {
        match warehouse.table(&ident).await {
            // Dropped since it was listed.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
            Ok(table) => {
                Ok(Some(table).filter(|table| table.property(KIND_PROPERTY) == Some(KIND_CELLS)))
            }
        }
    };
    let opening: Vec<_> = idents.into_iter().map(open).collect();
    let opened: Vec<Option<Table>> = stream::iter(opening).buffered(OPEN_MAX).try_collect().await?;
    Ok(opened.into_iter().flatten().collect())
}

pub(crate) async fn create_table(
    warehouse: &Warehouse,
    table: &TableName,
    schema: &TableSchema,
) -> Result<()> {
    check_namespace(warehouse, &table.namespace).await?;
    check_free(warehouse, table).await?;
    let made = warehouse.create_table(&ident_of(table), spec(schema)?).await;
    made.map(|_| ()).map_err(|error| in_words_of_hql(error, table))
}

pub(crate) async fn alter_table(
    warehouse: &Warehouse,
    table: &TableName,
    schema: &TableSchema,
) -> Result<()> {
    let known = CellTable::open(warehouse, table).await?;
    if known.schema.generation + 1 != schema.generation {
        return Err(errors::altered_meanwhile(table));
    }
    let before = known.table.property(SCHEMA_PROPERTY).unwrap_or_default().to_owned();
    let after = BTreeMap::from([(SCHEMA_PROPERTY.to_owned(), schema_text(schema)?)]);
    let unless_altered =
        TableChange::RequireProperty { key: SCHEMA_PROPERTY.to_owned(), value: before };
    let altered = known.table.alter(vec![unless_altered, TableChange::SetProperties(after)]).await;
    altered.map(|_| ()).map_err(|error| match error.kind() {
        ErrorKind::Conflict => errors::altered_meanwhile(table).with_source(error),
        _ => in_words_of_hql(error, table),
    })
}

pub(crate) async fn rename_table(
    warehouse: &Warehouse,
    from: &TableName,
    to: &TableName,
) -> Result<()> {
    let known = CellTable::open(warehouse, from).await?;
    check_namespace(warehouse, &to.namespace).await?;
    check_free(warehouse, to).await?;
    let renamed = warehouse.rename_only(&known.table, &ident_of(to)).await;
    renamed.map_err(|error| match error.is(Condition::DuplicateTable) {
        true => errors::table_exists(to),
        false => in_words_of_hql(error, from),
    })
}

/// Drops a table of cells with its files; gives back what it was.
pub(crate) async fn drop_table(warehouse: &Warehouse, table: &TableName) -> Result<Table> {
    let known = CellTable::open(warehouse, table).await?;
    let dropped = warehouse.drop_only(&known.table, true).await;
    dropped.map_err(|error| in_words_of_hql(error, table))?;
    Ok(known.table)
}

async fn check_namespace(warehouse: &Warehouse, namespace: &NamespacePath) -> Result<()> {
    match namespace_exists(warehouse, namespace).await? {
        true => Ok(()),
        false => Err(errors::missing_namespace(namespace)),
    }
}

async fn check_free(warehouse: &Warehouse, table: &TableName) -> Result<()> {
    let as_namespace = table.namespace.resolve(&table.name)?;
    let taken =
        namespace_exists(warehouse, &as_namespace).await? || table_exists(warehouse, table).await?;
    if taken { Err(errors::table_exists(table)) } else { Ok(()) }
}

/// Whether there is a table of this name, of cells or not.
async fn table_exists(warehouse: &Warehouse, table: &TableName) -> Result<bool> {
    match warehouse.catalog().pointer(&ident_of(table)).await {
        Ok(_) => Ok(true),
        Err(error) if is_missing(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Names of the namespaces right within one.
async fn inner_namespaces(warehouse: &Warehouse, of: &NamespacePath) -> Result<Vec<String>> {
    let all = warehouse.namespaces().await?;
    let inner = all.iter().filter_map(|namespace| path_of(namespace));
    let inner = inner.filter(|path| path.parent().as_ref() == Some(of));
    Ok(inner.filter_map(|path| path.name().map(str::to_owned)).collect())
}
