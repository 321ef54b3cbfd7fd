//! The accounts: their ids, and how many rows each has.
//!
//! Sizes follow Zipf's law with exponent 1: the account of rank *r* has a share of 1/*r*. Ranks are
//! dealt to account numbers at random, so that large accounts do not sit side by side.

use crate::mix::{Sequence, mix};

/// Ids start here, so that they never look like a count.
const FIRST_ID: i64 = 1_000_000;

/// Accounts are numbered `0..len()` in the order of their ids.
#[derive(Debug)]
pub(crate) struct Accounts {
    /// `starts[a]` = rows of all accounts before `a`; one entry more than accounts.
    starts: Vec<u64>,
    seed: u64,
}

impl Accounts {
    pub(crate) fn new(rows: u64, accounts: u32, seed: u64) -> Self {
        let ranks = shuffled_ranks(accounts, seed);
        let total: f64 = ranks.iter().map(|rank| 1.0 / f64::from(*rank)).sum();
        let mut starts = Vec::with_capacity(ranks.len() + 1);
        let mut share = 0.0;
        for rank in ranks {
            starts.push(((share / total * rows as f64) as u64).min(rows));
            share += 1.0 / f64::from(rank);
        }
        starts.push(rows);
        Self { starts, seed }
    }

    pub(crate) fn len(&self) -> u32 {
        (self.starts.len() - 1) as u32
    }

    pub(crate) fn id(account: u32) -> i64 {
        FIRST_ID + i64::from(account)
    }

    /// Number of rows of all accounts before this one.
    pub(crate) fn start(&self, account: u32) -> u64 {
        self.starts[account as usize]
    }

    pub(crate) fn rows(&self, account: u32) -> u64 {
        self.starts[account as usize + 1] - self.starts[account as usize]
    }

    /// How many campaigns the account runs: more for larger ones, 1 to 500.
    pub(crate) fn campaigns(&self, account: u32) -> u64 {
        (1 + self.rows(account) / 1000).min(500)
    }

    /// A number in `0..bound` that shifts the account's days, so that equal accounts differ.
    pub(crate) fn phase(&self, account: u32, bound: u64) -> u64 {
        mix(self.seed ^ mix(u64::from(account) + 1)) % bound
    }

    /// The account that owns row `row` of the table in account order.
    pub(crate) fn owner(&self, row: u64) -> u32 {
        let after = self.starts.partition_point(|start| *start <= row);
        (after.saturating_sub(1) as u32).min(self.len().saturating_sub(1))
    }
}

/// The ranks `1..=accounts` in random order (Fisher and Yates).
fn shuffled_ranks(accounts: u32, seed: u64) -> Vec<u32> {
    let mut ranks: Vec<u32> = (1..=accounts).collect();
    let mut sequence = Sequence::new(seed ^ 0xACC0);
    for last in (1..ranks.len()).rev() {
        ranks.swap(last, sequence.below(last as u64 + 1) as usize);
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_skewed_and_sum_up() {
        let accounts = Accounts::new(1_000_000, 10_000, 7);
        let sizes: Vec<u64> = (0..accounts.len()).map(|a| accounts.rows(a)).collect();
        assert_eq!(sizes.iter().sum::<u64>(), 1_000_000);
        let largest = *sizes.iter().max().unwrap();
        // 1 / H(10000) of all rows.
        assert!((100_000..105_000).contains(&largest), "{largest}");
    }

    #[test]
    fn the_owner_of_a_row_is_the_account_whose_range_holds_it() {
        let accounts = Accounts::new(5_000, 1_000, 7);
        for row in 0..5_000 {
            let owner = accounts.owner(row);
            assert!(accounts.start(owner) <= row);
            assert!(row < accounts.start(owner) + accounts.rows(owner));
        }
    }
}
