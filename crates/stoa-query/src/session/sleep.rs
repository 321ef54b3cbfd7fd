//! `pg_sleep(seconds)`: waits without a thread, so that a statement that sleeps costs others nothing but its session.
//!
//! A statement that reads files keeps its slot meanwhile. What cancels a statement ends its sleep, `statement_timeout` too.

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{ArrayRef, AsArray, StringArray};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Float64Type};
use arrow::util::display::FormatOptions;
use async_trait::async_trait;
use datafusion::common::exec_err;
use datafusion::error::Result as EngineResult;
use datafusion::logical_expr::async_udf::{AsyncScalarUDF, AsyncScalarUDFImpl};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use stoa_error::Error;
use stoa_semantics::errors::to_datafusion;

/// How operands of a session's functions become numbers: texts that are none are errors.
pub(super) const STRICT: CastOptions<'_> =
    CastOptions { safe: false, format_options: FormatOptions::new() };

/// Nobody waits for longer.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// The function.
pub(super) fn function() -> ScalarUDF {
    // Literals in quotes are texts before a statement is analysed.
    let signature = Signature::any(1, Volatility::Volatile);
    AsyncScalarUDF::new(Arc::new(Sleep { signature })).into_scalar_udf()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Sleep {
    signature: Signature,
}

impl ScalarUDFImpl for Sleep {
    fn name(&self) -> &'static str {
        "pg_sleep"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> EngineResult<DataType> {
        match types {
            [of] if of.is_numeric() || of.is_string() || of.is_null() => Ok(DataType::Utf8),
            _ => Err(to_datafusion(
                Error::invalid("pg_sleep needs a number of seconds").with_sqlstate("42883"),
            )),
        }
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> EngineResult<ColumnarValue> {
        exec_err!("pg_sleep can stand in SELECT and WHERE only")
    }
}

#[async_trait]
impl AsyncScalarUDFImpl for Sleep {
    /// One row at a time: a sleep begins when the one before it is over.
    fn ideal_batch_size(&self) -> Option<usize> {
        Some(1)
    }

    async fn invoke_async_with_args(
        &self,
        arguments: ScalarFunctionArgs,
    ) -> EngineResult<ColumnarValue> {
        let Some(seconds) = arguments.args.first() else {
            return exec_err!("pg_sleep needs an argument");
        };
        let seconds = seconds.to_array(arguments.number_rows)?;
        let seconds = cast_with_options(&seconds, &DataType::Float64, &STRICT)?;
        let seconds = seconds.as_primitive::<Float64Type>();
        for seconds in seconds.iter().flatten() {
            stoa_env::timer::sleep(duration_of(seconds)).await;
        }
        let answers = seconds.iter().map(|seconds| seconds.map(|_| ""));
        let answers: ArrayRef = Arc::new(answers.collect::<StringArray>());
        Ok(ColumnarValue::Array(answers))
    }
}

/// As PostgreSQL: what is not above 0 is no time at all.
fn duration_of(seconds: f64) -> Duration {
    if seconds.is_nan() || seconds <= 0.0 {
        return Duration::ZERO;
    }
    Duration::try_from_secs_f64(seconds).unwrap_or(LONGEST).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_is_a_time() {
        for (seconds, expected) in [
            (0.5, Duration::from_millis(500)),
            (0.0, Duration::ZERO),
            (-1.0, Duration::ZERO),
            (f64::NAN, Duration::ZERO),
            (f64::INFINITY, LONGEST),
            (1e300, LONGEST),
        ] {
            assert_eq!(duration_of(seconds), expected);
        }
    }
}
