//! All functions of [`super::declared`].

use super::declared::Declared;
use super::{from_format, json, numbers, quoting, regexes, strings, times};

/// By what they are about.
pub(super) static ALL: &[&[Declared]] = &[
    from_format::FUNCTIONS,
    times::FUNCTIONS,
    numbers::FUNCTIONS,
    json::GET,
    json::EDIT,
    json::PAIR,
    quoting::FUNCTIONS,
    regexes::FUNCTIONS,
    strings::FUNCTIONS,
];
