//! The table of leases: what the database decides. The statements are in the parent's documentation.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Holder;
use crate::DatabaseTime;

/// A row of the table of leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseRow {
    /// Who has or had it.
    pub holder: Holder,
    /// The fencing token: 1 with the first holder, one more with each.
    pub epoch: u64,
    /// When it expires, exclusive.
    pub until: DatabaseTime,
}

/// The table of leases: what the database decides.
#[derive(Clone, Debug)]
pub struct Arbiter<N> {
    rows: BTreeMap<N, LeaseRow>,
}

impl<N> Default for Arbiter<N> {
    fn default() -> Self {
        Self { rows: BTreeMap::new() }
    }
}

impl<N: Ord> Arbiter<N> {
    /// All rows, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&N, &LeaseRow)> {
        self.rows.iter()
    }

    /// The row of a lease.
    pub fn row(&self, name: &N) -> Option<&LeaseRow> {
        self.rows.get(name)
    }

    /// Grants a lease that nobody has, or that has expired and is still as the caller `observed` it. Returns
    /// its epoch. Whoever has it gets it again under the same epoch: the first answer may have been lost. A
    /// later life of the same daemon gets it at once, under the next epoch: the earlier one has ended.
    pub fn acquire(
        &mut self,
        name: N,
        holder: Holder,
        observed: Option<DatabaseTime>,
        ttl: Duration,
        now: DatabaseTime,
    ) -> Option<u64> {
        let epoch = match self.rows.get(&name) {
            None => 1,
            Some(row) if row.holder == holder => row.epoch,
            Some(row) if row.holder.is_earlier_life_of(holder) => row.epoch + 1,
            Some(row) if row.until < now && Some(row.until) == observed => row.epoch + 1,
            Some(_) => return None,
        };
        self.rows.insert(name, LeaseRow { holder, epoch, until: now + ttl });
        Some(epoch)
    }

    /// Extends a lease; false if it is not `holder`'s under `epoch` any more.
    pub fn renew(
        &mut self,
        name: &N,
        holder: Holder,
        epoch: u64,
        ttl: Duration,
        now: DatabaseTime,
    ) -> bool {
        let Some(row) = self.held(name, holder, epoch) else { return false };
        row.until = now + ttl;
        true
    }

    /// Whether a transaction that carries this token may commit.
    pub fn check(&self, name: &N, holder: Holder, epoch: u64) -> bool {
        self.rows.get(name).is_some_and(|row| row.holder == holder && row.epoch == epoch)
    }

    /// Gives a lease back; the next one gets it at once. False if it is not `holder`'s under `epoch`.
    pub fn release(&mut self, name: &N, holder: Holder, epoch: u64) -> bool {
        let Some(row) = self.held(name, holder, epoch) else { return false };
        row.until = DatabaseTime::default();
        true
    }

    /// Removes the row of a lease whose job exists no more. False if it is not `holder`'s under `epoch`. Its
    /// epochs would begin anew: the name must not come back.
    pub fn forget(&mut self, name: &N, holder: Holder, epoch: u64) -> bool {
        let is_held = self.held(name, holder, epoch).is_some();
        if is_held {
            self.rows.remove(name);
        }
        is_held
    }

    fn held(&mut self, name: &N, holder: Holder, epoch: u64) -> Option<&mut LeaseRow> {
        self.rows.get_mut(name).filter(|row| row.holder == holder && row.epoch == epoch)
    }
}
