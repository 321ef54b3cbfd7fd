//! Resource plans: one row each, which holds the whole plan.
//!
//! Their changes count with those of the policy ([`Catalog::policy_version`]), so that whoever follows it follows them:
//! who is a member of which group is part of where queries go.

use stoa_error::Result;
use stoa_workload::{PlanChange, ResourcePlan, ResourcePlans};

use crate::Catalog;
use crate::database::{Row, Statement};

impl Catalog {
    /// All resource plans.
    ///
    /// # Errors
    /// `Unavailable` where the database does not answer, `Corrupt` where what is stored is no plan.
    pub async fn resource_plans(&self) -> Result<ResourcePlans> {
        self.resource_plans_of(&self.fetch(query(self.name())).await?)
    }

    /// Makes a change of the plans as they are at that moment; gives what its user should know.
    ///
    /// # Errors
    /// Those of [`ResourcePlans::apply`] and of every change.
    pub async fn change_resource_plans(&self, plan_change: &PlanChange) -> Result<Vec<String>> {
        let mut change = self.begin().await?;
        let before = self.resource_plans_of(&change.fetch(query(self.name())).await?)?;
        let (after, notices) = before.apply(plan_change)?;
        let mut rows = 0;
        for plan in before.iter().filter(|plan| after.plan(&plan.name).is_err()) {
            let delete = Statement::new(
                "DELETE FROM stoa_resource_plans WHERE catalog_name = $1 AND plan_name = $2",
            );
            rows += change.execute(delete.bind(self.name()).bind(plan.name.as_str())).await?;
        }
        let is_new = |plan: &&ResourcePlan| before.plan(&plan.name).ok() != Some(*plan);
        for plan in after.iter().filter(is_new) {
            let put = Statement::new(
                "INSERT INTO stoa_resource_plans (catalog_name, plan_name, definition)
                 VALUES ($1, $2, $3)
                 ON CONFLICT (catalog_name, plan_name) DO UPDATE SET definition = excluded.definition",
            );
            let put = put.bind(self.name()).bind(plan.name.as_str()).bind(plan.to_text()?);
            rows += change.execute(put).await?;
        }
        self.commit_change(change, rows).await?;
        Ok(notices)
    }

    fn resource_plans_of(&self, rows: &[Row]) -> Result<ResourcePlans> {
        let plan = |row| ResourcePlan::from_text(self.value(row, 0)?);
        rows.iter().map(plan).collect()
    }
}

fn query(name: &str) -> Statement {
    Statement::new("SELECT definition FROM stoa_resource_plans WHERE catalog_name = $1").bind(name)
}
