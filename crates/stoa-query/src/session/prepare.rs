//! Planning: from a parsed statement to a [`Prepared`] one, and what is learnt of its form on the way.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use arrow::datatypes::{DataType, SchemaRef};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan};
use stoa_error::{Error, Result};

use super::renew::Renewed;
use super::{Session, allowed};
use crate::dialect::{self, CopySource, CopyStatement};
use crate::error::from_datafusion;
use crate::report::{self, ReportStatement};
use crate::statement::{Statement, StatementKind};
use crate::template::{PlanTemplate, TableForm};
use crate::{dml, insert_values, parameters, pg_catalog, semantics, show};

/// Bytes of statements whose form is remembered: longer ones seldom come again, and take as much memory.
const TEMPLATE_TEXT_MAX: usize = 64 << 10;

/// A statement that was planned, to be executed any number of times.
#[derive(Clone)]
pub struct Prepared {
    pub(super) statement: Statement,
    pub(super) plan: Option<Arc<LogicalPlan>>,
    pub(super) parameter_types: Vec<DataType>,
    pub(super) schema: Option<SchemaRef>,
    /// For `INSERT OVERWRITE … PARTITION (…)`: the condition on the rows that go.
    pub(super) overwritten: Option<Expr>,
    /// Whether it calls functions like `has_table_privilege`.
    pub(super) asks_for_rights: bool,
    /// The report that it is, if it was recognised.
    pub(crate) report: Option<ReportStatement>,
    /// The report that it explains, and whether that is executed.
    pub(super) explained: Option<(ReportStatement, bool)>,
    /// The plan of a statement that was recognised by its text, made when it is needed.
    pub(super) long_way: Arc<tokio::sync::OnceCell<Prepared>>,
    /// Its plan with places for its parameters, if it is one that can be used again.
    pub(super) template: Arc<OnceLock<Option<PlanTemplate>>>,
    /// What the meaning of its names depends on, as it was when it was planned.
    pub(super) context: Option<Arc<str>>,
    /// The same statement, planned for the tables that have its names now.
    pub(super) renewed: Renewed,
}

impl Prepared {
    /// A statement that is executed without a plan of its own: one of ours, or one that was recognised.
    pub(super) fn without_plan(statement: Statement, context: Option<Arc<str>>) -> Self {
        let (types, schema, report) = match &statement.kind {
            StatementKind::Report(report) => {
                let (types, schema) = (report.parameter_types().to_vec(), report.schema().clone());
                (types, Some(schema), Some(report.clone()))
            }
            StatementKind::Lifted(lifted) => (Vec::new(), Some(lifted.schema().clone()), None),
            kind => (Vec::new(), show::schema_of(kind), None),
        };
        Self { report, context, ..Self::unplanned(statement, types, schema) }
    }

    fn unplanned(
        statement: Statement,
        parameter_types: Vec<DataType>,
        schema: Option<SchemaRef>,
    ) -> Self {
        Self {
            statement,
            plan: None,
            parameter_types,
            schema,
            overwritten: None,
            asks_for_rights: false,
            report: None,
            explained: None,
            long_way: Arc::default(),
            template: Arc::default(),
            context: None,
            renewed: Renewed::default(),
        }
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
}

impl Session {
    pub(super) async fn plan(
        &self,
        statement: Statement,
        parameter_types: Vec<Option<DataType>>,
    ) -> Result<Prepared> {
        // Taken before: what changes meanwhile makes it to be planned again.
        let context = Some(self.options_context());
        self.caller.refresh().await?;
        let planned = self.plan_now(statement, parameter_types).await?;
        Ok(Prepared { context, ..planned })
    }

    async fn plan_now(
        &self,
        statement: Statement,
        parameter_types: Vec<Option<DataType>>,
    ) -> Result<Prepared> {
        let is_recognised =
            matches!(statement.kind, StatementKind::Report(_) | StatementKind::Lifted(_));
        if is_recognised && !self.needs_no_plan(&statement).await {
            // It was another table's.
            let parsed = dialect::parse(statement.text())?.swap_remove(0);
            return Box::pin(self.plan(parsed, parameter_types)).await;
        }
        self.must_know_of(&statement).await?;
        if let StatementKind::Plan(parsed) = &statement.kind {
            let planner = self.planner();
            if pg_catalog::lists_names(parsed) {
                self.engine.catalog.refresh().await?;
            }
            let asks_for_rights =
                self.caller.is_asked() && pg_catalog::asks_for_rights(statement.text());
            if asks_for_rights {
                self.learn_tables().await?;
            }
            if let Some(plan) = dml::plan_aliased_delete(self, parsed).await? {
                return prepared_plan(&planner.state, statement, plan, &parameter_types);
            }
            if let Some(plan) = insert_values::plan(self, parsed).await? {
                return prepared_plan(&planner.state, statement, plan, &parameter_types);
            }
            let (parsed, overwritten) = match dml::resolve_partition(self, parsed).await? {
                Some((parsed, overwritten)) => (Box::new(parsed), overwritten),
                None => (parsed.clone(), None),
            };
            let mut plan = planner.state.statement_to_plan((*parsed).clone()).await;
            if plan.as_ref().is_err_and(|e| e.to_string().contains("unique expression names")) {
                let mut named = *parsed;
                dialect::adapt::name_repeated_columns(&mut named);
                plan = planner.state.statement_to_plan(named).await;
            }
            let plan = plan.map_err(from_datafusion)?;
            let prepared = prepared_plan(&planner.state, statement, plan, &parameter_types)?;
            let is_kept = prepared.statement.text().len() <= TEMPLATE_TEXT_MAX;
            let report = match is_kept {
                true => report::learn(self, &prepared).await,
                false => None,
            };
            if report.is_none() && is_kept {
                self.learn_form(&prepared).await;
            }
            let explained = self.explained_report(prepared.statement.text()).await;
            return Ok(Prepared { overwritten, report, explained, asks_for_rights, ..prepared });
        }
        if let Some(query) = statement.copy().and_then(copied_query) {
            let inner = dialect::parse(&query)?.swap_remove(0);
            let prepared = Box::pin(self.plan(inner, parameter_types)).await?;
            return Ok(Prepared { statement, ..prepared });
        }
        Ok(Prepared::without_plan(statement, None))
    }

    /// Whether a statement is executed without a plan of its own, for the tables as they are.
    pub(super) async fn needs_no_plan(&self, statement: &Statement) -> bool {
        match &statement.kind {
            StatementKind::Plan(_) | StatementKind::Planned => false,
            StatementKind::Copy(copy) => copied_query(copy).is_none(),
            StatementKind::Report(report) => report.shape.table.is_current(&self.engine).await,
            StatementKind::Lifted(lifted) => lifted.template().is_current(&self.engine).await,
            _ => true,
        }
    }

    /// Refuses a statement that was planned for others, about tables that are not to be known.
    pub(super) async fn must_know_of(&self, statement: &Statement) -> Result<()> {
        match &statement.kind {
            StatementKind::Report(report) => {
                self.must_know(std::iter::once(&report.shape.table)).await
            }
            StatementKind::Lifted(lifted) => self.must_know(lifted.template().tables()).await,
            _ => Ok(()),
        }
    }

    async fn must_know<'a>(&self, tables: impl Iterator<Item = &'a TableForm>) -> Result<()> {
        self.caller.refresh().await?;
        if self.caller.may_everything() {
            return Ok(());
        }
        for known in tables {
            let table = self.engine.warehouse.table(&known.ident).await?;
            self.caller.must_know(&table)?;
        }
        Ok(())
    }

    /// Tells functions like `has_table_privilege` which tables there are.
    pub(super) async fn learn_tables(&self) -> Result<()> {
        match self.caller.is_asked() {
            true => self.known_tables.learn(&self.engine.warehouse).await,
            false => Ok(()),
        }
    }

    /// The report that an EXPLAIN is about.
    async fn explained_report(&self, text: &str) -> Option<(ReportStatement, bool)> {
        let (query, analyses) = report::explain::explained(text)?;
        if !self.takes_short_path() {
            return None;
        }
        if let Some(known) = self.engine.templates.find(&self.options_context(), query) {
            return Some((known, analyses));
        }
        let statement = dialect::parse(query).ok()?.pop()?;
        let planned = Box::pin(self.plan(statement, Vec::new())).await.ok()?;
        Some((planned.report?, analyses))
    }

    /// Plans a statement once more without its values, if that was not done yet and it comes again.
    async fn learn_form(&self, prepared: &Prepared) {
        let text = prepared.statement.text();
        let (Some(_), true) = (&prepared.plan, self.plan_templates.load(Ordering::Relaxed)) else {
            return;
        };
        let context = self.options_context();
        let Some(wanted) = self.engine.plan_templates.wanted(&context, text) else { return };
        let template = match Box::pin(self.plan_form(wanted.text(), wanted.parameters())).await {
            Some(planned) if planned.schema == prepared.schema => {
                let template = self.make_template(&planned, context);
                template.zip(planned.schema.clone())
            }
            _ => None,
        };
        self.engine.plan_templates.learn(wanted, template);
    }

    /// A statement whose values were lifted, planned; `None` if that makes it another one.
    async fn plan_form(&self, text: &str, parameters: usize) -> Option<Prepared> {
        let statement = dialect::parse(text).ok()?.pop()?;
        let planned = self.plan(statement, Vec::new()).await.ok()?;
        (planned.parameter_types.len() == parameters).then_some(planned)
    }

    /// The template of a prepared statement, made when it is first executed, on the threads that plan.
    pub(super) async fn template_of<'a>(
        &self,
        prepared: &'a Prepared,
        context: &Arc<str>,
    ) -> Option<&'a PlanTemplate> {
        if !self.plan_templates.load(Ordering::Relaxed) {
            return None;
        }
        if prepared.template.get().is_none() {
            let (session, of) = (self.shared().ok()?, prepared.clone());
            let made_for = Arc::clone(context);
            let made = self.on_planners(async move { Ok(session.make_template(&of, made_for)) });
            let _ = prepared.template.set(made.await.ok()?);
        }
        let template = prepared.template.get()?.as_ref();
        template.filter(|template| template.is_of(context))
    }

    fn make_template(&self, prepared: &Prepared, context: Arc<str>) -> Option<PlanTemplate> {
        if prepared.statement.text().len() > TEMPLATE_TEXT_MAX {
            return None;
        }
        let (plan, state) = (prepared.plan.as_ref()?, self.state());
        PlanTemplate::of(plan, &prepared.parameter_types, &state, context)
    }

    /// Plans a statement from its text, on the threads for that.
    pub(super) async fn plan_anew(&self, prepared: &Prepared) -> Result<Prepared> {
        let (session, text) = (self.shared()?, prepared.statement.text().to_owned());
        let types = prepared.parameter_types.iter().cloned().map(Some).collect();
        let planned = self.on_planners(async move {
            let statement = dialect::parse(&text)?.swap_remove(0);
            Box::pin(session.plan(statement, types)).await
        });
        let planned = planned.await?;
        // What the client was told of the answer still holds.
        match planned.schema == prepared.schema {
            true => Ok(Prepared { report: None, ..planned }),
            false => {
                Err(Error::unsupported("the columns changed since the statement was prepared")
                    .with_sqlstate("0A000")
                    .with_hint("prepare the statement again"))
            }
        }
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
        CopySource::FromStdin(_) | CopySource::FromFiles(..) => None,
    }
}

/// A planned statement. Its columns are those of the analysed plan: the rows have just these types.
fn prepared_plan(
    state: &SessionState,
    mut statement: Statement,
    plan: LogicalPlan,
    declared: &[Option<DataType>],
) -> Result<Prepared> {
    allowed::check(&plan)?;
    let (plan, parameter_types) = parameters::resolve(plan, declared)?;
    let schema = match &plan {
        LogicalPlan::Dml(_) => None,
        plan @ (LogicalPlan::Explain(_) | LogicalPlan::Analyze(_)) => Some(columns_of(plan)),
        plan => Some(columns_of(&semantics::analyzed(state, plan).map_err(from_datafusion)?)),
    };
    // Its tree is not needed any more.
    statement.kind = StatementKind::Planned;
    let plan = Some(Arc::new(plan));
    Ok(Prepared { plan, ..Prepared::unplanned(statement, parameter_types, schema) })
}

fn columns_of(plan: &LogicalPlan) -> SchemaRef {
    SchemaRef::new(plan.schema().as_arrow().clone())
}
