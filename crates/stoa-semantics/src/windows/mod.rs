//! Window functions: frames as PostgreSQL has them, and memory for results that grow with the frame.
//!
//! In: a window function whose parts were rewritten. Out: the same function, its frame in units that the
//! engine knows for the types of ORDER BY, and what gives large values [`counted`] or [`picked`]. What numbers rows
//! is in `ranks`.

mod counted;
mod frame;
mod given;
mod picked;
mod ranks;

pub use given::over_partition;
pub(crate) use ranks::functions;

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::WindowFunction;

use crate::filtered;
use crate::scope::Scope;

/// # Errors
/// A frame by distances that are not known for the type of its ORDER BY (0A000).
pub(super) fn rewrite(window: Box<WindowFunction>, scope: &Scope<'_>) -> Result<Transformed<Expr>> {
    filtered::window(window).transform_data(|expr| match expr {
        Expr::WindowFunction(mut window) => {
            let is_framed = frame::rewrite(&mut window.params, scope)?;
            let is_counted =
                counted::rewrite(&mut window, scope) || picked::rewrite(&mut window, scope);
            let is_changed = is_framed || is_counted;
            Ok(Transformed::new_transformed(Expr::WindowFunction(window), is_changed))
        }
        other => Ok(Transformed::no(other)),
    })
}
