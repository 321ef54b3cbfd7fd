//! `${name}`, `${hiveconf:name}`, `${hivevar:name}` in a text, replaced before it is read, as Hive does.

use stoa_error::{Error, Result};

/// What the names of variables may begin with; they are all the same variables here.
const PREFIXES: [&str; 5] = ["hiveconf:", "hivevar:", "metaconf:", "system:", "env:"];
/// How deep the values of variables may name others, as Hive's `hive.variable.substitute.depth`.
const DEPTH_MAX: usize = 40;
/// Bytes of a text with its variables.
const TEXT_MAX: usize = 1 << 24;

/// The name of a variable, without what says whose it is.
pub fn without_prefix(name: &str) -> &str {
    PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name)
}

/// The text with the values of its variables; those that are not set stay as they are.
///
/// # Errors
/// 54001: values name others too deep; 54000: the text becomes too long.
pub fn substituted(text: &str, value: &dyn Fn(&str) -> Option<String>) -> Result<String> {
    let mut text = text.to_owned();
    for _ in 0..DEPTH_MAX {
        match once(&text, value) {
            Some(next) if next.len() > TEXT_MAX => {
                return Err(Error::invalid(
                    "the statement is too long with the values of its variables",
                )
                .with_sqlstate("54000"));
            }
            Some(next) => text = next,
            None => return Ok(text),
        }
    }
    Err(Error::invalid("the values of variables name each other")
        .with_sqlstate("54001")
        .with_hint("SET name shows the value of a variable"))
}

/// The text with all variables replaced that are set; `None` where there are none.
fn once(text: &str, value: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let (mut all, mut rest, mut is_changed) = (String::new(), text, false);
    while let Some(at) = rest.find("${") {
        let (before, behind) = rest.split_at(at);
        all.push_str(before);
        let end = behind.find('}')?;
        let name = &behind[2..end];
        // The innermost comes first.
        if let Some(inner) = name.rfind("${") {
            all.push_str(&behind[..2 + inner]);
            rest = &behind[2 + inner..];
            continue;
        }
        match value(without_prefix(name.trim())) {
            Some(found) => {
                all.push_str(&found);
                is_changed = true;
            }
            None => all.push_str(&behind[..=end]),
        }
        rest = &behind[end + 1..];
    }
    all.push_str(rest);
    is_changed.then_some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_replaced() {
        let value = |name: &str| match name {
            "x" => Some("1".to_owned()),
            "y" => Some("${x}2".to_owned()),
            "z" => Some("${z}".to_owned()),
            _ => None,
        };
        let check = |text: &str, expected: &str| {
            assert_eq!(substituted(text, &value).unwrap(), expected, "{text}");
        };
        check("a ${x} ${hiveconf:x} ${hivevar:y}", "a 1 1 12");
        check("'${x}'", "'1'");
        check("${other} ${x", "${other} ${x");
        assert_eq!(substituted("${z}", &value).unwrap_err().sqlstate(), "54001");
    }
}
