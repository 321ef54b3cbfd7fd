//! `pg_cancel_backend(pid)` and `pg_terminate_backend(pid)`, for sessions of all daemons; KILL.
//!
//! In: process ids, and the session that calls. Out: whether there was such a session; NULL for NULL.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Weak};

use arrow::array::{ArrayRef, AsArray, BooleanArray};
use arrow::compute::cast_with_options;
use arrow::datatypes::{DataType, Int64Type};
use async_trait::async_trait;
use datafusion::common::exec_err;
use datafusion::error::Result as EngineResult;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::async_udf::{AsyncScalarUDF, AsyncScalarUDFImpl};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};
use futures::future::BoxFuture;
use stoa_error::{Error, Result};
use stoa_semantics::errors::to_datafusion;

use super::Session;
use super::sleep::STRICT;
use crate::engine::elsewhere::{EndRequest, Ending, Target};

/// Gives `state` the functions that end sessions, or what they run.
pub(super) fn install(state: &mut SessionState, session: &Weak<Session>) {
    for ends in [Ends::Statement, Ends::Session] {
        let function = EndFunction { ends, signature: ends.signature(), session: session.clone() };
        // The state takes functions: none of them fails.
        let _ =
            state.register_udf(Arc::new(AsyncScalarUDF::new(Arc::new(function)).into_scalar_udf()));
    }
}

impl Session {
    /// Ends a query, on whichever daemon it runs; it must be of the same role. Whether it was there.
    ///
    /// # Errors
    /// 42501: it is another role's. Unavailable: its daemon does not answer.
    pub fn kill(&self, id: u64) -> BoxFuture<'_, Result<bool>> {
        Box::pin(async move { self.end(Target::Query(id)).await })
    }

    /// As [`Self::kill`], also for sessions.
    async fn end(&self, target: Target) -> Result<bool> {
        let (ending, request) = self.ending(target);
        ending.end_anywhere(self.data.member(), &request).await
    }

    fn ending(&self, target: Target) -> (Ending, EndRequest) {
        let (queries, sessions) =
            (self.runner.queries().clone(), Arc::clone(self.own.backend.all()));
        let (role, may_everything) = (self.options.user.clone(), self.caller.may_everything());
        (Ending { queries, sessions }, EndRequest { target, role, may_everything })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Ends {
    Statement,
    Session,
}

impl Ends {
    fn name(self) -> &'static str {
        match self {
            Self::Statement => "pg_cancel_backend",
            Self::Session => "pg_terminate_backend",
        }
    }

    fn target(self, id: i32) -> Target {
        match self {
            Self::Statement => Target::Statement(id),
            Self::Session => Target::Session(id),
        }
    }

    /// Operands are of any type, since literals in quotes are texts before a statement is analysed.
    fn signature(self) -> Signature {
        let counts: &[usize] = match self {
            Self::Statement => &[1],
            // Also the milliseconds to wait for the end, which nobody does.
            Self::Session => &[1, 2],
        };
        let operands = counts.iter().map(|count| TypeSignature::Any(*count)).collect();
        Signature::one_of(operands, Volatility::Volatile)
    }
}

struct EndFunction {
    ends: Ends,
    signature: Signature,
    session: Weak<Session>,
}

impl EndFunction {
    fn session(&self) -> EngineResult<Arc<Session>> {
        let ended = || Error::internal("a session ended while it was asked");
        self.session.upgrade().ok_or_else(|| to_datafusion(ended()))
    }

    /// What each row asks for: nothing for NULL; beyond the ids of processes there is nothing to end.
    ///
    /// # Errors
    /// A text that is no number (22P02).
    fn asked(&self, arguments: &ScalarFunctionArgs) -> EngineResult<Vec<Option<Option<Target>>>> {
        let Some(ids) = arguments.args.first() else {
            return exec_err!("{} needs a process id", self.ends.name());
        };
        let ids = ids.to_array(arguments.number_rows)?;
        let ids = cast_with_options(&ids, &DataType::Int64, &STRICT)?;
        let ids = ids.as_primitive::<Int64Type>();
        let target = |id: i64| i32::try_from(id).ok().map(|id| self.ends.target(id));
        Ok(ids.iter().map(|id| id.map(target)).collect())
    }
}

fn column(answers: Vec<Option<bool>>) -> ColumnarValue {
    let answers: ArrayRef = Arc::new(answers.into_iter().collect::<BooleanArray>());
    ColumnarValue::Array(answers)
}

impl fmt::Debug for EndFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EndFunction").field(&self.ends).finish()
    }
}

impl PartialEq for EndFunction {
    fn eq(&self, other: &Self) -> bool {
        self.ends == other.ends && Weak::ptr_eq(&self.session, &other.session)
    }
}

impl Eq for EndFunction {}

impl Hash for EndFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.ends.hash(state);
    }
}

impl ScalarUDFImpl for EndFunction {
    fn name(&self) -> &str {
        self.ends.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> EngineResult<DataType> {
        super::backend_functions::must_be_integers(self.ends.name(), types)?;
        Ok(DataType::Boolean)
    }

    /// Where the engine cannot wait, only sessions of this daemon are ended.
    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> EngineResult<ColumnarValue> {
        let session = self.session()?;
        let end = |target| {
            let (ending, request) = session.ending(target);
            ending.end(&request).map_err(to_datafusion)
        };
        let asked = self.asked(&arguments)?.into_iter();
        let answers = asked.map(|row| row.map(|target| target.map_or(Ok(false), end)).transpose());
        Ok(column(answers.collect::<EngineResult<_>>()?))
    }
}

#[async_trait]
impl AsyncScalarUDFImpl for EndFunction {
    async fn invoke_async_with_args(
        &self,
        arguments: ScalarFunctionArgs,
    ) -> EngineResult<ColumnarValue> {
        let session = self.session()?;
        let mut answers = Vec::with_capacity(arguments.number_rows);
        for row in self.asked(&arguments)? {
            answers.push(match row {
                None => None,
                Some(None) => Some(false),
                Some(Some(target)) => Some(session.end(target).await.map_err(to_datafusion)?),
            });
        }
        Ok(column(answers))
    }
}
