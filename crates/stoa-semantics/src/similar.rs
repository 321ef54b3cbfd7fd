//! Patterns of `SIMILAR TO` as regular expressions.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, StringArray};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::logical_expr::ColumnarValue;

use super::call::{Operation, column, failure};

/// The regular expression of a pattern that is no constant; with a character that escapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct SimilarPattern(pub(super) Option<char>);

impl Operation for SimilarPattern {
    fn name(&self) -> &str {
        "similar_to_escape"
    }

    fn result(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn compute(&self, operands: &[ColumnarValue], rows: usize) -> Result<ArrayRef> {
        let column = &column(operands, rows)?;
        let patterns = cast(column, &DataType::Utf8)?;
        let patterns = patterns.as_string::<i32>().iter();
        let texts = patterns.map(|pattern| pattern.map(|text| regex_of(text, self.0)).transpose());
        Ok(Arc::new(texts.collect::<Result<StringArray>>()?))
    }
}

/// `%` is anything, `_` one character; `|`, `*`, `+`, `?`, `{m,n}`, `(…)`, `[…]` are as in regular
/// expressions; all else stands for itself.
///
/// # Errors
/// A pattern that ends with the escape character (22025).
pub(super) fn regex_of(pattern: &str, escape: Option<char>) -> Result<String> {
    let escape = escape.unwrap_or('\\');
    let mut regex = String::from("(?s)^(?:");
    let mut within_class = false;
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            c if c == escape => {
                let Some(next) = chars.next() else {
                    let message = "LIKE pattern must not end with escape character";
                    return Err(failure("22025", message));
                };
                push_literal(next, &mut regex);
            }
            c if within_class => {
                within_class = c != ']';
                match c {
                    // Set operations of the engine's regular expressions.
                    '[' | '&' | '~' | '\\' => {
                        regex.push('\\');
                        regex.push(c);
                    }
                    c => regex.push(c),
                }
            }
            '[' => {
                within_class = true;
                regex.push('[');
                if chars.next_if_eq(&'^').is_some() {
                    regex.push('^');
                }
                if chars.next_if_eq(&']').is_some() {
                    regex.push_str("\\]");
                }
            }
            '%' => regex.push_str(".*"),
            '_' => regex.push('.'),
            '(' => regex.push_str("(?:"),
            '|' | '*' | '+' | '?' | '{' | '}' | ')' => regex.push(c),
            c => push_literal(c, &mut regex),
        }
    }
    regex.push_str(")$");
    Ok(regex)
}

fn push_literal(c: char, regex: &mut String) {
    if c.is_ascii_punctuation() {
        regex.push('\\');
    }
    regex.push(c);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_become_regular_expressions() {
        assert_eq!(regex_of("%(b|d)%", None).unwrap(), "(?s)^(?:.*(?:b|d).*)$");
        assert_eq!(regex_of("a_c.", None).unwrap(), "(?s)^(?:a.c\\.)$");
        assert_eq!(regex_of("50#%", Some('#')).unwrap(), "(?s)^(?:50\\%)$");
        assert_eq!(regex_of("[a-c]{2}", None).unwrap(), "(?s)^(?:[a-c]{2})$");
        assert!(regex_of("a\\", None).is_err());
    }
}
