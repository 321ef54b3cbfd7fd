//! All functions of [`super::declared`].

use super::declared::Declared;
use super::{
    byte_texts, degrees, encodings, from_format, json, like_arrays, numbers, quoting, regexes,
    similar_parts, strings, times, unicode_forms,
};

/// By what they are about.
pub(super) static ALL: &[&[Declared]] = &[
    from_format::FUNCTIONS,
    times::FUNCTIONS,
    numbers::FUNCTIONS,
    json::GET,
    json::EDIT,
    json::PAIR,
    json::PATHS,
    json::RECORDS,
    like_arrays::FUNCTIONS,
    quoting::FUNCTIONS,
    regexes::FUNCTIONS,
    strings::FUNCTIONS,
    byte_texts::FUNCTIONS,
    degrees::FUNCTIONS,
    encodings::FUNCTIONS,
    similar_parts::FUNCTIONS,
    unicode_forms::FUNCTIONS,
];
