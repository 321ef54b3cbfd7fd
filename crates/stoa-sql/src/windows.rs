//! `OVER (w ORDER BY …)`: the engine forgets the window `w` that is built upon. It is written out here.
//!
//! In: a parsed statement. Out: the same with no window that names another one. **Invariant:** a name means a
//! window of the same SELECT, never one of a query around it.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    Expr, Ident, NamedWindowExpr, Query, Select, Statement, VisitorMut, WindowSpec, WindowType,
};
use stoa_error::{Error, Result, Subject};

use crate::normalise;
use crate::walk::WalkMut;

/// Puts into each window the one that it names.
///
/// # Errors
/// No such window (42704), and what a window may not take from another (42P20).
pub(super) fn write_out_named_windows(statement: &mut Statement) -> Result<()> {
    match statement.walk_mut(&mut NamedWindows::default()) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(*error),
    }
}

type Windows = HashMap<String, WindowSpec>;

/// The windows of each query that is being visited, the innermost last.
#[derive(Default)]
struct NamedWindows(Vec<Windows>);

impl VisitorMut for NamedWindows {
    type Break = Box<Error>;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Self::Break> {
        self.0.push(Windows::new());
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<Self::Break> {
        self.0.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Self::Break> {
        let mut windows = Windows::new();
        for definition in &mut select.named_window {
            let mut spec = match &definition.1 {
                NamedWindowExpr::WindowSpec(spec) => spec.clone(),
                NamedWindowExpr::NamedWindow(name) => built_upon(name),
            };
            if let Err(error) = complete(&mut spec, &windows) {
                return ControlFlow::Break(Box::new(error));
            }
            windows.insert(normalise(&definition.0), spec.clone());
            definition.1 = NamedWindowExpr::WindowSpec(spec);
        }
        // ORDER BY comes after the SELECT whose windows it may name.
        match self.0.last_mut() {
            Some(known) => *known = windows,
            None => self.0.push(windows),
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Self::Break> {
        let (Expr::Function(call), Some(windows)) = (expr, self.0.last()) else {
            return ControlFlow::Continue(());
        };
        match &mut call.over {
            Some(WindowType::WindowSpec(spec)) => {
                if let Err(error) = complete(spec, windows) {
                    return ControlFlow::Break(Box::new(error));
                }
            }
            // The engine knows the names in the SELECT only, not in ORDER BY.
            Some(WindowType::NamedWindow(name)) => {
                if let Some(spec) = windows.get(&normalise(name)) {
                    call.over = Some(WindowType::WindowSpec(spec.clone()));
                }
            }
            None => {}
        }
        ControlFlow::Continue(())
    }
}

fn built_upon(name: &Ident) -> WindowSpec {
    WindowSpec {
        window_name: Some(name.clone()),
        partition_by: Vec::new(),
        order_by: Vec::new(),
        window_frame: None,
    }
}

/// Takes over what `spec` does not say from the window that it names.
fn complete(spec: &mut WindowSpec, windows: &Windows) -> Result<()> {
    let Some(name) = spec.window_name.take() else { return Ok(()) };
    let refuse = |what: &str| {
        let message = format!("cannot {what} of window \"{}\"", name.value);
        Err(Error::invalid(message).with_sqlstate("42P20"))
    };
    let Some(base) = windows.get(&normalise(&name)) else {
        let message = format!("window \"{}\" does not exist", name.value);
        let subject = Subject::Name(name.value.clone());
        return Err(Error::not_found(message).with_sqlstate("42704").about(subject));
    };
    if !spec.partition_by.is_empty() {
        return refuse("override the PARTITION BY");
    }
    if !spec.order_by.is_empty() && !base.order_by.is_empty() {
        return refuse("override the ORDER BY");
    }
    if base.window_frame.is_some() {
        return refuse("copy the frame");
    }
    spec.partition_by.clone_from(&base.partition_by);
    if spec.order_by.is_empty() {
        spec.order_by.clone_from(&base.order_by);
    }
    Ok(())
}
