//! `PARTITION (column op value, …)` of statements other than INSERT, and the changes of `ALTER TABLE` that have it.

use sqlparser::tokenizer::Token;
use stoa_error::{Error, Result};

use crate::cursor::{Cursor, literal, quoted};

/// `PARTITION (column op value, …)` as Stoa reads it.
///
/// # Errors
/// 42601.
pub(crate) fn spec(cursor: &mut Cursor<'_>) -> Result<String> {
    cursor.expect(&["partition"])?;
    let mut inner = Cursor::new(cursor.parenthesised()?);
    let mut terms = Vec::new();
    while terms.is_empty() || inner.take_token(&Token::Comma) {
        terms.push(term(&mut inner)?);
    }
    inner.expect_end()?;
    Ok(format!("PARTITION ({})", terms.join(", ")))
}

fn term(cursor: &mut Cursor<'_>) -> Result<String> {
    let column = quoted(&cursor.name()?);
    let comparison = match cursor.peek() {
        Token::Eq | Token::DoubleEq => "=",
        Token::Neq => "<>",
        Token::Lt => "<",
        Token::LtEq => "<=",
        Token::Gt => ">",
        Token::GtEq => ">=",
        _ => return Err(cursor.wrong("=, <>, <, <=, > or >=, and a value")),
    };
    cursor.at += 1;
    Ok(format!("{column} {comparison} {}", value(cursor)?))
}

fn value(cursor: &mut Cursor<'_>) -> Result<String> {
    let _ = cursor.take(&["date"]) || cursor.take(&["timestamp"]);
    let sign = if cursor.take_token(&Token::Minus) { "-" } else { "" };
    // Which `1L` has become by now; the column's type is what counts.
    if cursor.take(&["cast"]) {
        let number = value(&mut Cursor::new(cursor.parenthesised()?))?;
        return Ok(format!("{sign}{number}"));
    }
    let text = match cursor.peek() {
        Token::SingleQuotedString(text) if sign.is_empty() => literal(text),
        Token::Number(number, _) => {
            let digits = number.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
            format!("{sign}{digits}")
        }
        Token::Word(word) if ["null", "true", "false"].contains(&word.value.as_str()) => {
            word.value.to_uppercase()
        }
        _ => return Err(cursor.wrong("a value")),
    };
    cursor.at += 1;
    Ok(text)
}

/// What follows `ALTER TABLE name`, if it is about partitions.
///
/// # Errors
/// 42601; 0A000 for what partitions of Stoa's tables have not.
pub(crate) fn change(cursor: &mut Cursor<'_>) -> Result<Option<String>> {
    if cursor.take(&["recover", "partitions"]) {
        return Ok(Some("RECOVER PARTITIONS".to_owned()));
    }
    if cursor.looking_at(&["partition"]) {
        spec(cursor)?;
        return Err(changed_partition(cursor));
    }
    if cursor.looking_at(&["drop", "partition"]) || cursor.looking_at(&["drop", "if", "exists"]) {
        cursor.at += 1;
        let if_exists = if cursor.take(&["if", "exists"]) { "IF EXISTS " } else { "" };
        let specs = specs(cursor)?;
        let _ = cursor.take(&["ignore", "protection"]);
        let _ = cursor.take(&["purge"]);
        return Ok(Some(format!("DROP {if_exists}{specs}")));
    }
    if cursor.looking_at(&["add", "partition"]) || cursor.looking_at(&["add", "if", "not"]) {
        cursor.at += 1;
        let if_not_exists = cursor.take(&["if", "not", "exists"]);
        let specs = specs(cursor)?;
        let if_not_exists = if if_not_exists { "IF NOT EXISTS " } else { "" };
        return Ok(Some(format!("ADD {if_not_exists}{specs}")));
    }
    Ok(None)
}

fn specs(cursor: &mut Cursor<'_>) -> Result<String> {
    let mut all = Vec::new();
    while all.is_empty() || cursor.looking_at(&["partition"]) {
        all.push(spec(cursor)?);
        if cursor.looking_at(&["location"]) {
            return Err(Error::unsupported("LOCATION of a partition is not supported")
                .with_hint("partitions are where their table is; leave it out"));
        }
        let _ = cursor.take_token(&Token::Comma);
    }
    Ok(all.join(", "))
}

/// What Hive can do with a partition that Stoa's tables have not.
fn changed_partition(cursor: &Cursor<'_>) -> Error {
    for (words, hint) in [
        (&["rename", "to"][..], "use UPDATE, or INSERT OVERWRITE and DROP PARTITION"),
        (&["set", "location"], "partitions are where their table is"),
        (&["set", "fileformat"], "tables are stored as ORC"),
        (&["concatenate"], "files are compacted by the server"),
        (&["compact"], "files are compacted by the server; COMPACT in Stoa's SQL does it at once"),
        (&["enable"], "leave it out"),
        (&["disable"], "grant only those rights that are needed"),
    ] {
        if cursor.looking_at(words) {
            let words = words.join(" ").to_uppercase();
            return Error::unsupported(format!(
                "ALTER TABLE … PARTITION … {words} is not supported"
            ))
            .with_hint(hint);
        }
    }
    Error::unsupported("this ALTER TABLE … PARTITION is not supported").with_hint(
        "partitions come with their rows: DROP PARTITION and TRUNCATE … PARTITION delete them",
    )
}

#[cfg(test)]
mod tests {
    use crate::{Options, translate};

    fn check(hive: &str, stoa: &str) {
        assert_eq!(translate(hive, Options::default()).unwrap(), stoa, "{hive}");
    }

    #[test]
    fn partitions_keep_their_conditions() {
        check(
            "alter table d.t drop if exists partition (day='x', `hour`>=3), partition (day=null) purge",
            r#"ALTER TABLE "d"."t" DROP IF EXISTS PARTITION ("day" = 'x', "hour" >= 3), PARTITION ("day" = NULL)"#,
        );
        check(
            "alter table t add if not exists partition (day=date '2024-01-01') partition (day='it\\'s')",
            r#"ALTER TABLE "t" ADD IF NOT EXISTS PARTITION ("day" = '2024-01-01'), PARTITION ("day" = 'it''s')"#,
        );
        check(
            "truncate table t partition (n=-1L)",
            r#"ALTER TABLE "t" TRUNCATE PARTITION ("n" = -1)"#,
        );
        check("msck repair table t sync partitions", r#"ALTER TABLE "t" RECOVER PARTITIONS"#);
        check(
            "show partitions t partition (day='x')",
            r#"SHOW PARTITION NAMES FROM "t" PARTITION ("day" = 'x')"#,
        );
        check("describe t partition (day='x')", r#"DESCRIBE "t" PARTITION ("day" = 'x')"#);
    }
}
