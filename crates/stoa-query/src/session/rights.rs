//! What protocols ask of a session's rights, beside what its statements ask.

use std::collections::BTreeSet;

use arrow::datatypes::Schema;
use futures::future::BoxFuture;
use stoa_access::Standing;
use stoa_error::{Error, ErrorKind, Result};
use stoa_figures::Snapshot;
use stoa_table::Table;

use super::Session;
use crate::catalogs::system::snapshot;

impl Session {
    /// Whether the statements of `user` may be seen.
    ///
    /// # Errors
    /// 42501 for those of others, unless one is superuser.
    pub fn may_see_query_of(&self, user: &str) -> Result<()> {
        match user == self.options.user {
            true => Ok(()),
            false => self.caller.must_be_superuser("see what statements others run"),
        }
    }

    /// Whether a table may be described.
    ///
    /// # Errors
    /// 42501 without any right to read it.
    pub fn may_see_table<'a>(&'a self, table: &'a Table) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            self.caller.refresh().await?;
            self.caller.may_see(table)
        })
    }

    /// Whether all columns of a table may be read.
    ///
    /// # Errors
    /// 42501, naming the first column that may not.
    pub fn may_read_all<'a>(&'a self, table: &'a Table) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            self.caller.refresh().await?;
            self.caller.may_select_all(table)
        })
    }

    /// Whether everything is allowed, which `what` needs.
    ///
    /// # Errors
    /// 42501.
    pub fn must_be_superuser<'a>(&'a self, what: &'a str) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            self.caller.refresh().await?;
            self.caller.must_be_superuser(what)
        })
    }

    /// Whether it may be known that there is such a table.
    ///
    /// # Errors
    /// The catalog's.
    pub fn may_know_table<'a>(&'a self, table: &'a Table) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async move {
            self.caller.refresh().await?;
            Ok(self.caller.may_know(table))
        })
    }

    /// Which of `columns`, as SQL has them for `table`, may be known, by place.
    pub fn known_columns(&self, table: &Table, columns: &Schema) -> BTreeSet<usize> {
        self.caller.known_columns(table, columns)
    }

    /// Whether everything is allowed now.
    ///
    /// # Errors
    /// The catalog's.
    pub fn may_everything(&self) -> BoxFuture<'_, Result<bool>> {
        Box::pin(async move {
            self.caller.refresh().await?;
            Ok(self.caller.may_everything())
        })
    }

    /// What its user can read now; `None` where nobody is asked who they are.
    ///
    /// # Errors
    /// The catalog's.
    pub fn standing(&self) -> BoxFuture<'_, Result<Option<Standing>>> {
        Box::pin(async move {
            if !self.caller.is_asked() {
                return Ok(None);
            }
            let policy = self.caller.policy_now().await?;
            Ok(Some(Standing::of(&policy, self.caller.role())))
        })
    }

    /// Whether its user can still read all that it could read at an earlier time.
    ///
    /// # Errors
    /// 42501 if some of it was taken away; the catalog's.
    pub fn must_still_read<'a>(
        &'a self,
        earlier: Option<&'a Standing>,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            let Some(earlier) = earlier.filter(|_| self.caller.is_asked()) else { return Ok(()) };
            let policy = self.caller.policy_now().await?;
            if earlier.holds_under(&policy) {
                return Ok(());
            }
            let role = self.caller.role();
            Err(Error::new(
                ErrorKind::Forbidden,
                format!("rights of role \"{role}\" were taken away after these rows were read"),
            )
            .with_sqlstate("42501")
            .with_hint("run the statement again: it returns what the role may read now"))
        })
    }

    /// What is known of the engine, of tables that its user may see.
    ///
    /// # Errors
    /// The catalog's.
    pub fn figures(&self) -> BoxFuture<'_, Result<Snapshot>> {
        Box::pin(async move { snapshot::seen_by(&self.engine, &self.caller).await })
    }
}
