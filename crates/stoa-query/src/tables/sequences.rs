//! `stoa_next_value(sequence, …)`: numbers of identity columns.
//!
//! In: how many rows want one. Out: as many, each once, in order. They are taken from the catalog some at a time; those that
//! are left when the server ends are never used, as after a crash of PostgreSQL.

use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::Int64Array;
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::Result as EngineResult;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};
use parking_lot::Mutex;
use stoa_catalog::Catalog;
use stoa_error::{Error, Result};
use stoa_semantics::errors::to_datafusion;
use stoa_sql::identity::NEXT_VALUE;
use uuid::Uuid;

/// Numbers that are taken at once, at least.
const TAKEN_MIN: u32 = 32;

/// Numbers that were taken and not given out.
struct Kept {
    next: i64,
    step: i64,
    left: u32,
}

/// The function.
pub(crate) struct NextValue {
    catalog: Catalog,
    kept: Mutex<HashMap<Uuid, Kept>>,
    signature: Signature,
}

impl NextValue {
    /// The function, on the sequences of a catalog.
    pub(crate) fn function(catalog: &Catalog) -> Arc<ScalarUDF> {
        let operands = vec![TypeSignature::Any(1), TypeSignature::Any(4)];
        let signature = Signature::one_of(operands, Volatility::Volatile);
        let (catalog, kept) = (catalog.clone(), Mutex::default());
        Arc::new(ScalarUDF::new_from_impl(Self { catalog, kept, signature }))
    }

    /// As many numbers of a sequence.
    fn numbers(&self, sequence: Uuid, mut count: usize) -> Result<Vec<i64>> {
        let mut numbers = Vec::with_capacity(count);
        // Nobody else takes some in between: those of a statement follow each other.
        let mut all = self.kept.lock();
        let kept = all.entry(sequence).or_insert(Kept { next: 0, step: 1, left: 0 });
        while count > 0 {
            if kept.left == 0 {
                let taken = u32::try_from(count).unwrap_or(u32::MAX).max(TAKEN_MIN);
                // The catalog answers on threads of its own.
                let taking = self.catalog.take_numbers(sequence, taken);
                let (next, step) = futures::executor::block_on(taking)?;
                *kept = Kept { next, step, left: taken };
            }
            while count > 0 && kept.left > 0 {
                numbers.push(kept.next);
                kept.next = kept.next.wrapping_add(kept.step);
                kept.left -= 1;
                count -= 1;
            }
        }
        Ok(numbers)
    }
}

impl fmt::Debug for NextValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NextValue")
    }
}

impl PartialEq for NextValue {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for NextValue {}

impl Hash for NextValue {
    fn hash<H: Hasher>(&self, state: &mut H) {
        NEXT_VALUE.hash(state);
    }
}

impl ScalarUDFImpl for NextValue {
    fn name(&self) -> &str {
        NEXT_VALUE
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> EngineResult<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> EngineResult<ColumnarValue> {
        let sequence = match args.args.first() {
            Some(ColumnarValue::Scalar(
                ScalarValue::Utf8(Some(text))
                | ScalarValue::Utf8View(Some(text))
                | ScalarValue::LargeUtf8(Some(text)),
            )) => Uuid::parse_str(text).ok(),
            _ => None,
        };
        let unknown = || Error::invalid("stoa_next_value takes the UUID of a sequence");
        let sequence = sequence.ok_or_else(|| to_datafusion(unknown().with_sqlstate("22P02")))?;
        let numbers = self.numbers(sequence, args.number_rows).map_err(to_datafusion)?;
        Ok(ColumnarValue::Array(Arc::new(Int64Array::from(numbers))))
    }
}
