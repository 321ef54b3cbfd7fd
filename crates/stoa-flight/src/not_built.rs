//! Why an answer about metadata could not be built.

use arrow_flight::error::FlightError;
use stoa_error::Error;

/// Invalid: a pattern of the request is none. Internal: anything else.
pub(crate) fn not_built(error: FlightError) -> Error {
    match error {
        // A pattern that is none.
        FlightError::Arrow(source) => {
            Error::invalid("the metadata asked for cannot be selected").with_source(source)
        }
        other => Error::internal("metadata cannot be built").with_source(other),
    }
}
