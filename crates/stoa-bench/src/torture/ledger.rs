//! What should be in one table.

use std::collections::BTreeMap;

use stoa_error::{Error, Result};

use crate::write::Parcel;

/// What an `UPDATE` adds to `campaign`.
pub(crate) const RAISE: i64 = 1000;

/// The parcels of one table and what is known of each.
#[derive(Debug, Default)]
pub struct Ledger {
    parcels: BTreeMap<i64, Entry>,
    next: i64,
    /// The first change that was of other rows than the parcel has.
    miscounted: Option<(i64, u64, Option<Change>)>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    rows: i32,
    state: State,
    /// Updates that are done.
    raised: i64,
    /// A statement whose outcome is not known.
    pending: Option<Change>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Sent; it may be there or not.
    InDoubt,
    /// Acknowledged, or seen after a restart.
    Kept,
    /// Deleted, or not there after a restart.
    Gone,
}

/// A statement that changes a parcel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Delete,
    Raise,
}

/// What a table says of one parcel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ParcelRows {
    pub number: i64,
    pub rows: i64,
    pub places: i64,
    pub cost: i64,
    pub campaign: i64,
}

/// What a check found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Checked {
    /// Parcels that were in doubt and are there.
    pub kept: u64,
    /// Parcels that were in doubt and are not there.
    pub gone: u64,
}

impl Ledger {
    /// A new parcel, about to be sent.
    pub(crate) fn begin(&mut self, rows: i32) -> Parcel {
        let number = self.next;
        self.next += 1;
        let entry = Entry { rows, state: State::InDoubt, raised: 0, pending: None };
        self.parcels.insert(number, entry);
        Parcel { number, rows }
    }

    /// The parcel was acknowledged.
    pub(crate) fn acknowledged(&mut self, number: i64) {
        if let Some(entry) = self.parcels.get_mut(&number) {
            entry.state = State::Kept;
        }
    }

    /// A parcel that is there for sure, about to be changed; chosen by `random`.
    pub(crate) fn begin_change(&mut self, random: u64, change: Change) -> Option<i64> {
        let (first, last) = (*self.parcels.keys().next()?, *self.parcels.keys().next_back()?);
        let start = first + (random % (last - first + 1) as u64) as i64;
        let free = |entry: &Entry| entry.state == State::Kept && entry.pending.is_none();
        let (number, entry) = self.parcels.range_mut(start..).find(|(_, entry)| free(entry))?;
        entry.pending = Some(change);
        Some(*number)
    }

    /// Rows of a parcel.
    pub(crate) fn rows_of(&self, number: i64) -> u64 {
        self.parcels.get(&number).map_or(0, |entry| entry.rows as u64)
    }

    /// The change was acknowledged, and said to be of so many rows.
    pub(crate) fn changed(&mut self, number: i64, rows: u64) {
        let Some(entry) = self.parcels.get_mut(&number) else { return };
        if rows != entry.rows as u64 && self.miscounted.is_none() {
            self.miscounted = Some((number, rows, entry.pending));
        }
        match entry.pending.take() {
            Some(Change::Delete) => entry.state = State::Gone,
            Some(Change::Raise) => entry.raised += 1,
            None => {}
        }
    }

    /// Compares with what a table has while nobody writes, and notes how doubts were settled.
    ///
    /// # Errors
    /// `Corrupt` with the first parcel that is not as it must be.
    pub(crate) fn settle(&mut self, found: &[ParcelRows]) -> Result<Checked> {
        if let Some((number, rows, change)) = self.miscounted {
            return Err(wrong(
                number,
                "was there when a statement changed other rows than its own",
            )
            .with_detail(format!("{change:?} changed {rows} of {} rows", self.rows_of(number))));
        }
        let mut checked = Checked::default();
        let mut seen = BTreeMap::new();
        for parcel in found {
            if seen.insert(parcel.number, *parcel).is_some() {
                return Err(wrong(parcel.number, "is there in two groups"));
            }
            if !self.parcels.contains_key(&parcel.number) {
                return Err(wrong(parcel.number, "was sent by nobody"));
            }
        }
        for (number, entry) in &mut self.parcels {
            let was_in_doubt = entry.state == State::InDoubt;
            match seen.get(number) {
                Some(found) => entry.present(*number, found)?,
                None => entry.absent(*number)?,
            }
            checked.kept += u64::from(was_in_doubt && entry.state == State::Kept);
            checked.gone += u64::from(was_in_doubt && entry.state == State::Gone);
        }
        Ok(checked)
    }

    /// Compares what is known for sure: parcels that were acknowledged, or deleted.
    ///
    /// # Errors
    /// As [`Self::settle`].
    pub(crate) fn look(&self, found: &[ParcelRows]) -> Result<()> {
        let seen: BTreeMap<i64, &ParcelRows> =
            found.iter().map(|parcel| (parcel.number, parcel)).collect();
        for (number, entry) in &self.parcels {
            if entry.state == State::InDoubt {
                continue;
            }
            let mut entry = *entry;
            match seen.get(number) {
                Some(found) => entry.present(*number, found)?,
                None => entry.absent(*number)?,
            }
        }
        Ok(())
    }

    /// Parcels that are there, and their rows.
    pub(crate) fn kept(&self) -> (u64, u64) {
        let kept = self.parcels.values().filter(|entry| entry.state == State::Kept);
        kept.fold((0, 0), |(parcels, rows), entry| (parcels + 1, rows + entry.rows as u64))
    }
}

impl Entry {
    fn present(&mut self, number: i64, found: &ParcelRows) -> Result<()> {
        let rows = i64::from(self.rows);
        let parcel = Parcel { number, rows: self.rows };
        if self.state == State::Gone {
            return Err(wrong(number, "was gone and has come back"));
        }
        if found.rows != rows || found.places != rows * (rows - 1) / 2 {
            return Err(wrong(number, "is not there exactly once")
                .with_detail(format!("of {rows} rows, {} were found", found.rows)));
        }
        if found.cost != parcel.cost() {
            return Err(wrong(number, "has other values than were sent"));
        }
        let raised = (found.campaign - parcel.campaign()) as f64 / (RAISE * rows) as f64;
        let raising = i64::from(self.pending == Some(Change::Raise));
        let possible = self.raised..=self.raised + raising;
        let Some(raised) = possible.clone().find(|times| *times as f64 == raised) else {
            return Err(wrong(number, "was not updated as often as was acknowledged")
                .with_detail(format!("updates: {raised}; possible: {possible:?}")));
        };
        *self = Self { state: State::Kept, raised, pending: None, ..*self };
        Ok(())
    }

    fn absent(&mut self, number: i64) -> Result<()> {
        if self.state == State::Kept && self.pending != Some(Change::Delete) {
            return Err(wrong(number, "was acknowledged and is gone"));
        }
        *self = Self { state: State::Gone, pending: None, ..*self };
        Ok(())
    }
}

fn wrong(number: i64, what: &str) -> Error {
    Error::corrupt(format!("parcel {number} {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(parcel: Parcel, raised: i64) -> ParcelRows {
        let rows = i64::from(parcel.rows);
        ParcelRows {
            number: parcel.number,
            rows,
            places: rows * (rows - 1) / 2,
            cost: parcel.cost(),
            campaign: parcel.campaign() + raised * RAISE * rows,
        }
    }

    fn says(result: Result<Checked>) -> String {
        result.unwrap_err().message().to_owned()
    }

    #[test]
    fn what_was_acknowledged_must_be_there_once() {
        let mut ledger = Ledger::default();
        let parcel = ledger.begin(3);
        ledger.acknowledged(parcel.number);
        assert!(ledger.settle(&[found(parcel, 0)]).is_ok());
        assert_eq!(says(ledger.settle(&[])), "parcel 0 was acknowledged and is gone");
        let twice = ParcelRows { rows: 6, places: 6, ..found(parcel, 0) };
        assert_eq!(says(ledger.settle(&[twice])), "parcel 0 is not there exactly once");
        let other = ParcelRows { cost: 1, ..found(parcel, 0) };
        assert_eq!(says(ledger.settle(&[other])), "parcel 0 has other values than were sent");
        let stranger = Parcel { number: 9, rows: 1 };
        let both = [found(parcel, 0), found(stranger, 0)];
        assert_eq!(says(ledger.settle(&both)), "parcel 9 was sent by nobody");
    }

    #[test]
    fn doubts_are_settled_once() {
        let mut ledger = Ledger::default();
        let (there, away) = (ledger.begin(2), ledger.begin(2));
        let checked = ledger.settle(&[found(there, 0)]).unwrap();
        assert_eq!((checked.kept, checked.gone), (1, 1));
        assert_eq!(says(ledger.settle(&[])), "parcel 0 was acknowledged and is gone");
        let both = [found(there, 0), found(away, 0)];
        assert_eq!(says(ledger.settle(&both)), "parcel 1 was gone and has come back");
    }

    #[test]
    fn changes_are_counted() {
        let mut ledger = Ledger::default();
        let parcel = ledger.begin(2);
        assert_eq!(ledger.begin_change(0, Change::Raise), None);
        ledger.acknowledged(parcel.number);
        assert_eq!(ledger.begin_change(0, Change::Raise), Some(0));
        assert_eq!(ledger.begin_change(0, Change::Raise), None);
        ledger.settle(&[found(parcel, 1)]).unwrap();
        let message = "parcel 0 was not updated as often as was acknowledged";
        assert_eq!(says(ledger.settle(&[found(parcel, 0)])), message);
        assert_eq!(says(ledger.settle(&[found(parcel, 2)])), message);
        ledger.begin_change(0, Change::Delete).unwrap();
        ledger.changed(0, 2);
        assert_eq!(says(ledger.settle(&[found(parcel, 1)])), "parcel 0 was gone and has come back");
        assert!(ledger.settle(&[]).is_ok());
        assert_eq!(ledger.kept(), (0, 0));
    }
}
