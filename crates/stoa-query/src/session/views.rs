//! Views in plans: the query of each comes in the place of its name.
//!
//! In: a plan as the engine's planner made it. Out: a plan of tables only, and which views it reads with whose rights
//! ([`ViewUse`]). A view's query reads with the rights of the view's owner, unless the view is a `security_invoker`;
//! one without an owner is the superusers'. **Invariant:** of each view, no column is read for a caller who may not
//! read it: asked before each execution ([`Session::check_views`]).
//!
//! Not here: statements that make and change views (`statements::view`).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, DFSchemaRef, field_not_found};
use datafusion::datasource::provider_as_source;
use datafusion::error::Result as EngineResult;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast};
use datafusion::sql::parser::Statement as EngineStatement;
use futures::future::BoxFuture;
use stoa_catalog::TableIdent;
use stoa_error::{Error, Result, Subject};
use stoa_semantics::TextStyle;
use stoa_semantics::errors::{from_datafusion, missing_name, repeats_names, to_datafusion};
use stoa_sql::{StatementKind, whole_rows};

use super::{Session, decorated_calls, own_functions};
use crate::access::{Caller, fields_at};
use crate::tables::seen::SeenCatalogs;
use crate::tables::storable::storable_type;
use crate::tables::table::stoa_table;
use crate::tables::view::{CatalogsAsRead, Reads, StoredView, ViewUse, views_of};

/// Tables and queries that a statement may have when its views are replaced by their queries.
const SCANS_MAX: usize = 4096;

/// Views in views: more are no mistake that anybody finds.
const DEPTH_MAX: usize = 64;

/// A plan without views, and what it reads instead.
#[derive(Debug)]
pub(crate) struct Expanded {
    pub(crate) plan: LogicalPlan,
    pub(crate) views: Vec<ViewUse>,
    /// Whether a view's query calls functions like `has_table_privilege`.
    pub(crate) asks_about_tables: bool,
}

/// Tables of a statement whose rows are given to functions.
const WHOLE_ROWS_MAX: usize = 16;

/// The engine's plan; rows of tables that are given to functions are records.
async fn planned(state: &SessionState, statement: &EngineStatement) -> EngineResult<LogicalPlan> {
    let mut error = match state.statement_to_plan(statement.clone()).await {
        Ok(plan) => match taken_for_field(&plan)? {
            None => return Ok(plan),
            Some(column) => return with_aliases_apart(state, statement, &column).await,
        },
        // Of a column of the result, the engine sees at once that it has no fields.
        Err(error) if error.to_string().contains("is not Struct, Map, or Null") => {
            let Some((table, name)) = stoa_sql::column_of_no_table(statement) else {
                return Err(error);
            };
            let column = Column::new(Some(table), name);
            return with_aliases_apart(state, statement, &column).await;
        }
        Err(error) => error,
    };
    let mut written = statement.clone();
    for _ in 0..WHOLE_ROWS_MAX {
        let Some(name) = missing_name(&error) else { break };
        if !whole_rows::give_rows(&mut written, &name) {
            if whole_rows::is_table(&mut written, &name) {
                let what = format!("a row of {name} as a value is not supported here");
                let error = Error::unsupported(what)
                    .about(Subject::OnlyColumn(name))
                    .with_hint("give it to row_to_json, to_json, to_jsonb, json_agg or jsonb_agg");
                return Err(to_datafusion(error));
            }
            break;
        }
        match state.statement_to_plan(written.clone()).await {
            Err(other) => error = other,
            Ok(plan) => return stoa_semantics::with_records(plan),
        }
    }
    Err(error)
}

/// Plans a statement whose tables have names that no column has.
///
/// # Errors
/// `column` does not exist, not even so.
async fn with_aliases_apart(
    state: &SessionState,
    statement: &EngineStatement,
    column: &Column,
) -> EngineResult<LogicalPlan> {
    let mut apart = statement.clone();
    if stoa_sql::tell_aliases_apart(&mut apart)
        && let Ok(plan) = state.statement_to_plan(apart).await
        && taken_for_field(&plan)?.is_none()
    {
        return Ok(plan);
    }
    Err(field_not_found(column.relation.clone(), &column.name, &DFSchema::empty()))
}

/// The `x.a` that the engine took for a field of a column `x`, which is no record: it may be a column of a table `x`
/// around the query.
fn taken_for_field(plan: &LogicalPlan) -> EngineResult<Option<Column>> {
    let mut taken = None;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                if let Expr::ScalarFunction(call) = part
                    && call.name() == "get_field"
                    && let [Expr::Column(column), Expr::Literal(name, _)] = call.args.as_slice()
                    && let Some(Some(name)) = name.try_as_str()
                {
                    let schemas = node.inputs().into_iter().map(LogicalPlan::schema);
                    let of = |schema: &DFSchemaRef| {
                        let found =
                            schema.field_with_name(column.relation.as_ref(), &column.name).ok()?;
                        Some(has_fields(found.data_type()))
                    };
                    if schemas.filter_map(of).any(|has_fields| !has_fields) {
                        taken = Some(Column::new(Some(column.name.as_str()), name));
                    }
                }
                Ok(match taken {
                    Some(_) => TreeNodeRecursion::Stop,
                    None => TreeNodeRecursion::Continue,
                })
            })
        })
    })?;
    Ok(taken)
}

fn has_fields(of: &DataType) -> bool {
    matches!(of, DataType::Struct(_) | DataType::Map(..) | DataType::Null)
}

impl Session {
    /// Plans a statement as the engine does; views are left as they are. Columns of one name get others where the
    /// engine needs that.
    ///
    /// # Errors
    /// Those of planning.
    pub(crate) async fn plan_parsed(
        &self,
        state: &SessionState,
        statement: EngineStatement,
    ) -> Result<LogicalPlan> {
        decorated_calls::refuse(&statement, state)?;
        let plan = match planned(state, &statement).await {
            Err(error) if repeats_names(&error) => {
                let mut named = statement;
                stoa_sql::column_names::mark_repeated(&mut named);
                match planned(state, &named).await {
                    Err(error) if repeats_names(&error) => {
                        stoa_sql::tell_casts_apart(&mut named);
                        planned(state, &named).await
                    }
                    plan => plan,
                }
            }
            plan => plan,
        };
        plan.and_then(stoa_semantics::with_integers).map_err(from_datafusion)
    }

    /// Plans a query whose columns are to be those of a table or view; `names` are given to the first of them.
    ///
    /// # Errors
    /// Those of planning; 42701 where two columns have one name, and not both get another.
    pub(crate) async fn plan_defining(
        &self,
        state: &SessionState,
        statement: &EngineStatement,
        names: &[String],
    ) -> Result<LogicalPlan> {
        decorated_calls::refuse(statement, state)?;
        match planned(state, statement).await {
            Err(error) if repeats_names(&error) && !names.is_empty() => {
                let plan = self.plan_parsed(state, statement.clone()).await?;
                match names.len() >= plan.schema().fields().len() {
                    true => Ok(plan),
                    false => Err(from_datafusion(error)),
                }
            }
            plan => plan.and_then(stoa_semantics::with_integers).map_err(from_datafusion),
        }
    }

    /// Puts the queries of views in the places of their names.
    ///
    /// # Errors
    /// Queries that cannot be planned any more, views in a circle (42P17), too many of them (54000), and rows that
    /// would be written to a view (42809).
    pub(crate) async fn expand_views(&self, plan: LogicalPlan) -> Result<Expanded> {
        if let LogicalPlan::Dml(dml) = &plan
            && let Some(view) = StoredView::behind(&dml.target)
        {
            let what = format!("{} is a view: its rows cannot be changed", view.view.ident());
            return Err(Error::invalid(what)
                .with_sqlstate("42809")
                .with_hint("change the tables that its query reads"));
        }
        if views_of(&plan)?.is_empty() {
            return Ok(Expanded { plan, views: Vec::new(), asks_about_tables: false });
        }
        let mut expansion = Expansion::of(self);
        let plan = expansion.expand(plan, None).await?;
        let Expansion { uses: views, asks_about_tables, .. } = expansion;
        Ok(Expanded { plan, views, asks_about_tables })
    }

    /// Whether all views may be read that a statement reads.
    ///
    /// # Errors
    /// 42501.
    pub(crate) fn check_views(&self, views: &[ViewUse]) -> Result<()> {
        for read in views {
            let reader = read.reader.as_deref().unwrap_or(&self.caller);
            reader.may_select(&read.view, read.columns.iter().copied())?;
        }
        Ok(())
    }

    /// Whether the views of a plan are still as they were when it was made.
    ///
    /// # Errors
    /// The catalog's, other than that a view is gone.
    pub(crate) async fn are_views_current(&self, views: &[ViewUse]) -> Result<bool> {
        for read in views {
            if read.owner != self.owner_of(&read.view) {
                return Ok(false);
            }
            let planned = &read.view.view;
            match self.data.warehouse().view(planned.ident()).await {
                Ok(now) if now.metadata_location() == planned.metadata_location() => {}
                Ok(_) => return Ok(false),
                Err(error) if is_gone(&error) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn owner_of(&self, view: &StoredView) -> Option<Box<str>> {
        self.gate.rights().policy().owner(view.view.uuid()).map(Into::into)
    }

    /// The state in which the query of a view is planned: names and rights are the view's, not the session's.
    fn state_of_view(
        &self,
        view: &StoredView,
        reads: Reads,
        reader: Option<&Arc<Caller>>,
    ) -> SessionState {
        let mut state = self.engine.new_state();
        let session = self.state();
        let reader = reader.unwrap_or(&self.caller);
        let config = state.config_mut();
        let options = config.options_mut();
        let asked = session.config_options();
        options.execution.time_zone.clone_from(&asked.execution.time_zone);
        if let Some(style) = asked.extensions.get::<TextStyle>() {
            options.extensions.insert(*style);
        }
        options.catalog.default_schema = view.view.default_namespace();
        config.set_extension(Arc::clone(reader));
        config.set_extension(Arc::clone(&self.block));
        own_functions::install(
            &mut state,
            &self.itself,
            &self.options,
            &self.caller,
            &self.known_tables,
        );
        let mut all = Arc::clone(state.catalog_list());
        if reader.is_asked() {
            all = Arc::new(SeenCatalogs::new(all, Arc::clone(reader)));
        }
        let reads = Arc::new(reads);
        state.register_catalog_list(Arc::new(CatalogsAsRead { all, reads }));
        state
    }
}

/// Whether a name stands for no view any more.
fn is_gone(error: &Error) -> bool {
    use stoa_error::Condition;
    let gone = [Condition::UndefinedTable, Condition::UndefinedSchema, Condition::WrongObjectType];
    gone.iter().any(|condition| error.is(*condition))
}

/// The views of one statement, while they are replaced.
struct Expansion<'a> {
    session: &'a Session,
    uses: Vec<ViewUse>,
    /// The views in whose queries we are.
    within: Vec<TableIdent>,
    asks_about_tables: bool,
}

impl<'a> Expansion<'a> {
    fn of(session: &'a Session) -> Self {
        Self { session, uses: Vec::new(), within: Vec::new(), asks_about_tables: false }
    }

    /// Replaces the views of a plan that `reader` reads.
    fn expand(
        &mut self,
        plan: LogicalPlan,
        reader: Option<Arc<Caller>>,
    ) -> BoxFuture<'_, Result<LogicalPlan>> {
        Box::pin(async move {
            let views = views_of(&plan)?;
            if views.is_empty() {
                return Ok(plan);
            }
            let who = reader.as_ref().unwrap_or(&self.session.caller);
            // What is kept of the plan may be used by another one, who is asked.
            let read = match reader.is_none() || who.is_asked() {
                true => columns_read(&self.session.state(), &plan, &views),
                false => HashMap::new(),
            };
            let mut queries = HashMap::new();
            for view in views {
                let ident = view.view.ident().clone();
                let columns = read.get(&ident).cloned().unwrap_or_default();
                let query = self.query_of(view, reader.clone(), columns).await?;
                queries.insert(ident, query);
            }
            let plan = plan
                .transform_up_with_subqueries(|node| replaced(node, &queries))
                .map_err(from_datafusion)?
                .data;
            check_size(&plan)?;
            Ok(plan)
        })
    }

    /// The query of a view, with the view's columns.
    async fn query_of(
        &mut self,
        view: StoredView,
        reader: Option<Arc<Caller>>,
        columns: Vec<i32>,
    ) -> Result<LogicalPlan> {
        let (session, ident) = (self.session, view.view.ident().clone());
        if self.within.contains(&ident) || self.within.len() >= DEPTH_MAX {
            return Err(Error::invalid(format!("view {ident} is defined by itself"))
                .with_sqlstate("42P17")
                .with_hint("create one of the views again, with a query that does not read it"));
        }
        let owner = session.owner_of(&view);
        let inner = match view.view.is_security_invoker()? {
            true => reader.clone(),
            false => {
                let (role, is_trusted) = (owner.as_deref().unwrap_or_default(), owner.is_none());
                Some(Arc::new(session.gate.caller(role, is_trusted)))
            }
        };
        self.uses.push(ViewUse { view: view.clone(), reader, columns, owner });
        self.within.push(ident.clone());
        let planned = self.plan_of(&view, inner).await;
        self.within.pop();
        planned.map_err(|error| error.at(format!("view {ident}")))
    }

    async fn plan_of(
        &mut self,
        view: &StoredView,
        reader: Option<Arc<Caller>>,
    ) -> Result<LogicalPlan> {
        let session = self.session;
        let sql = &view.view.sql()?.sql;
        let mut statements = stoa_sql::parse(sql, stoa_pg_catalog::parse)?;
        let Some(StatementKind::Plan(parsed)) = statements.pop().map(|statement| statement.kind)
        else {
            return Err(Error::corrupt("it has no query").with_hint("create the view again"));
        };
        self.asks_about_tables |= stoa_pg_catalog::asks_about_tables(sql);
        if stoa_pg_catalog::lists_names(&parsed) {
            session.data.refresh().await?;
        }
        let state = session.state_of_view(view, Reads::of_view(&view.view)?, reader.as_ref());
        let plan = session.plan_parsed(&state, *parsed).await?;
        let plan = self.expand(plan, reader.clone()).await?;
        let plan = match &reader {
            Some(reader) => read_by(plan, reader)?,
            None => plan,
        };
        let analyzed = stoa_semantics::analyzed(&state, &plan).map_err(from_datafusion)?;
        with_columns_of(view, plan, &analyzed)
    }
}

/// The columns of `views` that a plan reads, as field ids; all of them where that cannot be told.
fn columns_read(
    state: &SessionState,
    plan: &LogicalPlan,
    views: &[StoredView],
) -> HashMap<TableIdent, Vec<i32>> {
    let all = |view: &StoredView| (view.view.ident().clone(), fields_at(view, None));
    let Ok(plan) = state.optimize(plan) else { return views.iter().map(all).collect() };
    let mut read: HashMap<TableIdent, BTreeSet<usize>> = HashMap::new();
    let walked = plan.apply_with_subqueries(|node| {
        let LogicalPlan::TableScan(scan) = node else { return Ok(TreeNodeRecursion::Continue) };
        let Some(view) = StoredView::behind(&scan.source) else {
            return Ok(TreeNodeRecursion::Continue);
        };
        let places = read.entry(view.view.ident().clone()).or_default();
        match &scan.projection {
            Some(projection) => places.extend(projection),
            None => places.extend(0..view.columns().fields().len()),
        }
        for column in scan.filters.iter().flat_map(|filter| filter.column_refs()) {
            places.extend(view.columns().index_of(&column.name).ok());
        }
        Ok(TreeNodeRecursion::Continue)
    });
    if walked.is_err() {
        return views.iter().map(all).collect();
    }
    // Of a view that was optimised away, no column is read; it may not be read without any right, either.
    let places = |view: &StoredView| {
        let ident = view.view.ident().clone();
        let read = read.get(&ident).cloned().unwrap_or_default();
        (ident, fields_at(view, Some(&read)))
    };
    views.iter().map(places).collect()
}

fn replaced(
    node: LogicalPlan,
    queries: &HashMap<TableIdent, LogicalPlan>,
) -> EngineResult<Transformed<LogicalPlan>> {
    let LogicalPlan::TableScan(scan) = &node else {
        // The types of columns may be others than those of the view.
        return Ok(Transformed::yes(node.recompute_schema()?));
    };
    let query = StoredView::behind(&scan.source).and_then(|view| queries.get(view.view.ident()));
    let Some(query) = query else { return Ok(Transformed::no(node)) };
    let query = LogicalPlanBuilder::from(query.clone()).alias(scan.table_name.clone())?;
    Ok(Transformed::yes(query.build()?))
}

/// Has all tables of a plan read with the rights of `reader`.
fn read_by(plan: LogicalPlan, reader: &Arc<Caller>) -> Result<LogicalPlan> {
    let planned = plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::TableScan(mut scan) = node else { return Ok(Transformed::no(node)) };
        let Some(table) = stoa_table(&scan.source) else {
            return Ok(Transformed::no(LogicalPlan::TableScan(scan)));
        };
        scan.source = provider_as_source(Arc::new(table.read_by(reader)));
        Ok(Transformed::yes(LogicalPlan::TableScan(scan)))
    });
    planned.map(|plan| plan.data).map_err(from_datafusion)
}

/// A view's query with the view's names, and its types where the query has others; `analyzed` tells those. A type
/// that is only stored as the view's stays as it is: numbers keep their digits.
fn with_columns_of(
    view: &StoredView,
    plan: LogicalPlan,
    analyzed: &LogicalPlan,
) -> Result<LogicalPlan> {
    let columns = view.columns().fields();
    if plan.schema().fields().len() != columns.len() {
        let (has, had) = (plan.schema().fields().len(), columns.len());
        let what = format!("its query has {has} columns, and had {had} when the view was made");
        return Err(Error::unsupported(what).with_hint("create the view again"));
    }
    let exprs = columns.iter().enumerate().map(|(at, column)| {
        let expr = Expr::Column(Column::from(plan.schema().qualified_field(at)));
        let has = analyzed.schema().field(at).data_type();
        let fits = storable_type(has)?.equals_datatype(column.data_type());
        Ok(match fits && *has != DataType::Null {
            true => expr.alias(column.name()),
            false => cast(expr, column.data_type().clone()).alias(column.name()),
        })
    });
    let exprs: Vec<Expr> = exprs.collect::<Result<_>>()?;
    LogicalPlanBuilder::from(plan)
        .project(exprs)
        .and_then(LogicalPlanBuilder::build)
        .map_err(from_datafusion)
}

fn check_size(plan: &LogicalPlan) -> Result<()> {
    let mut scans = 0_usize;
    plan.apply_with_subqueries(|node| {
        scans += usize::from(matches!(node, LogicalPlan::TableScan(_)));
        Ok(match scans > SCANS_MAX {
            true => TreeNodeRecursion::Stop,
            false => TreeNodeRecursion::Continue,
        })
    })
    .map_err(from_datafusion)?;
    match scans > SCANS_MAX {
        true => Err(Error::invalid(format!("views come to more than {SCANS_MAX} tables"))
            .with_sqlstate("54000")
            .with_hint("read fewer views at once, or keep the rows of some in tables")),
        false => Ok(()),
    }
}
