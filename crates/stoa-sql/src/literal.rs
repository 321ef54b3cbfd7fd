//! Small pieces that several statements share: option lists and literal texts.

use datafusion_sql::sqlparser::parser::Parser;
use datafusion_sql::sqlparser::tokenizer::Token;

use crate::Parsed;

/// `('key' = 'value', key value, key)`: names lower case unless quoted; a name alone means true.
pub(super) fn parse_options(parser: &mut Parser<'_>) -> Parsed<Vec<(String, String)>> {
    parser.expect_token(&Token::LParen)?;
    let mut options = Vec::new();
    while !parser.consume_token(&Token::RParen) {
        if !options.is_empty() {
            parser.expect_token(&Token::Comma)?;
        }
        let name = parse_option_name(parser)?;
        let _ = parser.consume_token(&Token::Eq);
        let value = match &parser.peek_token_ref().token {
            Token::Comma | Token::RParen => "true".to_owned(),
            _ => parse_value(parser)?,
        };
        options.push((name, value));
    }
    Ok(options)
}

/// A quoted key, or words joined by points: `write.format.default`.
pub(super) fn parse_option_name(parser: &mut Parser<'_>) -> Parsed<String> {
    let mut name = String::new();
    loop {
        let token = parser.next_token();
        match token.token {
            Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => {
                name.push_str(&text)
            }
            Token::Word(word) if word.quote_style.is_some() => name.push_str(&word.value),
            Token::Word(word) => name.push_str(&word.value.to_lowercase()),
            _ => return parser.expected("an option name", token),
        }
        if !(parser.consume_token(&Token::Period) || parser.consume_token(&Token::Minus)) {
            return Ok(name);
        }
        name.push('.');
    }
}

/// A string, number, word or boolean, as text.
pub(super) fn parse_value(parser: &mut Parser<'_>) -> Parsed<String> {
    let token = parser.next_token();
    match token.token {
        Token::SingleQuotedString(text)
        | Token::DoubleQuotedString(text)
        | Token::EscapedStringLiteral(text) => Ok(text),
        Token::Number(text, _) => Ok(text),
        Token::Word(word) if word.quote_style.is_some() => Ok(word.value),
        Token::Word(word) => Ok(word.value.to_lowercase()),
        Token::Minus => Ok(format!("-{}", parse_value(parser)?)),
        _ => parser.expected("a value", token),
    }
}
