//! Planning: from a parsed statement to a [`Prepared`] one.

use std::sync::{Arc, OnceLock};

use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::sql::parser::Statement as EngineStatement;
use futures::future::BoxFuture;
use stoa_error::{Error, Result};
use stoa_pg_catalog::Asker;
use stoa_semantics::errors::from_datafusion;
use stoa_sql::pointing::point;
use stoa_sql::{CopySource, CopyStatement, StatementKind, ValueRows};
use tokio::sync::OnceCell;

use super::parse;
use super::renew::Renewed;
use crate::catalogs::pg;
use crate::reuse::report::ReportStatement;
use crate::reuse::template::{LiftedStatement, PlanTemplate, TableForm};
use crate::run::explained;
use crate::session::Session;
use crate::session::outcome::shown;
use crate::session::statement::{Statement, StatementForm};
use crate::session::views::Expanded;
use crate::statements::{allowed, columns, defaults, dml, insert_columns, insert_values, show};
use crate::tables::view::ViewUse;
use stoa_semantics::parameters;

/// Parameters of a statement: the protocol counts them in 16 bits.
const PARAMETERS_MAX: usize = u16::MAX as usize;

/// A statement that was planned or recognised, to be executed any number of times.
#[derive(Clone)]
pub struct Prepared {
    pub(super) statement: Statement,
    pub(super) parameter_types: Vec<DataType>,
    pub(super) schema: Option<SchemaRef>,
    /// What the meaning of its names depends on, as it was when it was planned.
    pub(super) context: Option<Arc<str>>,
    pub(super) way: Way,
}

/// How a statement is executed.
#[derive(Clone)]
pub(super) enum Way {
    /// One of Stoa's own, as its syntax tree says.
    Own,
    /// On the short path, without a plan.
    Report(ReportStatement, LongWay),
    /// With the plan of a statement that differs from it in values only.
    Lifted(LiftedStatement, LongWay),
    /// With its plan.
    Plan(PlannedStatement),
    /// An EXPLAIN of what goes the short path.
    Explain(ExplainedReport, PlannedStatement),
}

impl Way {
    /// Whether what it gives is a plan of the engine, as text.
    pub(super) fn is_explain(&self) -> bool {
        match self {
            Self::Explain(..) => true,
            Self::Plan(planned) => {
                matches!(&*planned.plan, LogicalPlan::Explain(_) | LogicalPlan::Analyze(_))
            }
            Self::Own | Self::Report(..) | Self::Lifted(..) => false,
        }
    }
}

/// The plan of a statement that was recognised: made when the other way cannot answer.
#[derive(Clone, Default)]
pub(super) struct LongWay(pub(super) Arc<OnceCell<Prepared>>);

/// A plan, and what is known of it.
#[derive(Clone)]
pub(super) struct PlannedStatement {
    pub(super) plan: Arc<LogicalPlan>,
    /// For `INSERT OVERWRITE … PARTITION (…)`: the condition on the rows that go.
    pub(super) overwritten: Option<Expr>,
    /// Whether it calls functions like `has_table_privilege`.
    pub(super) asks_about_tables: bool,
    /// The views that it reads.
    pub(super) views: Arc<[ViewUse]>,
    /// For `RETURNING`: the query over the rows that are changed.
    pub(super) returning: Option<Arc<LogicalPlan>>,
    /// The plan with places for its parameters, if it is one that can be used again.
    pub(super) template: Arc<OnceLock<Option<PlanTemplate>>>,
    /// The same statement, planned for the tables that have its names now.
    pub(super) renewed: Renewed,
}

/// What goes the short path and an EXPLAIN is about.
#[derive(Clone)]
pub(super) struct ExplainedReport {
    pub(super) of: Explained,
    /// Whether it is executed.
    pub(super) analyses: bool,
}

/// A statement on the short path.
#[derive(Clone)]
pub(super) enum Explained {
    /// A report.
    Report(ReportStatement),
    /// A statement that is computed from reports.
    Composite(LiftedStatement),
}

impl Prepared {
    /// A statement that is executed without a plan of its own: one of ours, or one that was recognised.
    fn without_plan(statement: Statement, context: Option<Arc<str>>) -> Self {
        let (parameter_types, schema, way) = match &statement.form {
            StatementForm::Report(report) => (
                report.parameter_types().to_vec(),
                Some(report.schema().clone()),
                Way::Report(report.clone(), LongWay::default()),
            ),
            StatementForm::Lifted(lifted) => (
                lifted.parameter_types().to_vec(),
                Some(lifted.schema().clone()),
                Way::Lifted(lifted.clone(), LongWay::default()),
            ),
            StatementForm::Parsed(kind) => (Vec::new(), show::schema_of(kind), Way::Own),
            StatementForm::Planned => (Vec::new(), None, Way::Own),
        };
        Self { statement, parameter_types, schema, context, way }
    }

    /// The statement.
    pub fn statement(&self) -> &Statement {
        &self.statement
    }

    /// Types of the parameters `$1`, `$2`, …, as the plan wants them.
    pub fn parameter_types(&self) -> &[DataType] {
        &self.parameter_types
    }

    /// Columns of the result; `None` for a statement that gives no rows.
    pub fn schema(&self) -> Option<SchemaRef> {
        self.schema.clone()
    }

    /// Whether it is a query without tables, views and parameters: what it means depends on the session's settings only.
    pub fn reads_nothing(&self) -> bool {
        let Way::Plan(planned) = &self.way else { return false };
        let mut is_plain = planned.views.is_empty()
            && !planned.asks_about_tables
            && planned.returning.is_none()
            && self.parameter_types.is_empty()
            && self.statement.copy().is_none();
        let looked = planned.plan.apply_with_subqueries(|node| {
            is_plain &= matches!(
                node,
                LogicalPlan::Projection(_) | LogicalPlan::EmptyRelation(_) | LogicalPlan::Values(_)
            );
            Ok(match is_plain {
                true => TreeNodeRecursion::Continue,
                false => TreeNodeRecursion::Stop,
            })
        });
        looked.is_ok() && is_plain
    }

    /// Whether it changes rows of a table.
    pub fn changes_rows(&self) -> bool {
        self.planned().is_some_and(|planned| matches!(*planned.plan, LogicalPlan::Dml(_)))
    }

    /// The plan of a statement that is executed with it.
    pub(super) fn planned(&self) -> Option<&PlannedStatement> {
        match &self.way {
            Way::Plan(planned) | Way::Explain(_, planned) => Some(planned),
            Way::Own | Way::Report(..) | Way::Lifted(..) => None,
        }
    }

    /// Whether it is answered on another way than by a statement of our own.
    pub(super) fn is_query(&self) -> bool {
        !matches!(self.way, Way::Own)
    }

    /// The same statement with its plan, if that was made.
    pub(super) fn on_the_long_way(self) -> Self {
        match &self.way {
            Way::Report(_, LongWay(planned)) => planned.get().cloned().unwrap_or(self),
            _ => self,
        }
    }

    /// The same statement as the report that it is.
    fn into_report(self, report: ReportStatement) -> Self {
        let (statement, parameter_types) = (self.statement.clone(), self.parameter_types.clone());
        let (schema, context) = (self.schema.clone(), self.context.clone());
        let long_way = LongWay(Arc::new(OnceCell::new_with(Some(self))));
        let way = Way::Report(report, long_way);
        Self { statement, parameter_types, schema, context, way }
    }
}

impl Session {
    /// Plans a statement, on the threads for that. `parameter_types` are those the client declared;
    /// missing ones are inferred. Who goes away meanwhile, or is cancelled, does not wait.
    ///
    /// # Errors
    /// Unknown tables (42P01), columns (42703), functions (42883), and what else planning finds; 57014
    /// where it was cancelled, or took longer than `statement_timeout`.
    pub fn prepare(
        &self,
        statement: Statement,
        parameter_types: Vec<Option<DataType>>,
    ) -> BoxFuture<'_, Result<Prepared>> {
        Box::pin(async move {
            // Taken before: what changes meanwhile makes it to be planned again.
            let context = self.options_context();
            if has_place_for(&statement, &parameter_types) && self.needs_no_plan(&statement).await {
                let known = self.must_know_of(&statement).await;
                known.inspect_err(|error| {
                    self.record_failure(&statement.text, statement.fingerprint.as_ref(), error);
                })?;
                return Ok(Prepared::without_plan(statement, Some(context)));
            }
            let (text, fingerprint) = (statement.text.clone(), statement.fingerprint.clone());
            let session = self.shared()?;
            // Large futures are kept off the stacks of those who wait for them, and their types out of the
            // types of those: whether something so deep is `Send` takes the compiler minutes to find out.
            let plan: BoxFuture<'static, Result<Prepared>> =
                Box::pin(async move { session.plan(statement, parameter_types).await });
            let planned = self.shown_planning(&text, plan);
            let planned = planned.await.map_err(|error| point(error, &text));
            planned.inspect_err(|error| self.record_failure(&text, fingerprint.as_ref(), error))
        })
    }

    /// As [`Session::on_planners`], for a statement that others see meanwhile, and may end.
    pub(super) async fn shown_planning<T: Send + 'static>(
        &self,
        text: &str,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let planning = self.start_planning(text);
        tokio::select! {
            biased;
            error = planning.cancelled() => Err(error),
            result = self.on_planners(work) => result,
        }
    }

    pub(super) async fn plan(
        &self,
        statement: Statement,
        parameter_types: Vec<Option<DataType>>,
    ) -> Result<Prepared> {
        // Taken before: what changes meanwhile makes it to be planned again.
        let context = Some(self.options_context());
        self.caller.refresh().await?;
        let mut planned = self.plan_now(statement, parameter_types).await?;
        planned.context.clone_from(&context);
        if let Way::Plan(_) = &planned.way
            && let Some(report) = self.learn(&planned).await
        {
            planned = planned.into_report(report);
        }
        Ok(planned)
    }

    async fn plan_now(
        &self,
        statement: Statement,
        parameter_types: Vec<Option<DataType>>,
    ) -> Result<Prepared> {
        let is_recognised =
            matches!(statement.form, StatementForm::Report(_) | StatementForm::Lifted(_));
        let is_known = || async {
            has_place_for(&statement, &parameter_types) && self.needs_no_plan(&statement).await
        };
        if is_recognised && !is_known().await {
            // It was another table's.
            let Statement { text, fingerprint, .. } = statement;
            let parsed = parse::statements_of(&text, fingerprint)?.swap_remove(0);
            return Box::pin(self.plan(parsed, parameter_types)).await;
        }
        self.must_know_of(&statement).await?;
        if let Some(rows) = statement.rows.clone() {
            return match self.plan_of_rows(&statement, &rows).await? {
                Some(plan) => {
                    let state = &self.planner().state;
                    self.prepared_plan(state, statement, plan, &parameter_types).await
                }
                None => {
                    let Statement { text, memory, .. } = statement;
                    let parsed = parse::statements_of(&text, None)?.swap_remove(0);
                    let parsed = Statement { memory, ..parsed };
                    Box::pin(self.plan_now(parsed, parameter_types)).await
                }
            };
        }
        if let Some(StatementKind::Plan(parsed)) = statement.kind() {
            if let Some(named) = self.with_temporary_names(parsed, &statement.text)? {
                let form = StatementForm::Parsed(StatementKind::Plan(Box::new(named)));
                let named = Statement { form, ..statement };
                return Box::pin(self.plan_now(named, parameter_types)).await;
            }
            if let Some(populated) = columns::populated(self, parsed, &statement.text).await? {
                let form = StatementForm::Parsed(StatementKind::Plan(Box::new(populated)));
                let populated = Statement { form, ..statement };
                return Box::pin(self.plan_now(populated, parameter_types)).await;
            }
            if let Some(named) = insert_columns::with_columns_of_query(self, parsed).await? {
                let form = StatementForm::Parsed(StatementKind::Plan(Box::new(named)));
                let named = Statement { form, ..statement };
                return Box::pin(self.plan_now(named, parameter_types)).await;
            }
            if let Some(filled) = defaults::filled(self, parsed).await? {
                let form = StatementForm::Parsed(StatementKind::Plan(Box::new(filled)));
                let filled = Statement { form, ..statement };
                return Box::pin(self.plan_now(filled, parameter_types)).await;
            }
            if stoa_sql::returning::is_in(parsed) {
                return Box::pin(self.plan_returning(statement, parameter_types)).await;
            }
            if let Some(merge) = dml::upsert(self, parsed).await? {
                let form = StatementForm::Parsed(StatementKind::Plan(Box::new(merge)));
                let merge = Statement { form, ..statement };
                return Box::pin(self.plan_now(merge, parameter_types)).await;
            }
            let planner = self.planner();
            if stoa_pg_catalog::lists_names(parsed) {
                self.data.refresh().await?;
            }
            let asks_about_tables = stoa_pg_catalog::asks_about_tables(statement.text());
            if asks_about_tables {
                self.learn_tables().await?;
            }
            let (state, types) = (&planner.state, &parameter_types);
            if let Some(plan) = dml::plan_aliased_delete(self, parsed).await? {
                return self.prepared_plan(state, statement, plan, types).await;
            }
            if let Some(plan) = insert_values::plan(self, parsed).await? {
                return self.prepared_plan(state, statement, plan, types).await;
            }
            let (parsed, overwritten) = match dml::resolve_partition(self, parsed).await? {
                Some((parsed, overwritten)) => (Box::new(parsed), overwritten),
                None => (parsed.clone(), None),
            };
            let parsed = match insert_values::with_columns(self, &parsed).await? {
                Some(named) => Box::new(named),
                None => parsed,
            };
            let plan = dml::with_casts(self.plan_parsed(state, *parsed).await?)?;
            let mut prepared = self.prepared_plan(state, statement, plan, types).await?;
            let explained = self.explained_report(prepared.statement.text()).await;
            if let Way::Plan(mut planned) = prepared.way {
                planned.overwritten = overwritten;
                planned.asks_about_tables |= asks_about_tables;
                prepared.way = match explained {
                    Some(explained) => Way::Explain(explained, planned),
                    None => Way::Plan(planned),
                };
            }
            return Ok(prepared);
        }
        if let Some(query) = statement.copy().and_then(copied_query) {
            let inner = parse::statements(&query)?.swap_remove(0);
            let prepared = Box::pin(self.plan(inner, parameter_types)).await?;
            return Ok(Prepared { statement, ..prepared });
        }
        Ok(Prepared::without_plan(statement, None))
    }

    /// The plan of a long INSERT of literals; `None` where it is not to be taken as it stands.
    async fn plan_of_rows(
        &self,
        statement: &Statement,
        rows: &ValueRows,
    ) -> Result<Option<LogicalPlan>> {
        let Some(StatementKind::Plan(parsed)) = statement.kind() else { return Ok(None) };
        let text = statement.text();
        let is_changed = self.with_temporary_names(parsed, text)?.is_some()
            || columns::populated(self, parsed, text).await?.is_some()
            || defaults::filled(self, parsed).await?.is_some();
        match is_changed {
            true => Ok(None),
            false => insert_values::plan_rows(self, parsed, rows, text).await,
        }
    }

    /// Plans a statement with RETURNING: the statement, and the query over its rows.
    async fn plan_returning(
        &self,
        statement: Statement,
        parameter_types: Vec<Option<DataType>>,
    ) -> Result<Prepared> {
        let unsupported = || Error::unsupported("RETURNING is not supported here");
        let Some(StatementKind::Plan(parsed)) = statement.kind() else { return Err(unsupported()) };
        let mut parsed = parsed.clone();
        stoa_sql::returning::check(&mut parsed)?;
        let query = stoa_sql::returning::take(&mut parsed).ok_or_else(unsupported)?;
        if let EngineStatement::Statement(changing) = parsed.as_mut() {
            stoa_sql::changes_from::write_as_merge(changing)?;
        }
        let rest = StatementForm::Parsed(StatementKind::Plan(parsed));
        let rest = Statement { form: rest, ..statement };
        let changing = self.plan_now(rest, parameter_types.clone()).await?;
        let Way::Plan(mut planned) = changing.way else { return Err(unsupported()) };
        let (planner, mut types) = (self.planner(), parameter_types);
        let known = changing.parameter_types.iter().cloned().map(Some);
        types.splice(..known.len().min(types.len()), known);
        let query = self.plan_parsed(&planner.state, query).await?;
        allowed::check(&query)?;
        dml::check_returning(&query)?;
        let (query, parameter_types) = parameters::resolve(query, &types)?;
        let Expanded { plan: query, views, asks_about_tables } = self.expand_views(query).await?;
        allowed::check(&query)?;
        let analyzed = stoa_semantics::analyzed(&planner.state, &query).map_err(from_datafusion)?;
        planned.views = planned.views.iter().cloned().chain(views).collect();
        planned.asks_about_tables |= asks_about_tables;
        planned.returning = Some(Arc::new(query));
        let schema = Some(columns_of(&analyzed));
        Ok(Prepared { parameter_types, schema, way: Way::Plan(planned), ..changing })
    }

    /// A planned statement, with the queries of its views. Its columns are those of the analysed plan: the rows
    /// have just these types.
    async fn prepared_plan(
        &self,
        state: &SessionState,
        mut statement: Statement,
        plan: LogicalPlan,
        declared: &[Option<DataType>],
    ) -> Result<Prepared> {
        allowed::check(&plan)?;
        // What is rewritten may have lost some of the parameters that the client gives values for.
        let mut declared = declared.to_vec();
        let count = stoa_sql::last_parameter(&statement.text).min(PARAMETERS_MAX);
        declared.resize(declared.len().max(count), None);
        let (plan, parameter_types) = parameters::resolve(plan, &declared)?;
        let Expanded { plan, views, asks_about_tables } = self.expand_views(plan).await?;
        if !views.is_empty() {
            allowed::check(&plan)?;
        }
        if asks_about_tables {
            self.learn_tables().await?;
        }
        let schema = match &plan {
            LogicalPlan::Dml(_) => None,
            LogicalPlan::Explain(_) | LogicalPlan::Analyze(_) => {
                Some(explained::columns(explained::format_of(&statement.text)?))
            }
            plan => {
                Some(columns_of(&stoa_semantics::analyzed(state, plan).map_err(from_datafusion)?))
            }
        };
        // Its tree is not needed any more.
        statement.form = StatementForm::Planned;
        let way = Way::Plan(PlannedStatement {
            plan: Arc::new(plan),
            overwritten: None,
            asks_about_tables,
            views: views.into(),
            returning: None,
            template: Arc::default(),
            renewed: Renewed::default(),
        });
        Ok(Prepared { statement, parameter_types, schema, context: None, way })
    }

    /// Whether a statement is executed without a plan of its own, for the tables as they are.
    pub(super) async fn needs_no_plan(&self, statement: &Statement) -> bool {
        let data = &self.data;
        match &statement.form {
            StatementForm::Parsed(StatementKind::Plan(_)) | StatementForm::Planned => false,
            StatementForm::Parsed(StatementKind::Copy(copy)) => copied_query(copy).is_none(),
            StatementForm::Parsed(_) => true,
            StatementForm::Report(report) => report.shape.table.is_current(data).await,
            StatementForm::Lifted(lifted) => {
                let template = lifted.template();
                template.is_current(data).await
                    && self.are_views_current(template.views()).await.unwrap_or(false)
            }
        }
    }

    /// Refuses a statement that was planned for others, about tables that are not to be known.
    pub(super) async fn must_know_of(&self, statement: &Statement) -> Result<()> {
        match &statement.form {
            StatementForm::Report(report) => {
                self.must_know(std::iter::once(&report.shape.table)).await
            }
            StatementForm::Lifted(lifted) => {
                let template = lifted.template();
                self.must_know(template.callers_tables()).await?;
                let mut own = template.views().iter().filter(|read| read.reader.is_none());
                own.try_for_each(|read| self.caller.must_know(&read.view))
            }
            _ => Ok(()),
        }
    }

    async fn must_know<'a>(&self, tables: impl Iterator<Item = &'a TableForm>) -> Result<()> {
        self.caller.refresh().await?;
        if self.caller.may_everything() {
            return Ok(());
        }
        for known in tables {
            let table = self.data.warehouse().table(&known.ident).await?;
            self.caller.must_know(&table)?;
        }
        Ok(())
    }

    /// Tells functions like `has_table_privilege` which tables there are.
    pub(super) async fn learn_tables(&self) -> Result<()> {
        let warehouse = self.data.warehouse();
        let own = pg::tables_of(warehouse, &self.caller);
        let own = (!own.may_know_all()).then_some(&own as &dyn Asker);
        self.known_tables.learn(&pg::all_tables(warehouse), own).await
    }

    /// Plans a statement from its text, on the threads for that.
    pub(super) async fn plan_anew(&self, prepared: &Prepared) -> Result<Prepared> {
        let (session, statement) = (self.shared()?, &prepared.statement);
        let (text, fingerprint) = (statement.text.clone(), statement.fingerprint.clone());
        let types = prepared.parameter_types.iter().cloned().map(Some).collect();
        let planned = self.on_planners(async move {
            let statement = parse::statements_of(&text, fingerprint)?.swap_remove(0);
            Box::pin(session.plan(statement, types)).await
        });
        let planned = planned.await?;
        // What the client was told of the answer still holds.
        let same = match (&planned.schema, &prepared.schema) {
            (Some(now), Some(told)) => same_columns(now, told),
            (now, told) => now.is_none() && told.is_none(),
        };
        match same {
            true => Ok(planned.on_the_long_way()),
            false => {
                Err(Error::unsupported("the columns changed since the statement was prepared")
                    .with_sqlstate("0A000")
                    .with_hint("prepare the statement again"))
            }
        }
    }
}

/// Whether a statement that was recognised has as many parameters as types were declared for.
fn has_place_for(statement: &Statement, declared: &[Option<DataType>]) -> bool {
    match &statement.form {
        StatementForm::Report(report) => declared.len() <= report.parameter_types().len(),
        StatementForm::Lifted(lifted) => declared.len() <= lifted.parameter_types().len(),
        StatementForm::Parsed(_) | StatementForm::Planned => true,
    }
}

/// The query whose rows a `COPY … TO STDOUT` sends; `None` for a copy into a table.
fn copied_query(copy: &CopyStatement) -> Option<String> {
    match &copy.source {
        CopySource::QueryToStdout(query) => Some(query.to_string()),
        CopySource::TableToStdout(name) if copy.columns.is_empty() => {
            Some(format!("SELECT * FROM {name}"))
        }
        CopySource::TableToStdout(name) => {
            let quoted = |column: &String| format!("\"{}\"", column.replace('"', "\"\""));
            let columns: Vec<String> = copy.columns.iter().map(quoted).collect();
            Some(format!("SELECT {} FROM {name}", columns.join(", ")))
        }
        CopySource::FromStdin(_) | CopySource::FromFiles(..) | CopySource::Program => None,
    }
}

/// Whether columns have the same names and types.
fn same_columns(one: &SchemaRef, other: &SchemaRef) -> bool {
    let columns = |schema: &SchemaRef| -> Vec<(String, DataType)> {
        let fields = schema.fields().iter();
        fields.map(|field| (field.name().clone(), field.data_type().clone())).collect()
    };
    columns(one) == columns(other)
}

fn columns_of(plan: &LogicalPlan) -> SchemaRef {
    let columns = columns::with_declared_types(plan.schema().as_arrow(), plan);
    shown(&columns).unwrap_or(columns)
}
