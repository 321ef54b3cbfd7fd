//! `INSERT ALL (INSERT …) (INSERT …)`, which Hive writes as `FROM source INSERT … INSERT …`, and
//! `INSERT OVERWRITE … PARTITION (…) IF NOT EXISTS`.
//!
//! In: the INSERTs. Each is planned as a statement of its own; what their queries have in common is read once
//! (`dml::read_once`). All run in one transaction block: the session's, or one that begins and ends with the statement.
//!
//! **Invariant:** nothing of it is there before all of it is.

use datafusion::logical_expr::{LogicalPlan, WriteOp};
use futures::FutureExt;
use stoa_error::{Error, Result};

use super::prepare::Prepared;
use crate::run::registry::QueryGuard;
use crate::session::Session;
use crate::session::outcome::Completion;
use crate::session::statement::Statement;
use crate::statements::dml::{self, InsertPlan};
use crate::statements::partitions;
use stoa_semantics::parameters;
use stoa_sql::InsertIfAbsentStatement;

impl Session {
    /// Runs several INSERTs: all of them, or none.
    ///
    /// # Errors
    /// Those of each; `Conflict` where others change the tables all the time.
    pub(super) async fn insert_all(
        &self,
        inserts: &[stoa_sql::Statement],
        guard: &QueryGuard,
    ) -> Result<Completion> {
        self.in_one_block(|| self.insert_each(inserts, guard).boxed()).await
    }

    /// Runs an INSERT for a partition, unless that has rows.
    ///
    /// # Errors
    /// Those of the INSERT; 42501 for whoever may not see the table's partitions.
    pub(super) async fn insert_if_absent(
        &self,
        statement: &InsertIfAbsentStatement,
        guard: &QueryGuard,
    ) -> Result<Completion> {
        let InsertIfAbsentStatement { table, partition, insert } = statement;
        let there = partitions::names(self, table, partition).await?;
        match there.first() {
            Some(name) => Ok(Completion::rows("INSERT", 0)
                .with_notice(format!("partition {name} exists; nothing was inserted"))),
            None => self.insert_each(std::slice::from_ref(insert), guard).await,
        }
    }

    async fn insert_each(
        &self,
        inserts: &[stoa_sql::Statement],
        guard: &QueryGuard,
    ) -> Result<Completion> {
        let (mut plans, mut overwritten) = (Vec::new(), Vec::new());
        for insert in inserts {
            let InsertPlan { plan, overwritten: condition } = self.plan_insert(insert).await?;
            plans.push(plan);
            overwritten.push(condition);
        }
        dml::all_at_one_time(&mut plans, &self.planner().state)?;
        let plans = dml::read_once(self, plans, guard).await?.into_iter().zip(overwritten);
        let plans = plans.map(|(plan, overwritten)| InsertPlan { plan, overwritten }).collect();
        let mut rows = 0;
        for InsertPlan { plan, overwritten } in dml::together(plans)? {
            let done = match dml::changes_rows(&plan) {
                true => dml::run(self, plan, overwritten.as_ref(), None, guard).await?,
                false => {
                    let plan = self.with_current_target(plan).await?;
                    dml::insert(self, plan, None, guard).await?
                }
            };
            rows += done.rows;
        }
        Ok(Completion::rows("INSERT", rows))
    }

    /// Plans one of the INSERTs, on the threads for that.
    async fn plan_insert(&self, insert: &stoa_sql::Statement) -> Result<InsertPlan> {
        let (session, statement) = (self.shared()?, Statement::of(insert.clone(), None));
        let plan = async move { session.plan(statement, Vec::new()).await };
        let prepared: Prepared = self.on_planners(Box::pin(plan)).await?;
        let Some(planned) = prepared.planned() else {
            return Err(Error::internal("an INSERT has no plan"));
        };
        if planned.returning.is_some() {
            return Err(Error::unsupported("RETURNING in INSERT ALL is not supported")
                .with_hint("write the INSERT by itself"));
        }
        self.check_views(&planned.views)?;
        let plan = parameters::bind(&planned.plan, prepared.parameter_types(), Vec::new())?;
        match &plan {
            LogicalPlan::Dml(dml) if matches!(dml.op, WriteOp::Insert(_)) => {}
            _ => return Err(Error::internal("an INSERT became another statement")),
        }
        Ok(InsertPlan { plan, overwritten: planned.overwritten.clone() })
    }
}
