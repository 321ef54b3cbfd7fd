//! Functions about the sessions of a server: their process ids and advisory locks.
//!
//! In: rows of arguments, and the session that calls. Out: one answer for each row; NULL for a row with NULL.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock, Weak};

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringArray};
use arrow::compute::cast_with_options;
use arrow::datatypes::{DataType, Int64Type, TimeUnit};
use datafusion::common::{ScalarValue, exec_err};
use datafusion::error::Result as EngineResult;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature,
    Volatility,
};
use stoa_error::{Error, ErrorKind, Result};
use stoa_semantics::errors::to_datafusion;

use super::sleep::STRICT;
use super::{Session, sleep};
use crate::run::advisory::{LOCKS_MAX, LockId, LockMode, LockSpan};

/// Gives `state` the functions of a session.
pub(super) fn install(state: &mut SessionState, session: &Weak<Session>) {
    for (name, does) in FUNCTIONS {
        let function = BackendFunction::new(name, does, session);
        // The state takes functions: none of them fails.
        let _ = state.register_udf(Arc::new(ScalarUDF::new_from_impl(function)));
    }
    let _ = state.register_udf(Arc::clone(&SLEEP));
}

static SLEEP: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(sleep::function()));

/// What a function does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Does {
    TellId,
    TellStart,
    /// The text of the statement that runs.
    TellQuery,
    /// Fails where the lock cannot be had at once.
    Lock(LockMode, LockSpan),
    TryLock(LockMode, LockSpan),
    Unlock(LockMode),
    UnlockAll,
}

use Does::{Lock, TryLock, Unlock};
use LockMode::{Exclusive, Shared};
use LockSpan::{Session as ForSession, Transaction};

const FUNCTIONS: [(&str, Does); 15] = [
    ("pg_backend_pid", Does::TellId),
    ("pg_postmaster_start_time", Does::TellStart),
    ("pg_conf_load_time", Does::TellStart),
    ("current_query", Does::TellQuery),
    ("pg_advisory_lock", Lock(Exclusive, ForSession)),
    ("pg_advisory_lock_shared", Lock(Shared, ForSession)),
    ("pg_advisory_xact_lock", Lock(Exclusive, Transaction)),
    ("pg_advisory_xact_lock_shared", Lock(Shared, Transaction)),
    ("pg_try_advisory_lock", TryLock(Exclusive, ForSession)),
    ("pg_try_advisory_lock_shared", TryLock(Shared, ForSession)),
    ("pg_try_advisory_xact_lock", TryLock(Exclusive, Transaction)),
    ("pg_try_advisory_xact_lock_shared", TryLock(Shared, Transaction)),
    ("pg_advisory_unlock", Unlock(Exclusive)),
    ("pg_advisory_unlock_shared", Unlock(Shared)),
    ("pg_advisory_unlock_all", Does::UnlockAll),
];

struct BackendFunction {
    name: &'static str,
    does: Does,
    session: Weak<Session>,
}

/// Signatures, made once: a session over HTTP may have one statement only. Operands are of any type, since literals are
/// `bigint` before a statement is analysed.
struct Signatures {
    none: Signature,
    one_or_two: Signature,
}

static SIGNATURES: LazyLock<Signatures> = LazyLock::new(|| {
    let any = |counts: &[usize]| {
        let operands = counts.iter().map(|count| TypeSignature::Any(*count)).collect();
        Signature::one_of(operands, Volatility::Volatile)
    };
    Signatures { none: Signature::nullary(Volatility::Volatile), one_or_two: any(&[1, 2]) }
});

impl BackendFunction {
    fn new(name: &'static str, does: Does, session: &Weak<Session>) -> Self {
        Self { name, does, session: Weak::clone(session) }
    }

    fn session(&self) -> Result<Arc<Session>> {
        self.session.upgrade().ok_or_else(|| Error::internal("a session ended while it was asked"))
    }

    /// Which lock each row asks for.
    ///
    /// # Errors
    /// A text that is no number (22P02), one of two numbers that is no `integer` (22003).
    fn asked(&self, arrays: &[ArrayRef]) -> EngineResult<Vec<Option<LockId>>> {
        let numbers =
            arrays.iter().map(|array| cast_with_options(array, &DataType::Int64, &STRICT));
        let numbers = numbers.collect::<std::result::Result<Vec<_>, _>>()?;
        let numbers: Vec<_> =
            numbers.iter().map(|array| array.as_primitive::<Int64Type>()).collect();
        let rows = numbers.first().map_or(0, |numbers| numbers.len());
        let small = |number: i64| {
            i32::try_from(number).map_err(|_| {
                to_datafusion(
                    Error::invalid(format!("{number} is out of range for type integer"))
                        .with_sqlstate("22003"),
                )
            })
        };
        let is_null = |row: usize| numbers.iter().any(|numbers| numbers.is_null(row));
        let id = |row: usize| match numbers.as_slice() {
            _ if is_null(row) => Ok(None),
            [one] => Ok(Some(LockId::One(one.value(row)))),
            [one, other] => Ok(Some(LockId::Two(small(one.value(row))?, small(other.value(row))?))),
            _ => Ok(None),
        };
        (0..rows).map(id).collect()
    }

    /// What a row comes to; `None` is the answer of functions that have none.
    fn run(&self, session: &Session, id: LockId) -> Result<Option<bool>> {
        Ok(match self.does {
            Lock(mode, span) => match session.lock(id, mode, span)? {
                true => None,
                false => return Err(held_by_another()),
            },
            TryLock(mode, span) => Some(session.lock(id, mode, span)?),
            Unlock(mode) => Some(session.own.locks.give_up(id, mode)),
            Does::TellId | Does::TellStart | Does::TellQuery | Does::UnlockAll => None,
        })
    }
}

/// # Errors
/// 42883: an operand of the function `name` is neither an integer nor a literal.
pub(super) fn must_be_integers(name: &str, types: &[DataType]) -> EngineResult<()> {
    let takes = |of: &DataType| of.is_integer() || of.is_null() || of.is_string();
    let Some(other) = types.iter().find(|of| !takes(of)) else { return Ok(()) };
    let of = if other.is_decimal() { "numeric".to_owned() } else { other.to_string() };
    let message = format!("function {name}({}) does not exist", of.to_lowercase());
    Err(to_datafusion(Error::invalid(message).with_sqlstate("42883")))
}

fn held_by_another() -> Error {
    Error::new(ErrorKind::Conflict, "another session holds the advisory lock")
        .with_sqlstate("55P03")
        .with_detail("statements do not wait for advisory locks")
        .with_hint("try again later; pg_try_advisory_lock tells without an error")
}

impl Session {
    /// Takes an advisory lock; whether it could be had.
    ///
    /// # Errors
    /// The session holds too many (53400).
    fn lock(&self, id: LockId, mode: LockMode, span: LockSpan) -> Result<bool> {
        let taken = self.own.locks.try_take(id, mode, span).ok_or_else(|| {
            Error::new(ErrorKind::Exhausted, "the session holds too many advisory locks")
                .with_sqlstate("53400")
                .with_hint(format!("a session may hold {LOCKS_MAX}; give up some"))
        })?;
        if !self.block.is_open() {
            // The transaction is this statement, which has nothing else to do under the lock.
            self.own.locks.give_up_all(Transaction);
        }
        Ok(taken)
    }
}

impl fmt::Debug for BackendFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BackendFunction").field(&self.name).finish()
    }
}

impl PartialEq for BackendFunction {
    fn eq(&self, other: &Self) -> bool {
        self.does == other.does && Weak::ptr_eq(&self.session, &other.session)
    }
}

impl Eq for BackendFunction {}

impl Hash for BackendFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.does.hash(state);
    }
}

impl ScalarUDFImpl for BackendFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        match self.does {
            Does::TellId | Does::TellStart | Does::TellQuery | Does::UnlockAll => &SIGNATURES.none,
            Lock(..) | TryLock(..) | Unlock(_) => &SIGNATURES.one_or_two,
        }
    }

    fn return_type(&self, types: &[DataType]) -> EngineResult<DataType> {
        must_be_integers(self.name, types)?;
        Ok(match self.does {
            Does::TellId => DataType::Int32,
            Does::TellStart => DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into())),
            Lock(..) | Does::TellQuery | Does::UnlockAll => DataType::Utf8,
            TryLock(..) | Unlock(_) => DataType::Boolean,
        })
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> EngineResult<ColumnarValue> {
        let rows = args.number_rows;
        let session = self.session().map_err(to_datafusion)?;
        let constant = match self.does {
            Does::TellId => Some(ScalarValue::Int32(Some(session.backend_id()))),
            Does::TellStart => {
                let at_us = Some(session.own.started_unix_us);
                Some(ScalarValue::TimestampMicrosecond(at_us, Some("+00:00".into())))
            }
            Does::TellQuery => Some(ScalarValue::Utf8(session.running_text())),
            Does::UnlockAll => {
                session.own.locks.give_up_all(ForSession);
                Some(ScalarValue::Utf8(Some(String::new())))
            }
            _ => None,
        };
        if let Some(constant) = constant {
            return Ok(ColumnarValue::Scalar(constant));
        }
        let operands = args.args.iter().map(|arg| arg.to_array(rows));
        let operands = operands.collect::<EngineResult<Vec<_>>>()?;
        if operands.is_empty() {
            return exec_err!("{} needs arguments", self.name);
        }
        let mut answers = Vec::with_capacity(rows);
        for id in self.asked(&operands)? {
            let answer = id.map(|id| self.run(&session, id)).transpose();
            answers.push(answer.map_err(to_datafusion)?);
        }
        let answers: ArrayRef = match self.does {
            Lock(..) => {
                let texts = answers.iter().map(|answer| answer.is_some().then_some(""));
                Arc::new(texts.collect::<StringArray>())
            }
            _ => Arc::new(answers.into_iter().map(Option::flatten).collect::<BooleanArray>()),
        };
        Ok(ColumnarValue::Array(answers))
    }
}
