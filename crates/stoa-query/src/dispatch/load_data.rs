//! `LOAD DATA`: with OVERWRITE, the rows that are there go in the same transaction.

use stoa_error::{Error, ErrorKind, Result};
use stoa_sql::LoadDataStatement;

use crate::run::registry::QueryGuard;
use crate::session::Session;
use crate::session::outcome::Completion;
use crate::statements::load_data;

/// How often the statement starts again because somebody else changed the table.
const ATTEMPTS_MAX: usize = 10;

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
        if self.block.is_open() {
            return self.delete_and_load(&delete, load, guard).await;
        }
        for number in 1..=ATTEMPTS_MAX {
            let own = self.begin_own_block().await?;
            let done = match self.delete_and_load(&delete, load, guard).await {
                Ok(done) => own.commit().await.map(|()| done),
                Err(error) => {
                    own.roll_back().await;
                    Err(error)
                }
            };
            match done {
                Err(error) if error.kind() == ErrorKind::Conflict && number < ATTEMPTS_MAX => {}
                ended => return ended,
            }
        }
        Err(Error::internal("a load was not tried"))
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
