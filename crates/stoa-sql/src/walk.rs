//! Visits of syntax trees, for which the way through the tree is compiled once.
//!
//! The parser's library compiles that way, through all of its types, for each visitor anew: with sixty visitors that was
//! most of what this crate took to build. Here it is compiled for one, which calls the others through a table of
//! functions. What is visited, and in which order, is the library's.

use std::ops::ControlFlow;

use datafusion_sql::sqlparser::ast::{
    Expr, ObjectName, Query, Select, Statement, TableFactor, ValueWithSpan, Visit, VisitMut,
    Visitor, VisitorMut,
};

/// Trees that can be read.
pub trait Walk: Visit {
    /// As [`Visit::visit`].
    fn walk<V: Visitor>(&self, visitor: &mut V) -> ControlFlow<V::Break> {
        let mut keeping = Keeping { visitor, kept: None };
        match (self.visit(&mut Any(&mut keeping)), keeping.kept) {
            (ControlFlow::Break(()), Some(kept)) => ControlFlow::Break(kept),
            _ => ControlFlow::Continue(()),
        }
    }
}

impl<T: Visit> Walk for T {}

/// Trees that can be changed.
pub trait WalkMut: VisitMut {
    /// As [`VisitMut::visit`].
    fn walk_mut<V: VisitorMut>(&mut self, visitor: &mut V) -> ControlFlow<V::Break> {
        let mut keeping = KeepingMut { visitor, kept: None };
        match (self.visit(&mut AnyMut(&mut keeping)), keeping.kept) {
            (ControlFlow::Break(()), Some(kept)) => ControlFlow::Break(kept),
            _ => ControlFlow::Continue(()),
        }
    }
}

impl<T: VisitMut> WalkMut for T {}

/// Calls `f` for all expressions, each before those within it.
pub fn walk_expressions<E>(
    tree: &impl Walk,
    f: impl FnMut(&Expr) -> ControlFlow<E>,
) -> ControlFlow<E> {
    tree.walk(&mut OnExpressions(f))
}

/// Calls `f` for all expressions, each after those within it.
pub fn walk_expressions_mut<E>(
    tree: &mut impl WalkMut,
    f: impl FnMut(&mut Expr) -> ControlFlow<E>,
) -> ControlFlow<E> {
    tree.walk_mut(&mut OnExpressions(f))
}

/// Calls `f` for the names of all tables.
pub fn walk_relations<E>(
    tree: &impl Walk,
    f: impl FnMut(&ObjectName) -> ControlFlow<E>,
) -> ControlFlow<E> {
    tree.walk(&mut OnRelations(f))
}

struct OnExpressions<F>(F);

impl<E, F: FnMut(&Expr) -> ControlFlow<E>> Visitor for OnExpressions<F> {
    type Break = E;

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<E> {
        self.0(expr)
    }
}

impl<E, F: FnMut(&mut Expr) -> ControlFlow<E>> VisitorMut for OnExpressions<F> {
    type Break = E;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<E> {
        self.0(expr)
    }
}

struct OnRelations<F>(F);

impl<E, F: FnMut(&ObjectName) -> ControlFlow<E>> Visitor for OnRelations<F> {
    type Break = E;

    fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<E> {
        self.0(relation)
    }
}

/// Keeps what a visitor breaks off with, so that all break off with nothing.
struct Keeping<'a, V: Visitor> {
    visitor: &'a mut V,
    kept: Option<V::Break>,
}

struct KeepingMut<'a, V: VisitorMut> {
    visitor: &'a mut V,
    kept: Option<V::Break>,
}

/// The visitor for which the way through a tree is compiled.
struct Any<'a>(&'a mut dyn Visitor<Break = ()>);

struct AnyMut<'a>(&'a mut dyn VisitorMut<Break = ()>);

fn keep<B>(kept: &mut Option<B>, flow: ControlFlow<B>) -> ControlFlow<()> {
    flow.map_break(|with| *kept = Some(with))
}

/// The methods of a visitor of trees that are referred to by `&` or `&mut`.
macro_rules! methods {
    ($through:ident: $($reference:tt)+) => {
        type Break = ();

        $through!(pre_visit_query, $($reference)+ Query);
        $through!(pre_visit_select, $($reference)+ Select);
        $through!(pre_visit_relation, $($reference)+ ObjectName);
        $through!(pre_visit_table_factor, $($reference)+ TableFactor);
        $through!(pre_visit_expr, $($reference)+ Expr);
        $through!(pre_visit_statement, $($reference)+ Statement);
        $through!(pre_visit_value, $($reference)+ ValueWithSpan);
        $through!(post_visit_query, $($reference)+ Query);
        $through!(post_visit_select, $($reference)+ Select);
        $through!(post_visit_relation, $($reference)+ ObjectName);
        $through!(post_visit_table_factor, $($reference)+ TableFactor);
        $through!(post_visit_expr, $($reference)+ Expr);
        $through!(post_visit_statement, $($reference)+ Statement);
        $through!(post_visit_value, $($reference)+ ValueWithSpan);
    };
}

/// A method that has the visitor do it, and keeps what that breaks off with.
macro_rules! kept {
    ($method:ident, $part:ty) => {
        fn $method(&mut self, part: $part) -> ControlFlow<()> {
            keep(&mut self.kept, self.visitor.$method(part))
        }
    };
}

/// A method that is passed on.
macro_rules! passed {
    ($method:ident, $part:ty) => {
        fn $method(&mut self, part: $part) -> ControlFlow<()> {
            self.0.$method(part)
        }
    };
}

impl<V: Visitor> Visitor for Keeping<'_, V> {
    methods!(kept: &);
}

impl<V: VisitorMut> VisitorMut for KeepingMut<'_, V> {
    methods!(kept: &mut);
}

impl Visitor for Any<'_> {
    methods!(passed: &);
}

impl VisitorMut for AnyMut<'_> {
    methods!(passed: &mut);
}
