//! Errors that more than one module makes.

use stoa_error::{Condition, Error};

/// Names less alike than this are not worth suggesting.
const NEAR: f64 = 0.75;

/// A statement names a role that does not exist; hints at the nearest of `known`.
///
/// Not for clients that are not logged in: it tells names.
pub fn unknown_role<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Error {
    let error = Error::not_found(format!("role \"{name}\" does not exist"))
        .with_condition(Condition::UndefinedObject);
    let nearest = known
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(candidate, name), candidate))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    match nearest {
        Some((score, near)) if score > NEAR => error.with_hint(format!("did you mean \"{near}\"?")),
        _ => error.with_hint(format!("CREATE ROLE \"{name}\" makes it")),
    }
}
