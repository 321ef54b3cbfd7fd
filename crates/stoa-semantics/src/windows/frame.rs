//! Frames of RANGE over types for which the engine has no such frames.
//!
//! Without distances, `RANGE` and `GROUPS` mean the same rows: those before and after the peers of a row.
//! **Invariant:** the frame has the same rows.

use arrow::datatypes::DataType;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::WindowFunctionParams;
use datafusion::logical_expr::{ExprSchemable, WindowFrame, WindowFrameBound, WindowFrameUnits};

use crate::call::unsupported;
use crate::operators::name;
use crate::scope::Scope;

/// Writes the frame in units that the engine knows; whether it is changed.
///
/// # Errors
/// Distances that are not known for the type of ORDER BY (0A000).
pub(super) fn rewrite(params: &mut WindowFunctionParams, scope: &Scope<'_>) -> Result<bool> {
    let frame = &params.window_frame;
    let Some(first) = params.order_by.first() else { return Ok(false) };
    if frame.units != WindowFrameUnits::Range {
        return Ok(false);
    }
    let of = first.expr.get_type(&scope.schema)?;
    if !is_distance(&frame.start_bound) && !is_distance(&frame.end_bound) {
        let mut keys = params.order_by.iter().map(|key| key.expr.get_type(&scope.schema));
        if keys.try_fold(true, |all, of| Ok::<_, DataFusionError>(all && is_ranged(&of?)))? {
            return Ok(false);
        }
        let (start, end) = (frame.start_bound.clone(), frame.end_bound.clone());
        params.window_frame = WindowFrame::new_bounds(WindowFrameUnits::Groups, start, end);
        return Ok(true);
    }
    match has_distances(&of) {
        true => Ok(false),
        false => Err(unsupported(
            format!(
                "RANGE with offset PRECEDING/FOLLOWING is not supported for column type {}",
                name(&of)
            ),
            "GROUPS and ROWS take numbers of groups and of rows, for all types",
        )),
    }
}

fn is_distance(bound: &WindowFrameBound) -> bool {
    *bound != WindowFrameBound::CurrentRow && !bound.is_unbounded()
}

/// Whether the engine has frames of RANGE over a type.
fn is_ranged(of: &DataType) -> bool {
    match of {
        DataType::Dictionary(_, of) => is_ranged(of),
        DataType::Boolean => true,
        // Their values are compared for a frame; lists within them cannot be.
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            !item.data_type().is_nested()
        }
        of => of.is_string() || has_distances(of),
    }
}

/// Whether two values of a type are so far from each other.
fn has_distances(of: &DataType) -> bool {
    match of {
        DataType::Dictionary(_, of) => has_distances(of),
        DataType::Null | DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) => true,
        of => of.is_numeric(),
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{IntervalUnit, TimeUnit};

    use super::*;

    #[test]
    fn distances_are_of_numbers_and_times_and_texts_have_an_order_only() {
        for of in [DataType::Int64, DataType::Date32, DataType::Timestamp(TimeUnit::Second, None)] {
            assert!(is_ranged(&of) && has_distances(&of), "{of}");
        }
        for of in [DataType::Utf8, DataType::Boolean] {
            assert!(is_ranged(&of) && !has_distances(&of), "{of}");
        }
        let others = [
            DataType::Binary,
            DataType::FixedSizeBinary(16),
            DataType::Time64(TimeUnit::Microsecond),
            DataType::Duration(TimeUnit::Microsecond),
            DataType::Interval(IntervalUnit::MonthDayNano),
        ];
        for of in others {
            assert!(!is_ranged(&of) && !has_distances(&of), "{of}");
        }
    }
}
