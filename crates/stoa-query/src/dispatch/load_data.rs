//! `LOAD DATA`: with OVERWRITE, the rows that are there go in the same transaction.

use futures::FutureExt;
use stoa_error::Result;
use stoa_sql::LoadDataStatement;

use crate::run::registry::QueryGuard;
use crate::session::Session;
use crate::session::outcome::Completion;
use crate::statements::load_data;

impl Session {
    /// Loads files into a table.
    ///
    /// # Errors
    /// Those of [`load_data::run`]; nothing has changed then.
    pub(super) async fn load_data(
        &self,
        load: &LoadDataStatement,
        guard: &QueryGuard,
    ) -> Result<Completion> {
        let Some(delete) = load_data::overwritten(self, load).await? else {
            return load_data::run(self, load, guard).await;
        };
        self.in_one_block(|| self.delete_and_load(&delete, load, guard).boxed()).await
    }

    async fn delete_and_load(
        &self,
        delete: &str,
        load: &LoadDataStatement,
        guard: &QueryGuard,
    ) -> Result<Completion> {
        self.delete_rows(delete, guard).await?;
        load_data::run(self, load, guard).await
    }
}
