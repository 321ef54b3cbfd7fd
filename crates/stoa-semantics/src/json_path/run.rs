//! Where a path leads in a value.

use std::borrow::Cow;
use std::cmp::Ordering;

use arrow::datatypes::i256;
use datafusion::error::DataFusionError;

use super::parse::{Compare, Expr, Method, Path, Start, Step};
use crate::call::failure;
use crate::cast_text;
use crate::json_text::value::{Item, Json};
use crate::json_text::write;
use crate::numeric::{self, Decimal};

/// Why a path leads nowhere.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The value is not as the path wants it: silent functions do not tell, and predicates are unknown.
    OfValue(DataFusionError),
    Other(DataFusionError),
}

impl From<DataFusionError> for Failure {
    fn from(error: DataFusionError) -> Self {
        Self::Other(error)
    }
}

type Found<'v> = Vec<Cow<'v, Item<'v>>>;
type Ran<T> = Result<T, Failure>;

/// Items, as many as there were before a failure.
pub(crate) struct Answer<'v> {
    pub(crate) items: Found<'v>,
    pub(crate) failure: Option<Failure>,
}

/// Items that one value may lead to, at most.
const ITEMS_MAX: usize = 1_000_000;

/// Follows a path from `root`, with the members of an object as variables.
pub(crate) fn run<'v>(
    path: &'v Path,
    root: &'v Item<'v>,
    vars: Option<&'v Item<'v>>,
) -> Answer<'v> {
    let run = Run { is_lax: !path.is_strict, root, vars };
    let mut items = Vec::new();
    let current = Cow::Borrowed(root);
    let scope = Scope { current: &current, length: None, is_lenient: run.is_lax };
    let ran = run.expr(&path.expr, scope, &mut items);
    Answer { items, failure: ran.err() }
}

struct Run<'v> {
    is_lax: bool,
    root: &'v Item<'v>,
    vars: Option<&'v Item<'v>>,
}

/// What `@` and `last` are.
#[derive(Clone, Copy)]
struct Scope<'s, 'v> {
    current: &'s Cow<'v, Item<'v>>,
    length: Option<usize>,
    /// Whether what is not there is not missed.
    is_lenient: bool,
}

fn of_value<T>(sqlstate: &'static str, message: impl Into<String>) -> Ran<T> {
    Err(Failure::OfValue(failure(sqlstate, message)))
}

/// Three values: `None` is unknown.
type Truth = Option<bool>;

impl<'v> Run<'v> {
    fn push(&self, item: Cow<'v, Item<'v>>, out: &mut Found<'v>) -> Ran<()> {
        if out.len() >= ITEMS_MAX {
            let message = format!("a jsonpath leads to more than {ITEMS_MAX} items");
            return Err(Failure::Other(failure("54000", message)));
        }
        out.push(item);
        Ok(())
    }

    /// The items of an expression.
    fn expr(&self, expr: &'v Expr, scope: Scope<'_, 'v>, out: &mut Found<'v>) -> Ran<()> {
        match expr {
            Expr::From(start, steps) => match start.as_ref() {
                Start::Root => self.steps(steps, Cow::Borrowed(self.root), scope, out),
                Start::Current => self.steps(steps, scope.current.clone(), scope, out),
                Start::Value(value) => self.steps(steps, Cow::Owned(value.clone()), scope, out),
                Start::Last => {
                    let last = scope.length.map_or(0, |length| length as i64 - 1);
                    self.steps(steps, Cow::Owned(number_item(&last.to_string())), scope, out)
                }
                Start::Variable(name) => {
                    let value = self.vars.and_then(|vars| vars.member(name)).ok_or_else(|| {
                        failure("42704", format!("could not find jsonpath variable \"{name}\""))
                    })?;
                    self.steps(steps, Cow::Borrowed(value), scope, out)
                }
                Start::Nested(inner) => {
                    let mut found = Vec::new();
                    self.expr(inner, scope, &mut found)?;
                    found.into_iter().try_for_each(|item| self.steps(steps, item, scope, out))
                }
            },
            Expr::Negative(inner) | Expr::Positive(inner) => {
                let sign = if matches!(expr, Expr::Negative(_)) { '-' } else { '+' };
                for item in self.unwrapped(inner, scope)? {
                    let Json::Number(digits) = &item.json else {
                        let message = format!(
                            "operand of unary jsonpath operator {sign} is not a numeric value"
                        );
                        return of_value("2203B", message);
                    };
                    let mut value = decimal(digits)?;
                    if sign == '-' {
                        value.digits = value.digits.wrapping_neg();
                    }
                    self.push(Cow::Owned(number_of(value)), out)?;
                }
                Ok(())
            }
            Expr::Arithmetic(sign, left, right) => {
                let operand = |side: &str, operand: &'v Expr| {
                    let found = self.unwrapped(operand, scope)?;
                    match found.as_slice() {
                        [item] if matches!(item.json, Json::Number(_)) => Ok(item.clone()),
                        _ => of_value(
                            "22038",
                            format!(
                                "{side} operand of jsonpath operator {sign} is not a single numeric value"
                            ),
                        ),
                    }
                };
                let (left, right) = (operand("left", left)?, operand("right", right)?);
                let (Json::Number(a), Json::Number(b)) = (&left.json, &right.json) else {
                    return Ok(());
                };
                let value = computed(*sign, decimal(a)?, decimal(b)?)?;
                self.push(Cow::Owned(number_of(value)), out)
            }
            predicate => {
                let json = match self.truth(predicate, scope)? {
                    Some(truth) => Json::Bool(truth),
                    None => Json::Null,
                };
                self.push(Cow::Owned(Item::made(json)), out)
            }
        }
    }

    /// The items of an operand, where arrays stand for their elements unless the path is strict.
    fn unwrapped(&self, expr: &'v Expr, scope: Scope<'_, 'v>) -> Ran<Found<'v>> {
        let (mut found, mut out) = (Vec::new(), Vec::new());
        self.expr(expr, scope, &mut found)?;
        for item in found {
            match (self.is_lax, elements(&item)) {
                (true, Some(items)) => out.extend(items),
                _ => out.push(item),
            }
        }
        Ok(out)
    }

    /// Follows steps from an item, each item to its end.
    fn steps(
        &self,
        steps: &'v [Step],
        item: Cow<'v, Item<'v>>,
        scope: Scope<'_, 'v>,
        out: &mut Found<'v>,
    ) -> Ran<()> {
        let Some((step, rest)) = steps.split_first() else { return self.push(item, out) };
        // In lax mode, what is done with an array is done with its elements.
        let takes_elements = matches!(step, Step::Key(_) | Step::AnyKey | Step::Filter(_))
            || matches!(step, Step::Method(method) if !matches!(method, Method::Type | Method::Size));
        if takes_elements
            && self.is_lax
            && let Some(items) = elements(&item)
        {
            return items.into_iter().try_for_each(|item| self.step(step, rest, item, scope, out));
        }
        self.step(step, rest, item, scope, out)
    }

    fn step(
        &self,
        step: &'v Step,
        rest: &'v [Step],
        item: Cow<'v, Item<'v>>,
        scope: Scope<'_, 'v>,
        out: &mut Found<'v>,
    ) -> Ran<()> {
        match step {
            Step::Key(key) => match &item.json {
                Json::Object(_) => match member(&item, key) {
                    Some(value) => self.steps(rest, value, scope, out),
                    None if scope.is_lenient => Ok(()),
                    None => {
                        of_value("2203A", format!("JSON object does not contain key \"{key}\""))
                    }
                },
                _ if scope.is_lenient => Ok(()),
                _ => of_value("2203A", "jsonpath member accessor can only be applied to an object"),
            },
            Step::AnyKey => match members(&item) {
                Some(values) => {
                    values.into_iter().try_for_each(|value| self.steps(rest, value, scope, out))
                }
                None if scope.is_lenient => Ok(()),
                None => of_value(
                    "2203C",
                    "jsonpath wildcard member accessor can only be applied to an object",
                ),
            },
            Step::AnyPlace => match elements(&item) {
                Some(items) => {
                    items.into_iter().try_for_each(|item| self.steps(rest, item, scope, out))
                }
                None if self.is_lax => self.steps(rest, item, scope, out),
                None if scope.is_lenient => Ok(()),
                None => of_value(
                    "22039",
                    "jsonpath wildcard array accessor can only be applied to an array",
                ),
            },
            Step::Places(places) => self.places(places, rest, item, scope, out),
            Step::Levels(first, last) => {
                let lenient = Scope { is_lenient: true, ..scope };
                self.levels((*first, *last), 0, rest, item, lenient, out)
            }
            Step::Filter(condition) => {
                let inner = Scope { current: &item, ..scope };
                match self.truth(condition, inner)? {
                    Some(true) => self.steps(rest, item, scope, out),
                    _ => Ok(()),
                }
            }
            Step::Method(method) => {
                let value = self.method(*method, &item)?;
                self.steps(rest, Cow::Owned(value), scope, out)
            }
        }
    }

    fn places(
        &self,
        places: &'v [(Expr, Option<Expr>)],
        rest: &'v [Step],
        item: Cow<'v, Item<'v>>,
        scope: Scope<'_, 'v>,
        out: &mut Found<'v>,
    ) -> Ran<()> {
        let items = match elements(&item) {
            Some(items) => items,
            None if self.is_lax => vec![item.clone()],
            None if scope.is_lenient => return Ok(()),
            None => {
                let message = "jsonpath array accessor can only be applied to an array";
                return of_value("22039", message);
            }
        };
        let inner = Scope { length: Some(items.len()), ..scope };
        let count = items.len() as i64;
        for (first, last) in places {
            let first = self.place(first, inner)?;
            let last = match last {
                Some(last) => self.place(last, inner)?,
                None => first,
            };
            if !scope.is_lenient && (first < 0 || first > last || last >= count) {
                return of_value("22033", "jsonpath array subscript is out of bounds");
            }
            for place in first.max(0)..=last.min(count - 1) {
                let item = items[place as usize].clone();
                self.steps(rest, item, scope, out)?;
            }
        }
        Ok(())
    }

    fn place(&self, expr: &'v Expr, scope: Scope<'_, 'v>) -> Ran<i64> {
        let mut found = Vec::new();
        self.expr(expr, scope, &mut found)?;
        let [item] = found.as_slice() else {
            return of_value("22033", "jsonpath array subscript is not a single numeric value");
        };
        let Json::Number(digits) = &item.json else {
            return of_value("22033", "jsonpath array subscript is not a single numeric value");
        };
        let whole = whole(decimal(digits)?, Ordering::Equal);
        match whole.digits.to_i128().and_then(|place| i32::try_from(place).ok()) {
            Some(place) => Ok(place.into()),
            None => of_value("22033", "jsonpath array subscript is out of integer range"),
        }
    }

    fn levels(
        &self,
        (first, last): (Option<u32>, Option<u32>),
        level: u32,
        rest: &'v [Step],
        item: Cow<'v, Item<'v>>,
        scope: Scope<'_, 'v>,
        out: &mut Found<'v>,
    ) -> Ran<()> {
        let below = elements(&item).or_else(|| members(&item));
        let is_leaf = below.is_none();
        // `last` stands for values without others in them.
        let is_within = match first {
            Some(first) => level >= first && last.is_none_or(|last| level <= last),
            None => is_leaf,
        };
        if is_within {
            self.steps(rest, item, scope, out)?;
        }
        if last.is_some_and(|last| level >= last) {
            return Ok(());
        }
        for item in below.unwrap_or_default() {
            self.levels((first, last), level + 1, rest, item, scope, out)?;
        }
        Ok(())
    }

    fn method(&self, method: Method, item: &Item<'v>) -> Ran<Item<'v>> {
        let name = match method {
            Method::Type => {
                return Ok(Item::made(Json::Text(Cow::Borrowed(item.type_name()))));
            }
            Method::Size => {
                return match &item.json {
                    Json::Array(items) => Ok(number_item(&items.len().to_string())),
                    _ if self.is_lax => Ok(number_item("1")),
                    _ => {
                        let message =
                            "jsonpath item method .size() can only be applied to an array";
                        of_value("22039", message)
                    }
                };
            }
            Method::Double => "double",
            Method::Ceiling => "ceiling",
            Method::Floor => "floor",
            Method::Abs => "abs",
        };
        let wrong = |of: &str| {
            of_value(
                "22036",
                format!("jsonpath item method .{name}() can only be applied to a {of}"),
            )
        };
        if method == Method::Double {
            let (text, of) = match &item.json {
                Json::Number(text) => (text, "numeric"),
                Json::Text(text) => (text, "string"),
                _ => return wrong("string or numeric value"),
            };
            let value = text.trim().parse::<f64>().ok();
            let Some(value) = value.filter(|value| value.is_finite()) else {
                let message = format!(
                    "{of} argument of jsonpath item method .{name}() is not a valid representation of a double precision number"
                );
                return of_value("22036", message);
            };
            if matches!(item.json, Json::Number(_)) {
                return Ok(item.clone());
            }
            let mut written = String::new();
            write::number(&format!("{value:e}"), &mut written)?;
            return Ok(number_item(&written));
        }
        let Json::Number(digits) = &item.json else { return wrong("numeric value") };
        let value = decimal(digits)?;
        Ok(number_of(match method {
            Method::Ceiling => whole(value, Ordering::Greater),
            Method::Floor => whole(value, Ordering::Less),
            _ => Decimal { digits: value.digits.wrapping_abs(), ..value },
        }))
    }

    fn truth(&self, expr: &'v Expr, scope: Scope<'_, 'v>) -> Ran<Truth> {
        Ok(match expr {
            Expr::And(left, right) => match self.truth(left, scope)? {
                Some(false) => Some(false),
                left => match (left, self.truth(right, scope)?) {
                    (_, Some(false)) => Some(false),
                    (Some(true), right) => right,
                    _ => None,
                },
            },
            Expr::Or(left, right) => match self.truth(left, scope)? {
                Some(true) => Some(true),
                left => match (left, self.truth(right, scope)?) {
                    (_, Some(true)) => Some(true),
                    (Some(false), right) => right,
                    _ => None,
                },
            },
            Expr::Not(inner) => self.truth(inner, scope)?.map(|truth| !truth),
            Expr::IsUnknown(inner) => Some(self.truth(inner, scope)?.is_none()),
            Expr::Exists(inner) => {
                let mut found = Vec::new();
                match self.expr(inner, scope, &mut found) {
                    Ok(()) => Some(!found.is_empty()),
                    Err(Failure::OfValue(_)) if self.is_lax && !found.is_empty() => Some(true),
                    Err(Failure::OfValue(_)) => None,
                    Err(other) => return Err(other),
                }
            }
            Expr::Compare(op, left, right) => {
                let (left, right) = (self.operand(left, scope)?, self.operand(right, scope)?);
                let (Some(left), Some(right)) = (left, right) else { return Ok(None) };
                self.any(&left, &right, |left, right| compared(*op, left, right))?
            }
            Expr::StartsWith(left, right) => {
                let Some(left) = self.operand(left, scope)? else { return Ok(None) };
                let Some(right) = self.operand(right, scope)? else { return Ok(None) };
                self.any(&left, &right, |left, right| match (&left.json, &right.json) {
                    (Json::Text(text), Json::Text(start)) => Ok(Some(text.starts_with(&**start))),
                    _ => Ok(None),
                })?
            }
            Expr::LikeRegex(left, regex) => {
                let Some(left) = self.operand(left, scope)? else { return Ok(None) };
                let nothing = [Cow::Owned(Item::made(Json::Null))];
                self.any(&left, &nothing, |left, _| match &left.json {
                    Json::Text(text) => Ok(Some(regex.is_match(text))),
                    _ => Ok(None),
                })?
            }
            Expr::From(..) | Expr::Negative(_) | Expr::Positive(_) | Expr::Arithmetic(..) => None,
        })
    }

    /// The items of an operand; `None` where they cannot be known.
    fn operand(&self, expr: &'v Expr, scope: Scope<'_, 'v>) -> Ran<Option<Found<'v>>> {
        match self.unwrapped(expr, scope) {
            Ok(found) => Ok(Some(found)),
            Err(Failure::OfValue(_)) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// Whether it holds for any pair.
    fn any(
        &self,
        left: &[Cow<'v, Item<'v>>],
        right: &[Cow<'v, Item<'v>>],
        holds: impl Fn(&Item<'v>, &Item<'v>) -> Ran<Truth>,
    ) -> Ran<Truth> {
        let (mut found, mut is_unknown) = (false, false);
        for left in left {
            for right in right {
                match holds(left, right)? {
                    Some(true) if self.is_lax => return Ok(Some(true)),
                    Some(true) => found = true,
                    Some(false) => {}
                    None if !self.is_lax => return Ok(None),
                    None => is_unknown = true,
                }
            }
        }
        Ok(match (found, is_unknown) {
            (true, _) => Some(true),
            (false, true) => None,
            (false, false) => Some(false),
        })
    }
}

fn elements<'v>(item: &Cow<'v, Item<'v>>) -> Option<Found<'v>> {
    match item {
        Cow::Borrowed(Item { json: Json::Array(items), .. }) => {
            Some(items.iter().map(Cow::Borrowed).collect())
        }
        Cow::Owned(Item { json: Json::Array(items), .. }) => {
            Some(items.iter().cloned().map(Cow::Owned).collect())
        }
        _ => None,
    }
}

fn members<'v>(item: &Cow<'v, Item<'v>>) -> Option<Found<'v>> {
    match item {
        Cow::Borrowed(Item { json: Json::Object(members), .. }) => {
            Some(write::sorted(members).into_iter().map(|(_, item)| Cow::Borrowed(item)).collect())
        }
        Cow::Owned(Item { json: Json::Object(members), .. }) => {
            let values = write::sorted(members).into_iter();
            Some(values.map(|(_, item)| Cow::Owned(item.clone())).collect())
        }
        _ => None,
    }
}

fn member<'v>(item: &Cow<'v, Item<'v>>, key: &str) -> Option<Cow<'v, Item<'v>>> {
    match item {
        Cow::Borrowed(item) => item.member(key).map(Cow::Borrowed),
        Cow::Owned(item) => item.member(key).cloned().map(Cow::Owned),
    }
}

fn number_item<'v>(digits: &str) -> Item<'v> {
    Item::made(Json::Number(Cow::Owned(digits.to_owned())))
}

fn decimal(written: &str) -> Ran<Decimal> {
    let mut plain = String::new();
    write::number(written, &mut plain)?;
    Ok(cast_text::decimal(&plain)?)
}

fn number_of<'v>(value: Decimal) -> Item<'v> {
    let digits = value.digits.wrapping_abs().to_string();
    let scale = value.scale.max(0) as usize;
    let padded = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = padded.split_at(padded.len() - scale);
    let sign = if value.digits < i256::ZERO { "-" } else { "" };
    let point = if scale > 0 { "." } else { "" };
    number_item(&format!("{sign}{whole}{point}{fraction}"))
}

/// A whole number: towards zero, or the next that is greater or less.
fn whole(value: Decimal, towards: Ordering) -> Decimal {
    let scale = value.scale.max(0).unsigned_abs();
    let Some(one) = i256::from_i128(10).checked_pow(scale) else {
        return Decimal { digits: i256::ZERO, scale: 0 };
    };
    let digits = value.digits.wrapping_div(one);
    let rest = value.digits.wrapping_rem(one);
    let more = match towards {
        Ordering::Greater if rest > i256::ZERO => i256::ONE,
        Ordering::Less if rest < i256::ZERO => i256::MINUS_ONE,
        _ => i256::ZERO,
    };
    Decimal { digits: digits.wrapping_add(more), scale: 0 }
}

fn computed(sign: char, a: Decimal, b: Decimal) -> Ran<Decimal> {
    let scale = a.scale.max(b.scale);
    let misfit = || Failure::OfValue(numeric::out_of_range());
    let aligned = || match (a.at_scale(scale), b.at_scale(scale)) {
        (Some(a), Some(b)) => Ok((a, b)),
        _ => Err(misfit()),
    };
    let by_zero = || Failure::OfValue(failure("22012", "division by zero"));
    let (digits, scale) = match sign {
        '+' => {
            let (a, b) = aligned()?;
            (a.checked_add(b), scale)
        }
        '-' => {
            let (a, b) = aligned()?;
            (a.checked_sub(b), scale)
        }
        '*' => (a.digits.checked_mul(b.digits), a.scale + b.scale),
        '%' => {
            let (a, b) = aligned()?;
            if b == i256::ZERO {
                return Err(by_zero());
            }
            (a.checked_rem(b), scale)
        }
        _ => {
            if b.digits == i256::ZERO {
                return Err(by_zero());
            }
            let scale = stoa_report::quotient_scale(a, b);
            let digits = numeric::quotient(a, b).map_err(Failure::OfValue)?;
            (Decimal { digits, scale: 38 }.at_scale(scale), scale)
        }
    };
    digits.map(|digits| Decimal { digits, scale }).ok_or_else(misfit)
}

fn compared(op: Compare, left: &Item<'_>, right: &Item<'_>) -> Ran<Truth> {
    let order = match (&left.json, &right.json) {
        (Json::Null, Json::Null) => Ordering::Equal,
        (Json::Null, _) | (_, Json::Null) => return Ok(Some(op == Compare::NotEqual)),
        (Json::Bool(left), Json::Bool(right)) => left.cmp(right),
        (Json::Text(left), Json::Text(right)) => left.cmp(right),
        (Json::Number(left), Json::Number(right)) => {
            let (left, right) = (decimal(left)?, decimal(right)?);
            let scale = left.scale.max(right.scale);
            match (left.at_scale(scale), right.at_scale(scale)) {
                (Some(left), Some(right)) => left.cmp(&right),
                _ => return Err(numeric::out_of_range().into()),
            }
        }
        _ => return Ok(None),
    };
    Ok(Some(match op {
        Compare::Equal => order.is_eq(),
        Compare::NotEqual => order.is_ne(),
        Compare::Less => order.is_lt(),
        Compare::LessOrEqual => order.is_le(),
        Compare::Greater => order.is_gt(),
        Compare::GreaterOrEqual => order.is_ge(),
    }))
}
