//! Changes of a table's schema, order, partitioning and properties.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use iceberg::spec::{
    MAIN_BRANCH, NestedField, NestedFieldRef, PartitionSpec, PrimitiveType, Schema,
    SnapshotReference, SnapshotRetention, TableMetadataBuilder, Type,
};
use stoa_error::{Condition, Error, ErrorKind, Result};

use crate::commit::{self, Attempt, Change, Ended, Step};
use crate::declared::{self, DeclaredType};
use crate::defaults::{is_of_column, key_of};
use crate::error::{duplicate_column, from_iceberg, invalid_request, undefined_column};
use crate::files::LoadedMetadata;
use crate::positions::{is_position, reserved};
use crate::schema::{FieldIds, field_to_iceberg, primitive_to_iceberg};
use crate::table::Table;
use crate::warehouse::{partition_spec, sort_order};
use crate::{ColumnPosition, TableChange, TableVersion, property, write};

impl Table {
    /// Applies `changes` in order, as one commit.
    ///
    /// # Errors
    /// `Invalid` or `Unsupported` for a change that cannot be, `Conflict` where other writers won
    /// too many times. Nothing is changed then.
    pub fn alter(&self, changes: Vec<TableChange>) -> BoxFuture<'_, Result<Self>> {
        Box::pin(async move {
            let changes = changes.as_slice();
            match commit::commit(self, &Alteration { changes }).await? {
                Ended::Committed(table) => Ok(table),
                Ended::Stopped(never) => match never {},
            }
        })
    }
}

struct Alteration<'a> {
    changes: &'a [TableChange],
}

impl Change for Alteration<'_> {
    type Stop = Infallible;

    fn attempt<'a>(&'a self, base: &'a Table, _: u32) -> BoxFuture<'a, Result<Step<Infallible>>> {
        std::future::ready(changed(base, self.changes).map(Step::Commit)).boxed()
    }

    /// A change of the schema leaves no mark of its own.
    fn is_in(&self, _: &Table) -> bool {
        false
    }
}

fn changed(base: &Table, changes: &[TableChange]) -> Result<Attempt> {
    let mut builder = commit::builder(base);
    let mut schema = Evolution::of(base);
    for change in changes {
        builder = match change {
            TableChange::SetProperties(properties) => {
                check_properties(base, properties.keys())?;
                property::check(base.ident(), properties)?;
                let properties: HashMap<_, _> = properties.clone().into_iter().collect();
                builder.set_properties(properties).map_err(|e| invalid_request(base.ident(), e))?
            }
            TableChange::UnsetProperties(keys) => {
                check_properties(base, keys.iter())?;
                builder.remove_properties(keys).map_err(|e| invalid_request(base.ident(), e))?
            }
            TableChange::RequireProperty { key, value } => {
                require_property(base, key, value)?;
                builder
            }
            TableChange::SetSortOrder(terms) => {
                let order = sort_order(base.ident(), &schema.build()?, terms)?;
                let builder = schema.flush(builder)?;
                let failed = |e| invalid_request(base.ident(), e);
                builder
                    .add_sort_order(order)
                    .and_then(|b| b.set_default_sort_order(TableMetadataBuilder::LAST_ADDED.into()))
                    .map_err(failed)?
            }
            TableChange::SetPartitioning(terms) => {
                let spec = partition_spec(base.ident(), &schema.build()?, terms)?;
                let builder = schema.flush(builder)?;
                builder
                    .add_default_partition_spec(spec)
                    .map_err(|e| invalid_request(base.ident(), e))?
            }
            TableChange::CreateTag { name, snapshot_id } => {
                let tag = new_tag(base, name, *snapshot_id)?;
                builder.set_ref(name, tag).map_err(|e| invalid_request(base.ident(), e))?
            }
            TableChange::DropTag(name) => {
                check_tag(base, name)?;
                builder.remove_ref(name)
            }
            TableChange::SetDefault { column, default } => {
                let key = key_of(schema.id_of(column)?);
                match default {
                    None => builder.remove_properties(&[key]),
                    Some(text) => builder.set_properties(HashMap::from([(key, text.clone())])),
                }
                .map_err(|e| invalid_request(base.ident(), e))?
            }
            TableChange::DropColumn(name) => {
                let id = schema.id_of(name)?;
                let keys = [key_of(id), declared::key_of(id)];
                schema.apply(change)?;
                builder.remove_properties(&keys).map_err(|e| invalid_request(base.ident(), e))?
            }
            TableChange::AddColumn { field, .. } => {
                schema.apply(change)?;
                let key = declared::key_of(schema.id_of(field.name())?);
                match DeclaredType::of(field) {
                    None => builder,
                    Some(declared) => builder
                        .set_properties(HashMap::from([(key, declared.to_string())]))
                        .map_err(|e| invalid_request(base.ident(), e))?,
                }
            }
            TableChange::ChangeType { column, declared, .. } => {
                let key = declared::key_of(schema.id_of(column)?);
                let before = base.property(&key).and_then(DeclaredType::from_text);
                schema.apply(change)?;
                check_widens(base, column, before, *declared)?;
                match declared {
                    None => builder.remove_properties(&[key]),
                    Some(declared) => {
                        builder.set_properties(HashMap::from([(key, declared.to_string())]))
                    }
                }
                .map_err(|e| invalid_request(base.ident(), e))?
            }
            column_change => {
                schema.apply(column_change)?;
                builder
            }
        };
    }
    let builder = schema.flush(builder)?;
    let attempt = commit::build(base, builder, Vec::new())?;
    if changes.iter().any(may_keep_from_writing) {
        check_can_be_written(base, &attempt)?;
    }
    Ok(attempt)
}

/// Refuses a declared type of which rows that are there may be none.
fn check_widens(
    base: &Table,
    column: &str,
    before: Option<DeclaredType>,
    declared: Option<DeclaredType>,
) -> Result<()> {
    match (declared, declared::holds_all(declared, before)) {
        (Some(declared), false) => {
            let before = before.map_or_else(|| "a wider type".to_owned(), |of| of.to_string());
            Err(Error::unsupported(format!(
                "table {}: column {column:?} of {before} cannot become {declared}",
                base.ident()
            ))
            .with_detail("types widen only: rows that are there may not fit")
            .with_hint("create a table as it should be, and copy the rows into it"))
        }
        _ => Ok(()),
    }
}

fn new_tag(base: &Table, name: &str, snapshot_id: Option<i64>) -> Result<SnapshotReference> {
    let ident = base.ident();
    if base.named_snapshots()?.iter().any(|named| named.name == name) || name == MAIN_BRANCH {
        return Err(Error::new(
            ErrorKind::AlreadyExists,
            format!("table {ident} has a tag or branch \"{name}\" already"),
        )
        .with_sqlstate("42710"));
    }
    let Some(snapshot_id) = snapshot_id.or_else(|| base.metadata().current_snapshot_id()) else {
        return Err(Error::invalid(format!("table {ident} has no snapshot to be tagged"))
            .with_sqlstate("55000")
            .with_hint("rows that are not yet in files are in none: FLUSH TABLE writes them"));
    };
    let of = base.at_version(&TableVersion::Snapshot(snapshot_id))?;
    let snapshot_id = of.metadata().current_snapshot_id().unwrap_or(snapshot_id);
    Ok(SnapshotReference::new(snapshot_id, SnapshotRetention::Tag { max_ref_age_ms: None }))
}

fn check_tag(base: &Table, name: &str) -> Result<()> {
    let named = base.named_snapshots()?;
    match named.iter().any(|named| named.name == name && !named.is_branch) {
        true => Ok(()),
        false => Err(Error::not_found(format!("table {} has no tag \"{name}\"", base.ident()))
            .with_sqlstate("42704")),
    }
}

/// Whether a change can leave a table that cannot be written: by its properties, or by columns that they
/// name.
fn may_keep_from_writing(change: &TableChange) -> bool {
    matches!(
        change,
        TableChange::SetProperties(_)
            | TableChange::UnsetProperties(_)
            | TableChange::DropColumn(_)
            | TableChange::RenameColumn { .. }
    )
}

/// Refuses a version of the table of which no data file could be written.
fn check_can_be_written(base: &Table, attempt: &Attempt) -> Result<()> {
    let metadata = Arc::new(attempt.metadata.clone());
    let schema = declared::schema_of(&metadata)?;
    let loaded = LoadedMetadata { metadata, schema, bytes: 0 };
    let ident = base.ident().clone();
    write::check_properties(&Table::new(base.warehouse().clone(), ident, Arc::new(loaded), None))
}

/// Fails where somebody else has changed the property since it was read.
fn require_property(base: &Table, key: &str, value: &str) -> Result<()> {
    if base.property(key) == Some(value) {
        return Ok(());
    }
    Err(Error::conflict(format!("table {}: property {key} was changed meanwhile", base.ident()))
        .with_hint("read the table again and decide anew"))
}

/// Properties that a writer could not follow are refused when they are set.
fn check_properties<'a>(base: &Table, keys: impl Iterator<Item = &'a String>) -> Result<()> {
    for key in keys {
        if key == "format-version" || key == "write.format.default" {
            return Err(Error::unsupported(format!(
                "table {}: property {key} cannot be changed",
                base.ident()
            ))
            .with_hint("Stoa's tables are Iceberg v2 with ORC files"));
        }
        if is_position(key) || is_of_column(key) {
            return Err(reserved(base.ident(), key));
        }
    }
    Ok(())
}

/// A schema while it is changed.
struct Evolution<'a> {
    table: &'a Table,
    spec: &'a PartitionSpec,
    fields: Vec<NestedFieldRef>,
    identifiers: Vec<i32>,
    last_id: i32,
    changed: bool,
}

impl<'a> Evolution<'a> {
    fn of(table: &'a Table) -> Self {
        let metadata = table.metadata();
        let schema = metadata.current_schema();
        Self {
            table,
            spec: table.partition_spec(),
            fields: schema.as_struct().fields().to_vec(),
            identifiers: schema.identifier_field_ids().collect(),
            last_id: metadata.last_column_id(),
            changed: false,
        }
    }

    fn apply(&mut self, change: &TableChange) -> Result<()> {
        match change {
            TableChange::AddColumn { field, position } => self.add(field, position)?,
            TableChange::DropColumn(name) => self.drop(name)?,
            TableChange::RenameColumn { from, to } => self.rename(from, to)?,
            TableChange::ChangeType { column, data_type, .. } => {
                let index = self.find(column)?;
                let field = &self.fields[index];
                let wanted = primitive_to_iceberg(data_type);
                let promoted = promote(&field.field_type, wanted.as_ref()).ok_or_else(|| {
                    Error::unsupported(format!(
                        "table {}: column {column:?} of type {} cannot become {data_type}",
                        self.table.ident(),
                        field.field_type
                    ))
                    .with_sqlstate("42804")
                    .with_hint(
                        "types widen only: int to bigint, float to double, decimal to more digits",
                    )
                })?;
                self.edit(index, |field| *field.field_type = Type::Primitive(promoted));
            }
            TableChange::SetNullable(column) => {
                let index = self.find(column)?;
                if self.identifiers.contains(&self.fields[index].id) {
                    let table = self.table.ident();
                    let what = format!("table {table}: column {column:?} is in the primary key");
                    return Err(Error::invalid(what)
                        .with_sqlstate("42P16")
                        .with_hint("columns of a key are NOT NULL"));
                }
                self.edit(index, |field| field.required = false);
            }
            TableChange::SetColumnComment { column, comment } => {
                let index = self.find(column)?;
                self.edit(index, |field| field.doc = comment.clone());
            }
            TableChange::RequireProperty { .. }
            | TableChange::SetProperties(_)
            | TableChange::UnsetProperties(_)
            | TableChange::SetSortOrder(_)
            | TableChange::SetPartitioning(_)
            | TableChange::SetDefault { .. }
            | TableChange::CreateTag { .. }
            | TableChange::DropTag(_) => {}
        }
        self.changed = true;
        Ok(())
    }

    fn add(&mut self, field: &arrow_schema::Field, position: &ColumnPosition) -> Result<()> {
        self.check_free(field.name())?;
        if !field.is_nullable() {
            return Err(Error::unsupported(format!(
                "table {}: column {:?} cannot be added as NOT NULL",
                self.table.ident(),
                field.name()
            ))
            .with_hint("rows written before do not have it: leave NOT NULL out"));
        }
        let mut ids = FieldIds::after(self.last_id);
        let added = field_to_iceberg(field, &mut ids)?;
        self.last_id = ids.last();
        let index = match position {
            ColumnPosition::First => 0,
            ColumnPosition::Last => self.fields.len(),
            ColumnPosition::After(name) => self.find(name)? + 1,
        };
        self.fields.insert(index, added);
        Ok(())
    }

    fn drop(&mut self, name: &str) -> Result<()> {
        let index = self.find(name)?;
        let id = self.fields[index].id;
        let used = |what: &str, hint: &str| {
            Error::invalid(format!("table {}: column {name:?} {what}", self.table.ident()))
                .with_condition(Condition::DependentObjects)
                .with_hint(hint)
        };
        if self.fields.len() == 1 {
            return Err(used("is the only one", "drop the table instead"));
        }
        if self.spec.fields().iter().any(|field| field.source_id == id) {
            return Err(used("partitions the table", "a partition column stays"));
        }
        if self.table.metadata().default_sort_order().fields.iter().any(|f| f.source_id == id) {
            return Err(used("is in the table's sort order", "change the sort order first"));
        }
        self.fields.remove(index);
        // What is left of a key does not identify a row.
        if self.identifiers.contains(&id) {
            self.identifiers.clear();
        }
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> Result<()> {
        let index = self.find(from)?;
        if from == to {
            return Ok(());
        }
        if to.is_empty() {
            return Err(Error::invalid("a column name cannot be empty").with_sqlstate("42602"));
        }
        self.check_free(to)?;
        self.edit(index, |field| field.name = to.to_owned());
        Ok(())
    }

    fn id_of(&self, name: &str) -> Result<i32> {
        self.find(name).map(|index| self.fields[index].id)
    }

    fn find(&self, name: &str) -> Result<usize> {
        self.fields
            .iter()
            .position(|field| field.name == name)
            .ok_or_else(|| undefined_column(self.table.ident(), name))
    }

    fn check_free(&self, name: &str) -> Result<()> {
        match self.fields.iter().any(|field| field.name == name) {
            true => Err(duplicate_column(self.table.ident(), name)),
            false => Ok(()),
        }
    }

    fn edit(&mut self, index: usize, change: impl FnOnce(&mut NestedField)) {
        if let Some(field) = self.fields.get_mut(index) {
            let mut edited = NestedField::clone(field);
            change(&mut edited);
            *field = Arc::new(edited);
        }
    }

    fn build(&self) -> Result<Schema> {
        Schema::builder()
            .with_fields(self.fields.iter().cloned())
            .with_identifier_field_ids(self.identifiers.iter().copied())
            .build()
            .map_err(|e| from_iceberg(self.table.ident(), e))
    }

    /// Gives the changes so far to the builder.
    fn flush(&mut self, builder: TableMetadataBuilder) -> Result<TableMetadataBuilder> {
        if !std::mem::take(&mut self.changed) {
            return Ok(builder);
        }
        builder
            .add_current_schema(self.build()?)
            .map_err(|e| invalid_request(self.table.ident(), e))
    }
}

/// The wider type, if Iceberg allows going from `from` to `to`.
fn promote(from: &Type, to: Option<&PrimitiveType>) -> Option<PrimitiveType> {
    let (from, to) = (from.as_primitive_type()?, to?);
    let allowed = match (from, to) {
        (a, b) if a == b => true,
        (PrimitiveType::Int, PrimitiveType::Long)
        | (PrimitiveType::Float, PrimitiveType::Double) => true,
        (
            PrimitiveType::Decimal { precision: p, scale: s },
            PrimitiveType::Decimal { precision: q, scale: t },
        ) => s == t && q >= p,
        _ => false,
    };
    allowed.then(|| to.clone())
}
