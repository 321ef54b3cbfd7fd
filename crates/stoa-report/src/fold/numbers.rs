//! Whole numbers computed of columns, in 64 bits.

/// What is done with two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberOp {
    /// Their sum.
    Add,
    /// The first less the second.
    Subtract,
    /// Their product.
    Multiply,
}

/// A whole number of each row, unscaled where it is a decimal. NULL where a column is.
#[derive(Clone, Debug, PartialEq)]
pub enum Number {
    /// The value of a column, by index.
    Column(usize),
    /// The same for all rows.
    Constant(i64),
    /// Of two numbers.
    Of(NumberOp, Box<Number>, Box<Number>),
    /// Of one number, which is an error for the engine where it is not within these bounds.
    Within(Box<Number>, i64, i64),
}

impl Number {
    /// The least and the greatest number that there may be, if all on the way to it fit 64 bits and their bounds.
    pub(super) fn ends(&self, of: &impl Fn(usize) -> Option<(i64, i64)>) -> Option<(i64, i64)> {
        match self {
            Self::Column(column) => of(*column),
            Self::Constant(value) => Some((*value, *value)),
            Self::Of(op, a, b) => {
                let (a, b) = (a.ends(of)?, b.ends(of)?);
                match op {
                    NumberOp::Add => Some((a.0.checked_add(b.0)?, a.1.checked_add(b.1)?)),
                    NumberOp::Subtract => Some((a.0.checked_sub(b.1)?, a.1.checked_sub(b.0)?)),
                    NumberOp::Multiply => {
                        let corners = [(a.0, b.0), (a.0, b.1), (a.1, b.0), (a.1, b.1)];
                        let corners = corners.map(|(a, b)| i128::from(a) * i128::from(b));
                        let least = corners.iter().min().and_then(|v| i64::try_from(*v).ok())?;
                        let greatest = corners.iter().max().and_then(|v| i64::try_from(*v).ok())?;
                        Some((least, greatest))
                    }
                }
            }
            Self::Within(number, least, greatest) => {
                let ends = number.ends(of)?;
                (*least <= ends.0 && ends.1 <= *greatest).then_some(ends)
            }
        }
    }

    /// The numbers themselves; whoever asks has seen that they fit. `of` gives those of a column.
    pub(super) fn values(
        &self,
        rows: usize,
        of: &mut impl FnMut(usize) -> Option<Vec<i64>>,
    ) -> Option<Vec<i64>> {
        match self {
            Self::Column(column) => of(*column),
            Self::Constant(value) => Some(vec![*value; rows]),
            Self::Within(number, ..) => number.values(rows, of),
            Self::Of(op, a, b) => {
                // At NULLs there may be anything.
                let apply = match op {
                    NumberOp::Add => i64::wrapping_add,
                    NumberOp::Subtract => i64::wrapping_sub,
                    NumberOp::Multiply => i64::wrapping_mul,
                };
                match (a.as_ref(), b.as_ref()) {
                    (Self::Constant(a), b) => {
                        let mut b = b.values(rows, of)?;
                        b.iter_mut().for_each(|b| *b = apply(*a, *b));
                        Some(b)
                    }
                    (a, Self::Constant(b)) => {
                        let mut a = a.values(rows, of)?;
                        a.iter_mut().for_each(|a| *a = apply(*a, *b));
                        Some(a)
                    }
                    (a, b) => {
                        let (mut a, b) = (a.values(rows, of)?, b.values(rows, of)?);
                        a.iter_mut().zip(&b).for_each(|(a, b)| *a = apply(*a, *b));
                        Some(a)
                    }
                }
            }
        }
    }

    /// The column that it is, and how much more than that, where it is no more than this.
    pub(super) fn shifted(&self) -> Option<(usize, i64)> {
        match self {
            Self::Column(column) => Some((*column, 0)),
            Self::Constant(_) => None,
            Self::Within(number, ..) => number.shifted(),
            Self::Of(op, a, b) => match (op, a.as_ref(), b.as_ref()) {
                (NumberOp::Add, a, Self::Constant(by)) | (NumberOp::Add, Self::Constant(by), a) => {
                    let (column, before) = a.shifted()?;
                    Some((column, before.checked_add(*by)?))
                }
                (NumberOp::Subtract, a, Self::Constant(by)) => {
                    let (column, before) = a.shifted()?;
                    Some((column, before.checked_sub(*by)?))
                }
                _ => None,
            },
        }
    }

    /// Adds the columns that it is of.
    pub(super) fn columns(&self, columns: &mut Vec<usize>) {
        match self {
            Self::Column(column) => columns.push(*column),
            Self::Constant(_) => {}
            Self::Within(number, ..) => number.columns(columns),
            Self::Of(_, a, b) => {
                a.columns(columns);
                b.columns(columns);
            }
        }
    }
}
