//! Values as text: numbers, points in time, JSON strings.
//!
//! All functions append to a buffer and never fail. **Invariant:** every number that is printed
//! reads back as the same number.

pub(crate) mod calendar;
pub(crate) mod json;
pub(crate) mod number;
pub(crate) mod string;
