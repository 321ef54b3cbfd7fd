//! The key from which made-up salts of roles that cannot log in are derived.
//!
//! A client that logs in is told a salt. Of a role that is there it is the same each time, from every
//! server of the catalog and after a restart; so must it be of one that is not, or the difference
//! tells which roles there are. **Invariant:** the key never changes once it was made.

use stoa_env::random;
use stoa_error::Result;

use crate::Catalog;
use crate::database::Statement;

/// Bytes of the key.
const BYTES: usize = 32;

impl Catalog {
    /// The key, which is made the first time.
    ///
    /// # Errors
    /// As every change; `Corrupt` where what is stored is no key.
    pub async fn login_key(&self) -> Result<[u8; BYTES]> {
        let query = Statement::new("SELECT login_key FROM stoa_login_key WHERE catalog_name = $1");
        let query = query.bind(self.name());
        let mut rows = self.fetch(query.clone()).await?;
        if rows.is_empty() {
            let mut change = self.begin_rows().await?;
            let insert = Statement::new(
                "INSERT INTO stoa_login_key (catalog_name, login_key) VALUES ($1, $2)
                 ON CONFLICT DO NOTHING",
            );
            let new = random::bytes::<BYTES>().to_vec();
            change.execute(insert.bind(self.name()).bind(new)).await?;
            rows = change.fetch(query).await?;
            change.commit().await?;
        }
        let key = match rows.first() {
            Some(row) => self.value::<Vec<u8>>(row, 0)?,
            None => Vec::new(),
        };
        key.try_into().map_err(|_| self.damaged("the key of logins is not one of 32 bytes"))
    }
}
