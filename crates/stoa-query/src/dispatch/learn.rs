//! What is remembered of a statement that was planned, for those that differ from it in values only.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use stoa_error::Result;
use stoa_sql::fingerprint::{Fingerprint, SharedFingerprint};

use super::parse;
use super::prepare::{Explained, ExplainedReport, Prepared, Way};
use crate::reuse::report::{
    ReportShape, ReportStatement, explain, parse_places, recognise, table_of,
};
use crate::reuse::template::{Lift, LiftedForm, LiftedStatement, PlanTemplate};
use crate::session::Session;
use crate::session::statement::Statement;
use crate::tables::external;

/// Bytes of statements whose plan is remembered: longer ones seldom come again, and take as much memory.
const TEMPLATE_TEXT_MAX: usize = 64 << 10;

impl Session {
    /// Remembers the form of a statement that was just planned, and gives it back as a report if it is one.
    pub(super) async fn learn(&self, prepared: &Prepared) -> Option<ReportStatement> {
        let statement = &prepared.statement;
        let fingerprint = statement.fingerprint.as_ref()?;
        let report = self.learn_report(prepared, fingerprint).await;
        if report.is_none() {
            self.learn_form(prepared, fingerprint).await;
        }
        report
    }

    async fn learn_report(
        &self,
        prepared: &Prepared,
        fingerprint: &SharedFingerprint,
    ) -> Option<ReportStatement> {
        let (forms, context) = (self.reuse.forms(), self.options_context());
        if !self.takes_short_path() || forms.is_no_report(&context, fingerprint) {
            return None;
        }
        let statement = parse_places(fingerprint);
        let table = match statement.as_ref().and_then(table_of) {
            Some(name) => {
                let ident = self.table_ident(name).ok()?;
                self.data.snapshot(&ident).await.ok().map(|snapshot| snapshot.table)
            }
            None => None,
        };
        // A table of cells shows other columns than it has, and an external one has other files.
        let table = table.filter(|table| external::refuse_rows(table).is_ok());
        forms.learn_report(&context, fingerprint, || -> Option<ReportShape> {
            let literals = &fingerprint.literals;
            let types = prepared.parameter_types();
            recognise(statement.as_ref()?, literals, table.as_ref()?, prepared.schema()?, types)
        })
    }

    /// The report that an EXPLAIN is about.
    pub(super) async fn explained_report(&self, text: &str) -> Option<ExplainedReport> {
        let (query, analyses) = explain::explained(text)?;
        if !self.takes_short_path() {
            return None;
        }
        let (context, fingerprint) = (self.options_context(), Fingerprint::shared(query));
        let find = |fingerprint| self.reuse.forms().find_report(&context, fingerprint);
        if let Some(report) = fingerprint.as_ref().and_then(find) {
            return Some(ExplainedReport { of: Explained::Report(report), analyses });
        }
        let statement = parse::statements_of(query, fingerprint.clone()).ok()?.pop()?;
        let planned = Box::pin(self.plan(statement, Vec::new())).await.ok()?;
        let of = match &planned.way {
            Way::Report(report, _) => Explained::Report(report.clone()),
            Way::Plan(_) => {
                let lifted = self.lifted_now(&planned, fingerprint.as_ref()?).await?;
                lifted.template().composite()?;
                Explained::Composite(lifted)
            }
            _ => return None,
        };
        Some(ExplainedReport { of, analyses })
    }

    /// A statement that was planned, as one of its form, whether that comes again or not.
    async fn lifted_now(
        &self,
        prepared: &Prepared,
        fingerprint: &SharedFingerprint,
    ) -> Option<LiftedStatement> {
        if !self.plan_templates.load(Ordering::Relaxed) {
            return None;
        }
        let Lift { text, parameters, values, pinned } = Lift::of(fingerprint)?;
        let planned = Box::pin(self.plan_form(&text, parameters + values.len())).await?;
        let schema = planned.schema.clone().filter(|_| planned.schema == prepared.schema)?;
        let template = self.make_template(&planned, self.options_context()).await?;
        let form = Arc::new(LiftedForm { parameters, pinned, values, template, schema });
        LiftedStatement::of(form, fingerprint)
    }

    /// Plans a statement once more without its values, if that was not done yet and it comes again.
    async fn learn_form(&self, prepared: &Prepared, fingerprint: &SharedFingerprint) {
        let (Some(_), true) = (prepared.planned(), self.plan_templates.load(Ordering::Relaxed))
        else {
            return;
        };
        let (forms, context) = (self.reuse.forms(), self.options_context());
        let Some(wanted) = forms.wanted(&context, fingerprint) else { return };
        let template = match Box::pin(self.plan_form(wanted.text(), wanted.parameters())).await {
            Some(planned)
                if planned.schema == prepared.schema
                    && planned.parameter_types.get(..wanted.own_parameters())
                        == Some(prepared.parameter_types()) =>
            {
                let template = self.make_template(&planned, context).await;
                template.zip(planned.schema.clone())
            }
            _ => None,
        };
        forms.learn_plan(wanted, template);
    }

    /// A statement whose values were lifted, planned; `None` if that makes it another one.
    async fn plan_form(&self, text: &str, parameters: usize) -> Option<Prepared> {
        let parsed = parse::statements(text).ok()?.pop()?;
        // Nothing is to be learnt of it in its turn.
        let statement = Statement { fingerprint: None, ..parsed };
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
        let known = &prepared.planned()?.template;
        if known.get().is_none() {
            let (session, of) = (self.shared().ok()?, prepared.clone());
            let made_for = Arc::clone(context);
            let made =
                self.on_planners(async move { Ok(session.make_template(&of, made_for).await) });
            let _ = known.set(made.await.ok()?);
        }
        let template = known.get()?.as_ref();
        template.filter(|template| template.is_of(context))
    }

    pub(super) async fn make_template(
        &self,
        prepared: &Prepared,
        context: Arc<str>,
    ) -> Option<PlanTemplate> {
        if prepared.statement.text().len() > TEMPLATE_TEXT_MAX {
            return None;
        }
        let (planned, state) = (prepared.planned()?, self.state());
        let (types, views) = (&prepared.parameter_types, Arc::clone(&planned.views));
        PlanTemplate::of(&planned.plan, types, views, &state, context).await
    }

    /// Whether the views of a template are as they were when it was made, if it has any.
    ///
    /// # Errors
    /// 42501 where one may not be read.
    pub(super) async fn may_read_views(&self, template: &PlanTemplate) -> Result<bool> {
        let is_current = self.are_views_current(template.views()).await?;
        if is_current {
            self.check_views(template.views())?;
        }
        Ok(is_current)
    }
}
