//! `percentile_cont`, `percentile_disc` and `mode`: aggregates that sort the values of a group (`WITHIN GROUP`).
//!
//! The engine has the first of them; it counts the share between two values in millionths, and answers `real` for
//! `real`. What is computed here is what PostgreSQL's documentation of ordered-set aggregates says (section 9.21).

use std::sync::{Arc, LazyLock};

use arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, IntervalMonthDayNanoArray, ListArray, UInt32Array,
};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{SortOptions, cast, concat, is_not_null, partition, sort_to_indices, take};
use arrow::datatypes::{
    DataType, Field, FieldRef, Float64Type, IntervalMonthDayNano, IntervalMonthDayNanoType,
};
use datafusion::common::ScalarValue;
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::error::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, Expr, Signature, Volatility, WindowFunctionDefinition,
};

use super::call::failure;
use super::interval_averages::INTERVAL;
use super::{span, times};

/// What is asked of the values in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Asks {
    /// The value at a share of the way from the first to the last, between two of them if need be.
    Continuous,
    /// The first value at or behind a share of all.
    Discrete,
    /// The most frequent value, the first of them in the order.
    Mode,
}

impl Asks {
    fn name(self) -> &'static str {
        match self {
            Self::Continuous => "percentile_cont",
            Self::Discrete => "percentile_disc",
            Self::Mode => "mode",
        }
    }
}

/// The functions. Arguments are the values, as the engine puts them, and then the share or an array of shares.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct OrderedSet {
    asks: Asks,
    signature: Signature,
}

/// All of them.
pub(super) fn functions() -> impl Iterator<Item = OrderedSet> {
    let signature = || Signature::user_defined(Volatility::Immutable);
    let all = [Asks::Continuous, Asks::Discrete, Asks::Mode];
    all.into_iter().map(move |asks| OrderedSet { asks, signature: signature() })
}

/// Refuses an aggregate of an ordered set that is not called as one.
///
/// # Errors
/// Without an order (42809), with DISTINCT (42601), with OVER (0A000).
pub(super) fn check(expr: &Expr) -> Result<()> {
    let is_one = |name: &str| functions().any(|of| of.name() == name);
    match expr {
        Expr::AggregateFunction(call) if is_one(call.func.name()) => {
            let name = call.func.name();
            if call.params.order_by.is_empty() {
                let message = format!("WITHIN GROUP is required for ordered-set aggregate {name}");
                return Err(failure("42809", message));
            }
            match call.params.distinct {
                true => Err(failure("42601", "cannot use DISTINCT with WITHIN GROUP")),
                false => Ok(()),
            }
        }
        Expr::WindowFunction(call) => match &call.fun {
            WindowFunctionDefinition::AggregateUDF(of) if is_one(of.name()) => {
                let message =
                    format!("OVER is not supported for ordered-set aggregate {}", of.name());
                Err(failure("0A000", message))
            }
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

fn is_list(of: &DataType) -> bool {
    matches!(of, DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..))
}

fn list_of(of: DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(of, true)))
}

impl AggregateUDFImpl for OrderedSet {
    fn name(&self) -> &str {
        self.asks.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    // All names of the engine's own, which is not to come back by one of them.
    fn aliases(&self) -> &[String] {
        static CONTINUOUS: LazyLock<Vec<String>> =
            LazyLock::new(|| vec!["quantile_cont".to_owned()]);
        match self.asks {
            Asks::Continuous => &CONTINUOUS,
            Asks::Discrete | Asks::Mode => &[],
        }
    }

    fn supports_within_group_clause(&self) -> bool {
        true
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let exists = |types: &[DataType]| {
            let shown: Vec<_> = types.iter().map(ToString::to_string).collect();
            let message = format!("function {}({}) does not exist", self.name(), shown.join(", "));
            failure("42883", message)
        };
        let values_of = |values: &DataType| match self.asks {
            Asks::Continuous if values.is_numeric() || values.is_null() => Some(DataType::Float64),
            Asks::Continuous if matches!(values, DataType::Interval(_)) => Some(INTERVAL),
            Asks::Continuous => None,
            Asks::Discrete | Asks::Mode if values.is_nested() => None,
            Asks::Discrete | Asks::Mode => Some(values.clone()),
        };
        let shares_of = |shares: &DataType| match shares {
            DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
                let is_number = item.data_type().is_numeric() || item.data_type().is_null();
                is_number.then(|| list_of(DataType::Float64))
            }
            of if of.is_numeric() || of.is_null() => Some(DataType::Float64),
            _ => None,
        };
        let coerced = match (self.asks, types) {
            (Asks::Mode, [values]) => values_of(values).map(|values| vec![values]),
            (Asks::Continuous | Asks::Discrete, [values, shares]) => values_of(values)
                .zip(shares_of(shares))
                .map(|(values, shares)| vec![values, shares]),
            _ => None,
        };
        coerced.ok_or_else(|| exists(types))
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [values] => Ok(values.clone()),
            [values, shares] if is_list(shares) => Ok(list_of(values.clone())),
            [values, _] => Ok(values.clone()),
            _ => Err(failure("42883", format!("{} takes no such arguments", self.name()))),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let values = list_of(args.input_fields[0].data_type().clone());
        let mut fields: Vec<FieldRef> =
            vec![Field::new(format_state_name(args.name, "values"), values, true).into()];
        if let Some(shares) = args.input_fields.get(1) {
            let name = format_state_name(args.name, "shares");
            fields.push(Field::new(name, shares.data_type().clone(), true).into());
        }
        Ok(fields)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let descending = args.order_bys.first().is_some_and(|key| key.options.descending);
        let shares = match args.expr_fields.get(1) {
            Some(field) => Some(ScalarValue::try_from(field.data_type())?),
            None => None,
        };
        Ok(Box::new(Ordered {
            asks: self.asks,
            descending,
            of: args.expr_fields[0].data_type().clone(),
            values: Vec::new(),
            bytes: 0,
            pieces_max: PIECES_MIN,
            shares,
        }))
    }

    // They are sorted here, once for all.
    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// The values of one group, without NULLs, in pieces as they came.
#[derive(Debug)]
struct Ordered {
    asks: Asks,
    descending: bool,
    of: DataType,
    values: Vec<ArrayRef>,
    /// Size of the pieces.
    bytes: usize,
    /// As many pieces become one; [`PIECES_MIN`] at first, and twice as many each time.
    pieces_max: usize,
    /// The share, or a list of shares; NULL until a row came. `None` for [`Asks::Mode`].
    shares: Option<ScalarValue>,
}

/// Pieces that become one for the first time.
const PIECES_MIN: usize = 64;

impl Ordered {
    fn add(&mut self, values: &ArrayRef) -> Result<()> {
        let values = match values.null_count() {
            // A piece of its own: a slice would keep all that it was cut from.
            0 => take(values, &UInt32Array::from_iter_values(0..values.len() as u32), None)?,
            _ => arrow::compute::filter(values, &is_not_null(values)?)?,
        };
        if values.is_empty() {
            return Ok(());
        }
        self.bytes += values.get_array_memory_size();
        self.values.push(values);
        if self.values.len() >= self.pieces_max {
            let whole = self.whole()?;
            self.bytes = whole.get_array_memory_size();
            self.values = vec![whole];
            // The next time there are at least as many values more: each is copied a few times only.
            self.pieces_max *= 2;
        }
        Ok(())
    }

    fn whole(&self) -> Result<ArrayRef> {
        let pieces: Vec<&dyn Array> = self.values.iter().map(AsRef::as_ref).collect();
        match pieces.is_empty() {
            true => Ok(arrow::array::new_empty_array(&self.of)),
            false => Ok(concat(&pieces)?),
        }
    }

    /// The share is the same in all rows of a group.
    fn take_shares(&mut self, shares: Option<&ArrayRef>) -> Result<()> {
        if let (Some(known), Some(shares)) = (&mut self.shares, shares)
            && known.is_null()
        {
            let row = (0..shares.len()).find(|row| shares.is_valid(*row));
            if let Some(row) = row {
                *known = ScalarValue::try_from_array(shares, row)?;
            }
        }
        Ok(())
    }

    /// The values in their order.
    fn sorted(&self) -> Result<ArrayRef> {
        let values = self.whole()?;
        let options = SortOptions { descending: self.descending, nulls_first: false };
        // A month is as long as 30 days.
        let keys = match values.data_type() {
            DataType::Interval(_) => span::spans(&values)?,
            _ => Arc::clone(&values),
        };
        Ok(take(&values, &sort_to_indices(&keys, Some(options), None)?, None)?)
    }

    /// What is at each share, one value for each.
    fn at_shares(&self, shares: &Float64Array) -> Result<ArrayRef> {
        if let Some(outside) = shares.iter().flatten().find(|share| !(0.0..=1.0).contains(share)) {
            let message = format!("percentile value {outside} is not between 0 and 1");
            return Err(failure("22003", message));
        }
        let sorted = self.sorted()?;
        if self.asks == Asks::Continuous && self.of == INTERVAL {
            let values = sorted.as_primitive::<IntervalMonthDayNanoType>();
            let at = |share: Option<f64>| match share {
                Some(share) => between_intervals(values, share),
                None => Ok(None),
            };
            let values = shares.iter().map(at).collect::<Result<IntervalMonthDayNanoArray>>()?;
            return Ok(Arc::new(values));
        }
        if self.asks == Asks::Continuous {
            let values: &Float64Array = sorted.as_primitive::<Float64Type>();
            let at = |share: Option<f64>| between(values, share?);
            return Ok(Arc::new(shares.iter().map(at).collect::<Float64Array>()));
        }
        let count = sorted.len();
        let row = |share: Option<f64>| {
            let row = (share? * count as f64).ceil() as usize;
            (count > 0).then(|| row.saturating_sub(1).min(count - 1) as u32)
        };
        let rows: UInt32Array = shares.iter().map(row).collect();
        Ok(take(&sorted, &rows, None)?)
    }

    fn mode(&self) -> Result<ScalarValue> {
        let sorted = self.sorted()?;
        if sorted.is_empty() {
            return ScalarValue::try_from(&self.of);
        }
        let mut most = 0..0;
        let keys = match sorted.data_type() {
            DataType::Interval(_) => span::spans(&sorted)?,
            _ => Arc::clone(&sorted),
        };
        for range in partition(&[keys])?.ranges() {
            if range.len() > most.len() {
                most = range;
            }
        }
        ScalarValue::try_from_array(&sorted, most.start)
    }
}

/// The value at a share of the way from the first of sorted values to the last; `None` if there is none.
fn between(sorted: &Float64Array, share: f64) -> Option<f64> {
    let place = share * sorted.len().checked_sub(1)? as f64;
    let (before, behind) = (place.floor(), place.ceil());
    let (low, high) = (sorted.value(before as usize), sorted.value(behind as usize));
    match before == behind {
        true => Some(low),
        false => Some(low + (place - before) * (high - low)),
    }
}

/// Likewise of intervals: part of the difference, added to the shorter one.
fn between_intervals(
    sorted: &IntervalMonthDayNanoArray,
    share: f64,
) -> Result<Option<IntervalMonthDayNano>> {
    let Some(last) = sorted.len().checked_sub(1) else { return Ok(None) };
    let place = share * last as f64;
    let (before, behind) = (place.floor(), place.ceil());
    let (low, high) = (sorted.value(before as usize), sorted.value(behind as usize));
    if before == behind {
        return Ok(Some(low));
    }
    let out_of_range = || failure("22008", "interval out of range");
    let joined = |a: IntervalMonthDayNano, b: IntervalMonthDayNano, sign: i32| {
        Some(IntervalMonthDayNano::new(
            a.months.checked_add(b.months.checked_mul(sign)?)?,
            a.days.checked_add(b.days.checked_mul(sign)?)?,
            a.nanoseconds.checked_add(b.nanoseconds.checked_mul(sign.into())?)?,
        ))
    };
    let difference = joined(high, low, -1).ok_or_else(out_of_range)?;
    let part = times::times(difference, |of| of * (place - before))?;
    joined(part, low, 1).map(Some).ok_or_else(out_of_range)
}

impl Accumulator for Ordered {
    fn update_batch(&mut self, columns: &[ArrayRef]) -> Result<()> {
        self.take_shares(columns.get(1))?;
        columns.first().map_or(Ok(()), |values| self.add(values))
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let Some(shares) = &self.shares else { return self.mode() };
        let is_list = is_list(&shares.data_type());
        if shares.is_null() {
            return ScalarValue::try_from(&match is_list {
                true => list_of(self.of.clone()),
                false => self.of.clone(),
            });
        }
        let shares = shares.to_array()?;
        if !is_list {
            let values = self.at_shares(shares.as_primitive::<Float64Type>())?;
            return ScalarValue::try_from_array(&values, 0);
        }
        let shares = cast(&shares.as_list::<i32>().value(0), &DataType::Float64)?;
        let values = self.at_shares(shares.as_primitive::<Float64Type>())?;
        let item = Arc::new(Field::new_list_field(self.of.clone(), true));
        let ends = OffsetBuffer::from_lengths([values.len()]);
        Ok(ScalarValue::List(Arc::new(ListArray::try_new(item, ends, values, None)?)))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.bytes + self.values.capacity() * size_of::<ArrayRef>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values = SingleRowListArrayBuilder::new(self.whole()?).with_nullable(true);
        let values = values.build_list_scalar();
        Ok(std::iter::once(values).chain(self.shares.clone()).collect())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.take_shares(states.get(1))?;
        let Some(lists) = states.first() else { return Ok(()) };
        lists.as_list::<i32>().iter().flatten().try_for_each(|values| self.add(&values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(asks: Asks, descending: bool, share: f64) -> Ordered {
        let shares = (asks != Asks::Mode).then_some(ScalarValue::Float64(Some(share)));
        let (of, values) = (DataType::Float64, Vec::new());
        Ordered { asks, descending, of, values, bytes: 0, pieces_max: PIECES_MIN, shares }
    }

    fn value(asks: Asks, descending: bool, share: f64, values: &[Option<f64>]) -> ScalarValue {
        let mut whole = ordered(asks, descending, share);
        whole.add(&(Arc::new(values.iter().collect::<Float64Array>()) as ArrayRef)).unwrap();
        // The same in pieces, each from another place.
        let mut merged = ordered(asks, descending, share);
        for value in values {
            let mut piece = ordered(asks, descending, share);
            piece.add(&(Arc::new(Float64Array::from(vec![*value])) as ArrayRef)).unwrap();
            let state: Vec<ArrayRef> =
                piece.state().unwrap().iter().map(|part| part.to_array().unwrap()).collect();
            merged.merge_batch(&state).unwrap();
        }
        let value = whole.evaluate().unwrap();
        assert_eq!(merged.evaluate().unwrap(), value);
        value
    }

    /// The answers are PostgreSQL 15's.
    #[test]
    fn shares_of_ordered_values() {
        let values = [Some(3.0), None, Some(0.0), Some(3.0), Some(1e9)];
        for (asks, descending, share, expected) in [
            (Asks::Continuous, false, 0.123_456_789, 1.111_111_100_999_999_9),
            (Asks::Continuous, false, 0.5, 3.0),
            (Asks::Continuous, true, 0.25, 250_000_002.25),
            (Asks::Continuous, false, 1.0, 1e9),
            (Asks::Discrete, false, 0.0, 0.0),
            (Asks::Discrete, false, 0.25, 0.0),
            (Asks::Discrete, false, 0.250_001, 3.0),
            (Asks::Discrete, true, 0.25, 1e9),
            (Asks::Mode, false, 0.0, 3.0),
        ] {
            let found = value(asks, descending, share, &values);
            assert_eq!(found, ScalarValue::Float64(Some(expected)), "{asks:?} {share}");
        }
        let many: Vec<Option<f64>> = (0..200).map(|n| Some(f64::from(n % 50))).collect();
        let first_of_all = value(Asks::Mode, true, 0.0, &many);
        assert_eq!(first_of_all, ScalarValue::Float64(Some(49.0)));
        assert_eq!(value(Asks::Continuous, false, 0.5, &[None]), ScalarValue::Float64(None));
    }
}
