//! Window functions: frames as PostgreSQL has them, and memory for results that grow with the frame.
//!
//! In: a window function whose parts were rewritten. Out: the same function, its frame in units that the
//! engine knows for the types of ORDER BY, what gives large values [`counted`] or [`picked`], and sums of floats
//! over frames that move [`recomputed`]. What numbers rows is in `ranks`.

mod counted;
mod frame;
mod given;
mod picked;
mod ranks;
mod recomputed;

pub use given::over_partition;
pub(crate) use ranks::functions;

use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::functions_window::nth_value::first_value_udwf;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{Expr, WindowFunctionDefinition};

use crate::call::{failure, unsupported};
use crate::filtered;
use crate::scope::Scope;

/// # Errors
/// A number of a row (22016) or of groups (22014) that is not positive.
/// Such a number that is computed of columns, and a frame by distances that are not known for the type of its ORDER BY (0A000).
pub(super) fn rewrite(window: Box<WindowFunction>, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    filtered::window(window).transform_data(|expr| match expr {
        Expr::WindowFunction(mut window) => {
            must_be_positive(&window)?;
            let is_null = give_null_for_no_groups(&mut window);
            let is_framed = frame::rewrite(&mut window.params, scope)?;
            let is_counted =
                counted::rewrite(&mut window, scope) || picked::rewrite(&mut window, scope);
            let is_changed =
                recomputed::rewrite(&mut window, scope) || is_framed || is_counted || is_null;
            Ok(Transformed::new_transformed(Expr::WindowFunction(window), is_changed))
        }
        other => Ok(Transformed::no(other)),
    })
}

/// Refuses `nth_value(x, 0)` and `ntile(0)`.
fn must_be_positive(window: &WindowFunction) -> Result<()> {
    let args = &window.params.args;
    let (number, code) = match (window.fun.name(), args.as_slice()) {
        ("nth_value", [_, number]) => (number, "22016"),
        ("ntile", [number]) => (number, "22014"),
        _ => return Ok(()),
    };
    if !number.column_refs().is_empty() {
        return Err(unsupported(
            format!("{} by a number of columns is not supported", window.fun.name()),
            "write the number as a literal",
        ));
    }
    let Expr::Literal(value, _) = number else { return Ok(()) };
    match value.cast_to(&DataType::Int64) {
        Ok(ScalarValue::Int64(Some(number))) if number <= 0 => {
            let name = window.fun.name();
            Err(failure(code, format!("argument of {name} must be greater than zero")))
        }
        _ => Ok(()),
    }
}

/// `ntile(NULL)` is NULL: the engine has no such number. Whether it was one.
fn give_null_for_no_groups(window: &mut WindowFunction) -> bool {
    fn is_null(expr: &Expr) -> bool {
        match expr {
            Expr::Literal(value, _) => value.is_null(),
            Expr::Cast(cast) => is_null(&cast.expr),
            _ => false,
        }
    }
    let is_null = window.fun.name() == "ntile" && window.params.args.iter().any(is_null);
    if is_null {
        let none = Expr::Literal(ScalarValue::Int32(None), None);
        window.fun = WindowFunctionDefinition::WindowUDF(first_value_udwf());
        window.params.args = vec![none];
    }
    is_null
}
