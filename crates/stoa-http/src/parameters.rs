//! Reading what comes with a request's address.

use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query};
use stoa_error::Error;

use crate::problem::Problem;

/// The parameters after `?`, or what is wrong with them.
pub(crate) fn checked<T>(parameters: Result<Query<T>, QueryRejection>) -> Result<T, Problem> {
    parameters.map(|Query(parameters)| parameters).map_err(|rejection| {
        Error::invalid(rejection.body_text())
            .with_hint("docs/openapi.yaml lists the parameters of each request")
            .into()
    })
}

/// The parts of the path, or what is wrong with them.
pub(crate) fn checked_path<T>(parts: Result<Path<T>, PathRejection>) -> Result<T, Problem> {
    parts.map(|Path(parts)| parts).map_err(|rejection| Error::invalid(rejection.body_text()).into())
}
