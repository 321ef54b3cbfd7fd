//! Views as the engine sees them: a name with columns, in whose place its query comes before a plan is executed.
//!
//! A query is kept as text, and read again each time. What its names meant when the view was made is kept beside it
//! ([`Reads`]): the columns of tables by their field ids. So `*`, `NATURAL JOIN` and names without a table mean the
//! same for ever, whatever columns are added to tables or renamed, as in PostgreSQL.
//!
//! Not here: who may read a view, and with whose rights its query reads (`session::views`).

use std::any::Any;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{
    CatalogProvider, CatalogProviderList, SchemaProvider, Session as EngineSession, TableProvider,
};
use datafusion::common::Column;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::error::{DataFusionError, Result as EngineResult};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, TableSource, TableType};
use datafusion::physical_plan::ExecutionPlan;
use serde_json::{Value, json};
use stoa_catalog::TableIdent;
use stoa_error::{Error, Result};
use stoa_semantics::errors::{from_datafusion, to_datafusion};
use stoa_table::View;
use uuid::Uuid;

use crate::access::{Caller, Relation, field_id};
use crate::tables::nested::engine_schema;
use crate::tables::table::StoaTable;

/// Property of a view: what its query reads, as JSON.
pub(crate) const READS: &str = "stoa.view.reads";

/// One version of a view.
#[derive(Clone)]
pub(crate) struct StoredView {
    pub(crate) view: View,
    schema: SchemaRef,
}

/// A view that a statement reads.
#[derive(Clone, Debug)]
pub(crate) struct ViewUse {
    pub(crate) view: StoredView,
    /// Who must have the right to read it; `None` is whoever executes the statement.
    pub(crate) reader: Option<Arc<Caller>>,
    /// The field ids of the columns that are read.
    pub(crate) columns: Vec<i32>,
    /// With whose rights its query reads.
    pub(crate) owner: Option<Box<str>>,
}

impl std::fmt::Debug for StoredView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoredView").field("ident", self.view.ident()).finish_non_exhaustive()
    }
}

impl StoredView {
    /// # Errors
    /// `Unsupported` for types that cannot be read.
    pub(crate) fn new(view: View) -> Result<Self> {
        let schema = engine_schema(&*view.schema()?);
        Ok(Self { view, schema })
    }

    /// The view behind a source of a plan, if it is one.
    pub(crate) fn behind(source: &Arc<dyn TableSource>) -> Option<Self> {
        let provider = source_as_provider(source).ok()?;
        view_shown(provider.as_ref() as &dyn Any).cloned()
    }

    /// Its columns, with their field ids.
    pub(crate) fn columns(&self) -> &SchemaRef {
        &self.schema
    }
}

/// The view that a provider shows.
pub(crate) fn view_shown(provider: &dyn Any) -> Option<&StoredView> {
    provider.downcast_ref::<StoredView>()
}

impl Relation for StoredView {
    const KIND: &'static str = "view";

    fn ident(&self) -> &TableIdent {
        self.view.ident()
    }

    fn uuid(&self) -> Uuid {
        self.view.uuid()
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

#[async_trait]
impl TableProvider for StoredView {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    fn get_table_definition(&self) -> Option<&str> {
        self.view.sql().ok().map(|sql| sql.sql.as_str())
    }

    async fn scan(
        &self,
        _state: &dyn EngineSession,
        _projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        let what = format!("view {} is read without its query", self.view.ident());
        Err(to_datafusion(Error::internal(what)))
    }
}

/// The views that a plan names, each once.
///
/// # Errors
/// Those of walking the plan.
pub(crate) fn views_of(plan: &LogicalPlan) -> Result<Vec<StoredView>> {
    let mut found: Vec<StoredView> = Vec::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Some(view) = StoredView::behind(&scan.source)
            && !found.iter().any(|known| known.view.ident() == view.view.ident())
        {
            found.push(view);
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .map_err(from_datafusion)?;
    Ok(found)
}

/// What the query of a view reads: the tables and views with their columns, as they were when it was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reads(HashMap<TableIdent, ReadColumns>);

/// The columns of a table or view, as they were.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ReadColumns {
    uuid: Uuid,
    columns: Vec<ReadColumn>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct ReadColumn {
    id: i32,
    name: String,
    /// Whether the query names it, or has it by a `*`.
    is_used: bool,
}

impl Reads {
    /// What a query reads, which is planned and whose views are not replaced yet.
    ///
    /// # Errors
    /// Those of walking the plan.
    pub(crate) fn of(plan: &LogicalPlan) -> Result<Self> {
        // A name may be another table's; then one more counts as used than is.
        let mut used = BTreeSet::new();
        let mut read = HashMap::new();
        plan.apply_with_subqueries(|node| {
            node.apply_expressions(|expr| {
                expr.apply(|expr| {
                    if let Expr::Column(column) | Expr::OuterReferenceColumn(_, column) = expr {
                        used.insert(column.name.clone());
                    }
                    Ok(TreeNodeRecursion::Continue)
                })
            })?;
            if let LogicalPlan::TableScan(scan) = node
                && let Ok(provider) = source_as_provider(&scan.source)
                && let Some((ident, uuid, schema)) = relation_shown(provider.as_ref() as &dyn Any)
            {
                read.insert(ident, (uuid, schema));
            }
            Ok(TreeNodeRecursion::Continue)
        })
        .map_err(from_datafusion)?;
        let columns = |schema: &SchemaRef| {
            let column = |field: &Arc<arrow::datatypes::Field>| {
                let (name, is_used) = (field.name().clone(), used.contains(field.name()));
                field_id(field).map(|id| ReadColumn { id, name, is_used })
            };
            schema.fields().iter().filter_map(column).collect()
        };
        let read = read.into_iter().map(|(ident, (uuid, schema))| {
            let columns = columns(&schema);
            (ident, ReadColumns { uuid, columns })
        });
        Ok(Self(read.collect()))
    }

    /// As a view's property.
    pub(crate) fn to_property(&self) -> String {
        let mut tables: Vec<_> = self.0.iter().collect();
        tables.sort_by_key(|(ident, _)| (*ident).clone());
        let table = |(ident, read): (&TableIdent, &ReadColumns)| {
            let column = |c: &ReadColumn| json!([c.id, c.name, c.is_used]);
            json!({
                "namespace": ident.namespace,
                "name": ident.name,
                "uuid": read.uuid.to_string(),
                "columns": read.columns.iter().map(column).collect::<Vec<_>>(),
            })
        };
        Value::Array(tables.into_iter().map(table).collect()).to_string()
    }

    /// What [`Self::to_property`] has written; nothing for views that other engines made.
    ///
    /// # Errors
    /// `Corrupt` where it is something else.
    pub(crate) fn of_view(view: &View) -> Result<Self> {
        let Some(text) = view.properties().get(READS) else { return Ok(Self::default()) };
        Self::parse(text).ok_or_else(|| {
            Error::corrupt(format!("view {}: {READS} cannot be read", view.ident()))
                .with_hint("create the view again")
        })
    }

    fn parse(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let column = |column: &Value| {
            Some(ReadColumn {
                id: i32::try_from(column.get(0)?.as_i64()?).ok()?,
                name: column.get(1)?.as_str()?.to_owned(),
                is_used: column.get(2)?.as_bool()?,
            })
        };
        let table = |table: &Value| {
            let text = |key: &str| table.get(key)?.as_str().map(str::to_owned);
            let ident = TableIdent::new(text("namespace")?, text("name")?);
            let uuid = text("uuid")?.parse().ok()?;
            let columns = table.get("columns")?.as_array()?.iter().map(column);
            Some((ident, ReadColumns { uuid, columns: columns.collect::<Option<_>>()? }))
        };
        value.as_array()?.iter().map(table).collect::<Option<_>>().map(Self)
    }
}

/// Name, identity and columns of the table or view that a provider shows with its columns as they are.
fn relation_shown(provider: &dyn Any) -> Option<(TableIdent, Uuid, SchemaRef)> {
    if let Some(view) = view_shown(provider) {
        return Some((view.ident().clone(), view.uuid(), Relation::schema(view)));
    }
    let table = &provider.downcast_ref::<StoaTable>()?.table;
    Some((table.ident().clone(), table.uuid(), table.schema()))
}

/// Catalogs whose tables have the columns that a view has read of them.
#[derive(Debug)]
pub(crate) struct CatalogsAsRead {
    pub(crate) all: Arc<dyn CatalogProviderList>,
    pub(crate) reads: Arc<Reads>,
}

impl CatalogProviderList for CatalogsAsRead {
    fn register_catalog(
        &self,
        _name: String,
        _catalog: Arc<dyn CatalogProvider>,
    ) -> Option<Arc<dyn CatalogProvider>> {
        None
    }

    fn catalog_names(&self) -> Vec<String> {
        self.all.catalog_names()
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        let all = self.all.catalog(name)?;
        Some(Arc::new(CatalogAsRead { all, reads: Arc::clone(&self.reads) }))
    }
}

#[derive(Debug)]
struct CatalogAsRead {
    all: Arc<dyn CatalogProvider>,
    reads: Arc<Reads>,
}

impl CatalogProvider for CatalogAsRead {
    fn schema_names(&self) -> Vec<String> {
        self.all.schema_names()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        let all = self.all.schema(name)?;
        let reads = Arc::clone(&self.reads);
        Some(Arc::new(SchemaAsRead { name: name.to_owned(), all, reads }))
    }
}

#[derive(Debug)]
struct SchemaAsRead {
    name: String,
    all: Arc<dyn SchemaProvider>,
    reads: Arc<Reads>,
}

#[async_trait]
impl SchemaProvider for SchemaAsRead {
    fn table_names(&self) -> Vec<String> {
        self.all.table_names()
    }

    async fn table(
        &self,
        name: &str,
    ) -> EngineResult<Option<Arc<dyn TableProvider>>, DataFusionError> {
        let found = self.all.table(name).await?;
        let ident = TableIdent::new(self.name.as_str(), name);
        match (found, self.reads.0.get(&ident)) {
            (Some(found), Some(read)) => read.shown_by(found, &ident).map(Some),
            (found, _) => Ok(found),
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        self.all.table_exist(name)
    }
}

impl ReadColumns {
    /// The provider with the columns that were there when they were read, by the names that they had.
    fn shown_by(
        &self,
        found: Arc<dyn TableProvider>,
        ident: &TableIdent,
    ) -> EngineResult<Arc<dyn TableProvider>> {
        let Some((_, uuid, schema)) = relation_shown(found.as_ref() as &dyn Any) else {
            return Ok(found);
        };
        // Of another table that has got the name, columns are known by theirs.
        let is_same = uuid == self.uuid;
        let place_of = |column: &ReadColumn| {
            schema.fields().iter().position(|field| match is_same {
                true => field_id(field) == Some(column.id),
                false => *field.name() == column.name,
            })
        };
        let mut columns = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            match place_of(column) {
                Some(place) => columns.push((place, column.name.as_str())),
                None if column.is_used => {
                    let what = format!("column \"{}\" of {ident} is gone", column.name);
                    let error = Error::not_found(what).with_sqlstate("42703");
                    return Err(to_datafusion(error.with_hint("create the view again")));
                }
                None => {}
            }
        }
        let is_whole = columns.len() == schema.fields().len()
            && columns.iter().enumerate().all(|(at, (place, name))| {
                at == *place && *name == schema.field(*place).name().as_str()
            });
        if is_whole {
            return Ok(found);
        }
        let scan = LogicalPlanBuilder::scan(ident.name.as_str(), provider_as_source(found), None)?;
        let exprs = columns.iter().map(|(place, name)| {
            let (qualifier, field) = scan.schema().qualified_field(*place);
            Expr::Column(Column::from((qualifier, field))).alias(*name)
        });
        let exprs: Vec<Expr> = exprs.collect();
        Ok(Arc::new(Narrowed { plan: scan.project(exprs)?.build()? }))
    }
}

/// Some columns of a table, by other names.
#[derive(Debug)]
struct Narrowed {
    plan: LogicalPlan,
}

#[async_trait]
impl TableProvider for Narrowed {
    fn schema(&self) -> SchemaRef {
        Arc::new(self.plan.schema().as_arrow().clone())
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    fn get_logical_plan(&self) -> Option<std::borrow::Cow<'_, LogicalPlan>> {
        Some(std::borrow::Cow::Borrowed(&self.plan))
    }

    async fn scan(
        &self,
        _state: &dyn EngineSession,
        _projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> EngineResult<Arc<dyn ExecutionPlan>> {
        Err(to_datafusion(Error::internal("a view's table is read without its columns")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_comes_back_from_the_property() {
        let column = |id, name: &str, is_used| ReadColumn { id, name: name.to_owned(), is_used };
        let columns = vec![column(1, "a", true), column(7, "it's \"b\"", false)];
        let read = ReadColumns { uuid: Uuid::from_u128(5), columns };
        let reads = Reads(HashMap::from([(TableIdent::new("public", "t"), read)]));
        assert_eq!(Reads::parse(&reads.to_property()), Some(reads));
    }

    #[test]
    fn damaged_properties_are_none() {
        for text in ["", "{}", "[1]", r#"[{"namespace":"a","name":"b","uuid":"x","columns":[]}]"#] {
            assert_eq!(Reads::parse(text), None, "{text}");
        }
        assert_eq!(Reads::parse("[]"), Some(Reads::default()));
    }
}
