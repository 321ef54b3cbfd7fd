//! Whether a statement is a report, and which.
//!
//! In: the syntax tree of a fingerprint, the table's columns, the schema that the planner gave the
//! answer. Out: a [`ReportShape`], or `None` for everything that is not exactly of the form
//!
//! ```sql
//! SELECT column | count(*) | sum/min/max/avg/count(column), …
//! FROM table WHERE column op value AND … GROUP BY column, … ORDER BY … LIMIT … OFFSET …
//! ```

use arrow::datatypes::{DataType, Schema, SchemaRef, TimeUnit};
use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, BinaryOperator, CastKind, DataType as SqlType, Distinct, Expr, FunctionArg,
    FunctionArgExpr, FunctionArguments, GroupByExpr, LimitClause, OrderByKind, Query, Select,
    SelectItem, SetExpr, Statement, TableFactor, TimezoneInfo, UnaryOperator, Value,
};
use stoa_orc::FIELD_ID_KEY;
use stoa_report::{Aggregate, Column, Item, Order, ValueKind, kind_of};
use stoa_table::Table;

use super::functions::{fits, function_of};
use super::shape::{Operand, ReportShape, ShapeCondition, ShapeTest};
use crate::reuse::template::TableForm;
use stoa_sql::fingerprint::{Literal, literal_of_place};
use stoa_sql::normalise;

/// The report that `statement` is, on `table`, if it is one. `schema` is that of the answer;
/// `parameter_types` are those of `$1`, `$2`, … as the planner has them.
pub(crate) fn recognise(
    statement: &Statement,
    literals: &[Literal<'_>],
    table: &Table,
    schema: SchemaRef,
    parameter_types: &[DataType],
) -> Option<ReportShape> {
    let Statement::Query(query) = statement else { return None };
    let select = plain_select(query)?;
    let columns = table.schema();
    let mut found = Recogniser {
        table: &columns,
        qualifier: qualifier(select)?,
        literals,
        parameter_types,
        columns: Vec::new(),
        aggregates: Vec::new(),
        pinned: Vec::new(),
    };
    let mut conditions = Vec::new();
    if let Some(selection) = &select.selection {
        found.conditions(selection, &mut conditions)?;
    }
    let mut items = Vec::with_capacity(select.projection.len());
    let mut names = Vec::with_capacity(items.capacity());
    for projected in &select.projection {
        let (expr, name) = match projected {
            SelectItem::UnnamedExpr(expr) => (expr, None),
            SelectItem::ExprWithAlias { expr, alias } => (expr, Some(normalise(alias))),
            _ => return None,
        };
        items.push(found.item(expr)?);
        names.push(name);
    }
    let GroupByExpr::Expressions(keys, modifiers) = &select.group_by else { return None };
    if !modifiers.is_empty() {
        return None;
    }
    let keys = keys.iter().map(|key| found.group_key(key, &items, &names));
    let group_by = keys.collect::<Option<Vec<_>>>()?;
    let order = found.order(query, &items, &names)?;
    let grouped = !group_by.is_empty() || !found.aggregates.is_empty();
    let is_key = |item: &Item| match item {
        Item::Column(column) => !grouped || group_by.contains(column),
        Item::Aggregate(_) => true,
    };
    let fits = items.len() == schema.fields().len()
        && items.iter().chain(order.iter().map(|order| &order.by)).all(is_key)
        && items
            .iter()
            .zip(schema.fields())
            .all(|(item, field)| fits(*item, &found.columns, &found.aggregates, field.data_type()));
    if !fits {
        return None;
    }
    let (limit, offset) = found.limit(query)?;
    Some(ReportShape {
        table: TableForm {
            ident: table.ident().clone(),
            uuid: table.uuid(),
            schema_id: table.schema_id(),
        },
        conditions,
        grouped,
        group_by,
        items,
        schema,
        order,
        limit,
        offset,
        parameter_types: parameter_types.to_vec(),
        columns: found.columns,
        aggregates: found.aggregates,
        pinned: found.pinned,
    })
}

/// The SELECT of a query that has nothing unusual about it.
fn plain_select(query: &Query) -> Option<&Select> {
    let is_plain = query.with.is_none()
        && query.fetch.is_none()
        && query.locks.is_empty()
        && query.for_clause.is_none()
        && query.settings.is_none()
        && query.format_clause.is_none()
        && query.pipe_operators.is_empty();
    let SetExpr::Select(select) = query.body.as_ref() else { return None };
    let is_plain = is_plain
        && matches!(select.distinct, None | Some(Distinct::All))
        && select.optimizer_hints.is_empty()
        && select.select_modifiers.is_none()
        && select.top.is_none()
        && select.exclude.is_none()
        && select.into.is_none()
        && select.lateral_views.is_empty()
        && select.prewhere.is_none()
        && select.connect_by.is_empty()
        && select.cluster_by.is_empty()
        && select.distribute_by.is_empty()
        && select.sort_by.is_empty()
        && select.having.is_none()
        && select.named_window.is_empty()
        && select.qualify.is_none()
        && select.value_table_mode.is_none();
    is_plain.then_some(select)
}

/// The name by which columns may be qualified: the alias, or the table's own name.
fn qualifier(select: &Select) -> Option<String> {
    let [from] = select.from.as_slice() else { return None };
    let TableFactor::Table {
        name,
        alias,
        args: None,
        with_hints,
        version: None,
        with_ordinality: false,
        partitions,
        json_path: None,
        sample: None,
        index_hints,
    } = &from.relation
    else {
        return None;
    };
    let is_plain = from.joins.is_empty()
        && with_hints.is_empty()
        && partitions.is_empty()
        && index_hints.is_empty()
        && alias.as_ref().is_none_or(|alias| alias.columns.is_empty());
    let own = match alias {
        Some(alias) => normalise(&alias.name),
        None => normalise(name.0.last()?.as_ident()?),
    };
    is_plain.then_some(own)
}

/// The name of the table that a plain SELECT reads.
pub(crate) fn table_of(
    statement: &Statement,
) -> Option<&datafusion::sql::sqlparser::ast::ObjectName> {
    let Statement::Query(query) = statement else { return None };
    let [from] = plain_select(query)?.from.as_slice() else { return None };
    match &from.relation {
        TableFactor::Table { name, .. } => Some(name),
        _ => None,
    }
}

struct Recogniser<'a> {
    table: &'a Schema,
    qualifier: String,
    literals: &'a [Literal<'a>],
    parameter_types: &'a [DataType],
    columns: Vec<Column>,
    aggregates: Vec<Aggregate>,
    pinned: Vec<(usize, String)>,
}

impl Recogniser<'_> {
    /// The index of the column that an expression names.
    fn column(&mut self, expr: &Expr) -> Option<usize> {
        let name = match expr {
            Expr::Identifier(name) => normalise(name),
            Expr::CompoundIdentifier(parts) => match parts.as_slice() {
                [table, name] if self.qualifier == normalise(table) => normalise(name),
                _ => return None,
            },
            Expr::Nested(inner) => return self.column(inner),
            _ => return None,
        };
        let position = self.table.fields().iter().position(|field| *field.name() == name)?;
        if let Some(known) = self.columns.iter().position(|column| column.position == position) {
            return Some(known);
        }
        let field = self.table.field(position);
        kind_of(field.data_type())?;
        let field_id = field.metadata().get(FIELD_ID_KEY)?.parse().ok()?;
        let data_type = field.data_type().clone();
        self.columns.push(Column { position, field_id, data_type });
        Some(self.columns.len() - 1)
    }

    fn kind(&self, column: usize) -> Option<ValueKind> {
        kind_of(&self.columns.get(column)?.data_type)
    }

    /// A column or an aggregate.
    fn item(&mut self, expr: &Expr) -> Option<Item> {
        let Expr::Function(_) = expr else {
            let column = self.column(expr)?;
            // Floating point is summed only.
            return (self.kind(column)? != ValueKind::Float).then_some(Item::Column(column));
        };
        let aggregate = self.aggregate(expr)?;
        let known = self.aggregates.iter().position(|one| *one == aggregate);
        let index = known.unwrap_or(self.aggregates.len());
        if known.is_none() {
            self.aggregates.push(aggregate);
        }
        Some(Item::Aggregate(index))
    }

    fn aggregate(&mut self, expr: &Expr) -> Option<Aggregate> {
        let Expr::Function(call) = expr else { return None };
        let is_plain = !call.uses_odbc_syntax
            && matches!(call.parameters, FunctionArguments::None)
            && call.filter.is_none()
            && call.null_treatment.is_none()
            && call.over.is_none()
            && call.within_group.is_empty();
        let [name] = call.name.0.as_slice() else { return None };
        let name = normalise(name.as_ident()?);
        let FunctionArguments::List(list) = &call.args else { return None };
        let [FunctionArg::Unnamed(argument)] = list.args.as_slice() else { return None };
        if !is_plain || list.duplicate_treatment.is_some() || !list.clauses.is_empty() {
            return None;
        }
        let column = match argument {
            FunctionArgExpr::Wildcard => None,
            FunctionArgExpr::Expr(Expr::Value(value)) => {
                // count(1): a literal is never NULL.
                let Value::Placeholder(place) = &value.value else { return None };
                literal_of_place(place)?;
                None
            }
            FunctionArgExpr::Expr(expr) => Some(self.column(expr)?),
            _ => return None,
        };
        let of = match column {
            Some(column) => Some(&self.columns.get(column)?.data_type),
            None => None,
        };
        let function = function_of(&name, of)?;
        Some(Aggregate { function, column })
    }

    /// Adds the parts of an AND.
    fn conditions(&mut self, expr: &Expr, found: &mut Vec<ShapeCondition>) -> Option<()> {
        match expr {
            Expr::Nested(inner) => self.conditions(inner, found),
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
                self.conditions(left, found)?;
                self.conditions(right, found)
            }
            other => {
                let condition = self.condition(other)?;
                // Floating point is not compared here.
                if self.kind(condition.column)? == ValueKind::Float {
                    return None;
                }
                found.push(condition);
                Some(())
            }
        }
    }

    fn condition(&mut self, expr: &Expr) -> Option<ShapeCondition> {
        let (column, test) = match expr {
            Expr::BinaryOp { left, op, right } => self.comparison(left, op, right)?,
            Expr::Between { expr, negated: false, low, high } => {
                let column = self.column(expr)?;
                let low = self.operand(low, column)?;
                (column, ShapeTest::Between(low, self.operand(high, column)?))
            }
            Expr::InList { expr, list, negated } => {
                let column = self.column(expr)?;
                let values = match list.as_slice() {
                    [one] if let Some(list) = self.listed_literals(one) => vec![list],
                    list => {
                        let values = list.iter().map(|value| self.operand(value, column));
                        values.collect::<Option<_>>()?
                    }
                };
                match negated {
                    false => (column, ShapeTest::OneOf(values)),
                    true => (column, ShapeTest::NoneOf(values)),
                }
            }
            Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. } => {
                let column = self.column(left)?;
                (column, ShapeTest::OneOf(vec![self.array(right, column)?]))
            }
            Expr::AllOp { left, compare_op: BinaryOperator::NotEq, right } => {
                let column = self.column(left)?;
                (column, ShapeTest::NoneOf(vec![self.array(right, column)?]))
            }
            Expr::IsNull(inner) => (self.column(inner)?, ShapeTest::IsNull),
            Expr::IsNotNull(inner) => (self.column(inner)?, ShapeTest::IsNotNull),
            _ => return None,
        };
        Some(ShapeCondition { column, test })
    }

    fn comparison(
        &mut self,
        left: &Expr,
        op: &BinaryOperator,
        right: &Expr,
    ) -> Option<(usize, ShapeTest)> {
        let (column, value, mirrored) = match self.column(left) {
            Some(column) => (column, right, false),
            None => (self.column(right)?, left, true),
        };
        let value = self.operand(value, column)?;
        let test = match (op, mirrored) {
            (BinaryOperator::Eq, _) => ShapeTest::Equal(value),
            (BinaryOperator::NotEq, _) => ShapeTest::NotEqual(value),
            (BinaryOperator::Lt, false) | (BinaryOperator::Gt, true) => ShapeTest::Less(value),
            (BinaryOperator::LtEq, false) | (BinaryOperator::GtEq, true) => {
                ShapeTest::LessOrEqual(value)
            }
            (BinaryOperator::Gt, false) | (BinaryOperator::Lt, true) => ShapeTest::Greater(value),
            (BinaryOperator::GtEq, false) | (BinaryOperator::LtEq, true) => {
                ShapeTest::GreaterOrEqual(value)
            }
            _ => return None,
        };
        Some((column, test))
    }

    /// A literal or a parameter that is compared with `column`, perhaps cast to a type in which the
    /// comparison comes to the same.
    fn operand(&mut self, expr: &Expr, column: usize) -> Option<Operand> {
        let (value, cast) = match expr {
            Expr::Cast {
                kind: CastKind::Cast | CastKind::DoubleColon,
                expr,
                data_type,
                format: None,
                ..
            } => (expr.as_ref(), Some(plain_type(data_type)?)),
            plain => (plain, None),
        };
        let operand = self.value(value)?;
        let column = &self.columns.get(column)?.data_type;
        let same_numbers = |of: &DataType| of == column || of.is_integer() && column.is_integer();
        let fits = match (operand, &cast) {
            // In another type than the column's, the planner would compare in another way.
            (Operand::Parameter(number), cast) => {
                let planned = self.parameter_types.get(number)?;
                same_numbers(planned) && cast.as_ref().is_none_or(|cast| cast == planned)
            }
            (Operand::Literal { .. }, None) => true,
            // All literals fit the largest integers.
            (Operand::Literal { .. }, Some(DataType::Int64)) => column.is_integer(),
            (Operand::Literal { .. }, Some(cast)) => cast == column && !cast.is_integer(),
        };
        fits.then_some(operand)
    }

    /// An array of values that are compared with `column`.
    fn array(&self, expr: &Expr, column: usize) -> Option<Operand> {
        if let Expr::Nested(inner) = expr {
            return self.array(inner, column);
        }
        let column = &self.columns.get(column)?.data_type;
        let (value, cast) = match expr {
            Expr::Cast {
                kind: CastKind::Cast | CastKind::DoubleColon,
                expr,
                data_type: SqlType::Array(ArrayElemTypeDef::SquareBracket(of, None)),
                format: None,
                ..
            } => (expr.as_ref(), Some(plain_type(of)?)),
            Expr::Array(array) => {
                let [one] = array.elem.as_slice() else { return None };
                // Texts in an array are texts, whatever they are compared with.
                let is_text = *column == DataType::Utf8;
                return self.listed_literals(one).filter(|_| is_text);
            }
            plain => (plain, None),
        };
        let operand @ Operand::Parameter(number) = self.value(value)? else { return None };
        let DataType::List(planned) = self.parameter_types.get(number)? else { return None };
        let planned = planned.data_type();
        let fits = planned == column || planned.is_integer() && column.is_integer();
        (fits && cast.is_none_or(|cast| cast == *planned)).then_some(operand)
    }

    /// The place of a list of literals.
    fn listed_literals(&self, expr: &Expr) -> Option<Operand> {
        let number = self.place(expr)?;
        self.literals
            .get(number)?
            .kind
            .is_list()
            .then_some(Operand::Literal { number, negated: false })
    }

    /// The number of the literal in whose place an expression is.
    fn place(&self, expr: &Expr) -> Option<usize> {
        let Expr::Value(value) = expr else { return None };
        let Value::Placeholder(place) = &value.value else { return None };
        literal_of_place(place)
    }

    fn value(&self, expr: &Expr) -> Option<Operand> {
        match expr {
            Expr::Nested(inner) => self.value(inner),
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match self.value(expr)? {
                Operand::Literal { number, negated: false } => {
                    Some(Operand::Literal { number, negated: true })
                }
                _ => None,
            },
            Expr::Value(value) => {
                let Value::Placeholder(place) = &value.value else { return None };
                if let Some(number) = literal_of_place(place) {
                    // A list is no value.
                    (!self.literals.get(number)?.kind.is_list()).then_some(())?;
                    return Some(Operand::Literal { number, negated: false });
                }
                let number: usize = place.strip_prefix('$')?.parse().ok()?;
                Some(Operand::Parameter(number.checked_sub(1)?))
            }
            _ => None,
        }
    }

    /// The column behind a position (`GROUP BY 1`), whose number becomes part of the shape.
    fn ordinal(&mut self, expr: &Expr, items: &[Item]) -> Option<Item> {
        let Operand::Literal { number, negated: false } = self.value(expr)? else { return None };
        let text = self.literals.get(number)?.text.to_string();
        let position: usize = text.parse().ok()?;
        self.pinned.push((number, text));
        items.get(position.checked_sub(1)?).copied()
    }

    fn group_key(
        &mut self,
        expr: &Expr,
        items: &[Item],
        names: &[Option<String>],
    ) -> Option<usize> {
        if let Expr::Value(_) = expr {
            return match self.ordinal(expr, items)? {
                Item::Column(column) => Some(column),
                Item::Aggregate(_) => None,
            };
        }
        // A name may be an alias: that of a column of the table goes first, but not if they differ.
        if let Some(named) = aliased(expr, items, names) {
            let column = self.column(expr);
            return match (named, column) {
                (Item::Column(aliased), Some(column)) if aliased == column => Some(column),
                (Item::Column(aliased), None) => Some(aliased),
                _ => None,
            };
        }
        let column = self.column(expr)?;
        (self.kind(column)? != ValueKind::Float).then_some(column)
    }

    fn order(
        &mut self,
        query: &Query,
        items: &[Item],
        names: &[Option<String>],
    ) -> Option<Vec<Order>> {
        let Some(order_by) = &query.order_by else { return Some(Vec::new()) };
        let OrderByKind::Expressions(keys) = &order_by.kind else { return None };
        if order_by.interpolate.is_some() {
            return None;
        }
        let keys = keys.iter().map(|key| {
            let by = match &key.expr {
                Expr::Value(_) => self.ordinal(&key.expr, items)?,
                expr => match aliased(expr, items, names) {
                    Some(item) => item,
                    None => self.item(expr)?,
                },
            };
            let descending = key.options.asc == Some(false);
            // As in PostgreSQL, NULL is the greatest.
            let nulls_first = key.options.nulls_first.unwrap_or(descending);
            key.with_fill.is_none().then_some(Order { by, descending, nulls_first })
        });
        keys.collect()
    }

    fn limit(&self, query: &Query) -> Option<(Option<Operand>, Option<Operand>)> {
        let number = |expr: &Expr| match self.value(expr)? {
            operand @ Operand::Literal { negated: false, .. } => Some(operand),
            _ => None,
        };
        match &query.limit_clause {
            None => Some((None, None)),
            Some(LimitClause::LimitOffset { limit, offset, limit_by }) if limit_by.is_empty() => {
                let limit = match limit {
                    Some(expr) => Some(number(expr)?),
                    None => None,
                };
                let offset = match offset {
                    Some(offset) => Some(number(&offset.value)?),
                    None => None,
                };
                Some((limit, offset))
            }
            Some(_) => None,
        }
    }
}

/// The type that a cast names, where it is one without parameters.
fn plain_type(data_type: &SqlType) -> Option<DataType> {
    Some(match data_type {
        SqlType::BigInt(None) | SqlType::Int8(None) => DataType::Int64,
        SqlType::Int(None) | SqlType::Integer(None) | SqlType::Int4(None) => DataType::Int32,
        SqlType::SmallInt(None) | SqlType::Int2(None) => DataType::Int16,
        SqlType::Date => DataType::Date32,
        SqlType::Text | SqlType::Varchar(None) | SqlType::CharacterVarying(None) => DataType::Utf8,
        SqlType::Timestamp(None, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            DataType::Timestamp(TimeUnit::Microsecond, None)
        }
        _ => return None,
    })
}

/// The item whose alias an expression is.
fn aliased(expr: &Expr, items: &[Item], names: &[Option<String>]) -> Option<Item> {
    let Expr::Identifier(name) = expr else { return None };
    let name = normalise(name);
    let mut found = names.iter().zip(items).filter(|(alias, _)| alias.as_ref() == Some(&name));
    let (_, item) = found.next()?;
    found.next().is_none().then_some(*item)
}
