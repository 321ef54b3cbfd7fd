//! Functions whose result may be far larger than what they are given: `repeat`, `lpad`, `generate_series`, `||`.
//!
//! ```text
//! operands ─► growth: bytes of each result, at most ─► refused: 54000 (one value), 53200 (memory)
//!                                                   └► computed, in slices of rows ─► held: counted
//!                                                                        while anybody has the result
//! ```
//! In: calls of such functions in a plan. Out: the same calls, checked before they compute anything. Small
//! results cost nobody a look at the memory pool. **Invariants:** a value has at most
//! [`VALUE_BYTES_MAX`]; what is computed is not more than was reserved; while a statement is optimised no
//! more than [`folding`] allows becomes a constant of its plan.
//!
//! Not here: aggregates, which count their own state; casts; ARRAY[…], which is as long as its text.

pub(super) mod folding;
mod growth;
mod held;
pub(super) mod top_groups;

use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::compute::concat;
use arrow::datatypes::{DataType, FieldRef, Int64Type};
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::Transformed;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use stoa_error::{Error, ErrorKind};

use self::growth::{Growth, Sizes};
use crate::errors::to_datafusion;

/// Bytes of a value that a function makes, at most.
const VALUE_BYTES_MAX: u64 = 64 << 20;

/// The same where that is only known roughly.
const ROUGH_BYTES_MAX: u64 = 16 * VALUE_BYTES_MAX;

/// Results that are computed without asking for memory.
const SMALL_BYTES: u64 = 1 << 20;

/// Results that are computed at once; of more, a slice of the rows at a time.
const SLICE_BYTES: u64 = 32 << 20;

/// What all values of one column of a batch may take: their offsets have 31 bits.
const COLUMN_BYTES_MAX: usize = i32::MAX as usize;

/// The same expression; a call of a function whose result may be large is checked from now on.
pub(super) fn checked(expr: Expr, memory: &Arc<dyn MemoryPool>) -> Result<Transformed<Expr>> {
    let Expr::ScalarFunction(ScalarFunction { func, args }) = expr else {
        return Ok(Transformed::no(expr));
    };
    let growth = match func.inner().is::<Bounded>() {
        true => None,
        false => Growth::of(func.name()),
    };
    let Some(growth) = growth else {
        return Ok(Transformed::no(Expr::ScalarFunction(ScalarFunction { func, args })));
    };
    let bounded = Bounded { inner: func, growth, memory: Arc::clone(memory) };
    let func = Arc::new(ScalarUDF::new_from_impl(bounded));
    Ok(Transformed::yes(Expr::ScalarFunction(ScalarFunction { func, args })))
}

/// Whether an expression calls a function whose result may be large.
pub(super) fn is_checked(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(call) if call.func.inner().is::<Bounded>())
}

/// A function, and how much it makes of its operands.
#[derive(Clone, Debug)]
struct Bounded {
    inner: Arc<ScalarUDF>,
    growth: Growth,
    memory: Arc<dyn MemoryPool>,
}

impl PartialEq for Bounded {
    fn eq(&self, other: &Self) -> bool {
        self.inner == other.inner
    }
}

impl Eq for Bounded {}

impl Hash for Bounded {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}

impl ScalarUDFImpl for Bounded {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        self.inner.schema_name(args)
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn is_strict(&self) -> bool {
        self.inner.is_strict()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(types)
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if self.growth == Growth::Pad
            && let Some(length) = args.args.get_mut(1)
        {
            *length = not_negative(length)?;
        }
        let is_constant = args.args.iter().all(|of| matches!(of, ColumnarValue::Scalar(_)));
        let sizes =
            self.growth.sizes(&args.args, if is_constant { 1 } else { args.number_rows })?;
        let most = if self.growth.is_rough() { ROUGH_BYTES_MAX } else { VALUE_BYTES_MAX };
        if sizes.largest > most {
            return Err(self.too_large(sizes.largest));
        }
        if !folding::allows(sizes.total) {
            return Err(self.too_large(sizes.total));
        }
        let copies = if is_constant { args.number_rows as u64 } else { 1 };
        if sizes.total.saturating_mul(copies) <= SMALL_BYTES {
            return self.inner.invoke_with_args(args);
        }
        let memory = MemoryConsumer::new(self.name()).register(&self.memory);
        let array = match is_constant {
            true => self.constant(args, &sizes, &memory)?,
            false => self.rows(&args, &sizes, &memory)?,
        };
        held::held(array, memory).map(ColumnarValue::Array)
    }
}

impl Bounded {
    /// The result for constants, as a column: a constant is not counted while it is kept.
    fn constant(
        &self,
        args: ScalarFunctionArgs,
        sizes: &Sizes,
        memory: &MemoryReservation,
    ) -> Result<ArrayRef> {
        let rows = args.number_rows;
        memory.try_resize(as_bytes(sizes.total.saturating_mul(2)))?;
        let value = self.inner.invoke_with_args(ScalarFunctionArgs { number_rows: 1, ..args })?;
        let value = value.into_array(1)?;
        if rows == 1 {
            memory.try_resize(value.get_array_memory_size())?;
            return Ok(value);
        }
        let bytes = value.get_array_memory_size().saturating_mul(rows);
        self.check_column(bytes)?;
        memory.try_resize(bytes.saturating_add(value.get_array_memory_size()))?;
        let same = arrow::array::UInt32Array::from(vec![0_u32; rows]);
        let column = arrow::compute::take(&value, &same, None)?;
        memory.try_resize(column.get_array_memory_size())?;
        Ok(column)
    }

    /// The result, computed a slice of the rows at a time.
    fn rows(
        &self,
        args: &ScalarFunctionArgs,
        sizes: &Sizes,
        memory: &MemoryReservation,
    ) -> Result<ArrayRef> {
        let mut parts: Vec<ArrayRef> = Vec::new();
        let mut done = 0_usize;
        for (rows, bytes) in slices(sizes, args.number_rows) {
            memory.try_resize(done.saturating_add(as_bytes(bytes)))?;
            let part = self.inner.invoke_with_args(sliced(args, rows.clone()))?;
            let part = part.into_array(rows.len())?;
            done = done.saturating_add(part.get_array_memory_size());
            self.check_column(done)?;
            memory.try_resize(done)?;
            parts.push(part);
        }
        if let [one] = parts.as_slice() {
            return Ok(Arc::clone(one));
        }
        memory.try_resize(done.saturating_mul(2))?;
        let whole = concat(&parts.iter().map(|part| part.as_ref()).collect::<Vec<&dyn Array>>())?;
        drop(parts);
        memory.try_resize(whole.get_array_memory_size())?;
        Ok(whole)
    }

    fn check_column(&self, bytes: usize) -> Result<()> {
        if bytes <= COLUMN_BYTES_MAX {
            return Ok(());
        }
        let message = format!("the results of {} for one batch of rows are too large", self.name());
        Err(to_datafusion(
            Error::new(ErrorKind::Exhausted, message)
                .with_sqlstate("54000")
                .with_detail(format!("they take more than {COLUMN_BYTES_MAX} bytes"))
                .with_hint("SET datafusion.execution.batch_size = 128 makes batches smaller"),
        ))
    }

    fn too_large(&self, bytes: u64) -> DataFusionError {
        let message = format!("the result of {} is too large", self.name());
        to_datafusion(
            Error::new(ErrorKind::Exhausted, message).with_sqlstate("54000").with_detail(format!(
                "up to {bytes} bytes; at most {VALUE_BYTES_MAX} are possible"
            )),
        )
    }
}

/// A length, 0 in place of a negative one: the engine would make room for as many characters as it has bits.
fn not_negative(length: &ColumnarValue) -> Result<ColumnarValue> {
    match length {
        ColumnarValue::Scalar(ScalarValue::Int64(Some(..0))) => {
            Ok(ColumnarValue::Scalar(ScalarValue::Int64(Some(0))))
        }
        ColumnarValue::Array(lengths) if *lengths.data_type() == DataType::Int64 => {
            let lengths = lengths.as_primitive::<Int64Type>();
            let lengths: Int64Array = lengths.unary(|length| length.max(0));
            Ok(ColumnarValue::Array(Arc::new(lengths)))
        }
        other => Ok(other.clone()),
    }
}

/// Rows whose results come to about [`SLICE_BYTES`], with the bytes of these.
fn slices(sizes: &Sizes, rows: usize) -> Vec<(Range<usize>, u64)> {
    let mut slices = Vec::new();
    let (mut start, mut bytes) = (0, 0_u64);
    for (row, size) in sizes.rows.iter().enumerate() {
        if bytes + size > SLICE_BYTES && row > start {
            slices.push((start..row, bytes));
            (start, bytes) = (row, 0);
        }
        bytes += size;
    }
    slices.push((start..rows, bytes));
    slices
}

fn sliced(args: &ScalarFunctionArgs, rows: Range<usize>) -> ScalarFunctionArgs {
    let slice = |value: &ColumnarValue| match value {
        ColumnarValue::Array(array) => ColumnarValue::Array(array.slice(rows.start, rows.len())),
        scalar => scalar.clone(),
    };
    ScalarFunctionArgs {
        args: args.args.iter().map(slice).collect(),
        arg_fields: args.arg_fields.clone(),
        number_rows: rows.len(),
        return_field: Arc::clone(&args.return_field),
        config_options: Arc::clone(&args.config_options),
    }
}

fn as_bytes(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
