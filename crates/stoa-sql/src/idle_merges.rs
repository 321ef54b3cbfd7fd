//! `DO NOTHING` of MERGE, which the parser does not read: rows that a clause leaves alone are left out of those after it.
//!
//! ```text
//! MERGE INTO t USING s ON …                MERGE INTO t USING s ON …
//!   WHEN MATCHED AND c THEN DO NOTHING  ─►
//!   WHEN MATCHED AND d THEN DELETE           WHEN MATCHED AND (d) AND (c) IS NOT TRUE THEN DELETE
//! ```
//! Before parsing, such a clause gets an action on a column that no table has; after it, the clause is taken out.

use datafusion_sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion_sql::sqlparser::ast::{
    AssignmentTarget, BinaryOperator, Expr, MergeAction, MergeClause, MergeClauseKind, ObjectName,
    Statement, Value,
};
use datafusion_sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use stoa_error::{Error, Result};

use crate::extent;

/// The column that no table has.
const NOTHING: &str = "\u{2063}nothing";

/// Whether a text may have such a clause.
pub(super) fn may_be_in(text: &str) -> bool {
    let has = |word: &str| {
        text.as_bytes().windows(word.len()).any(|part| part.eq_ignore_ascii_case(word.as_bytes()))
    };
    has("merge") && has("nothing")
}

/// The tokens with an action that is parsed in the place of each `DO NOTHING` after THEN.
pub(super) fn marked(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut marked: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len() + 8);
    // The places of the last tokens that are not white space, the latest first.
    let mut last: [Option<usize>; 3] = [None; 3];
    // Whether the latest clause is one of rows that the table does not have.
    let mut inserts = false;
    for token in tokens {
        if matches!(token.token, Token::Whitespace(_)) {
            marked.push(token);
            continue;
        }
        let was = |back: usize, text| last[back].is_some_and(|at| is_word(&marked[at].token, text));
        if is_word(&token.token, "MATCHED") && (was(0, "WHEN") || was(0, "NOT") && was(1, "WHEN")) {
            inserts = was(0, "NOT");
        } else if is_word(&token.token, "SOURCE") && was(0, "BY") && was(1, "MATCHED") {
            inserts = false;
        } else if is_word(&token.token, "NOTHING")
            && was(1, "THEN")
            && let Some(at) = last[0].filter(|_| was(0, "DO"))
        {
            marked.truncate(at);
            let span = token.span;
            marked.extend(action(inserts).into_iter().map(|token| TokenWithSpan { token, span }));
            last = [None; 3];
            continue;
        }
        last = [Some(marked.len()), last[0], last[1]];
        marked.push(token);
    }
    marked
}

/// What an idle clause does until it is taken out.
fn action(inserts: bool) -> Vec<Token> {
    let word = Token::make_keyword;
    let column = Token::make_word(NOTHING, Some('"'));
    let zero = Token::Number("0".into(), false);
    match inserts {
        true => vec![
            word("INSERT"),
            Token::LParen,
            column,
            Token::RParen,
            word("VALUES"),
            Token::LParen,
            zero,
            Token::RParen,
        ],
        false => vec![word("UPDATE"), word("SET"), column, Token::Eq, zero],
    }
}

fn is_word(token: &Token, text: &str) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none()
        && word.value.eq_ignore_ascii_case(text))
}

/// Takes the marked clauses out of a MERGE, and what they match out of the clauses after them.
///
/// # Errors
/// 42601 where a clause comes after one that takes all rows, 54000 where the conditions would be too long.
pub(super) fn take_out(statement: &mut Statement) -> Result<()> {
    let Statement::Merge(merge) = statement else { return Ok(()) };
    refuse_unreachable(&merge.clauses)?;
    if !merge.clauses.iter().any(is_idle) {
        return Ok(());
    }
    let idle = merge.clauses.iter().filter(|clause| is_idle(clause));
    let conditions = idle.filter_map(|clause| clause.predicate.as_ref());
    let written: usize = conditions.map(|condition| condition.to_string().len()).sum();
    extent::refuse_copies(written * merge.clauses.len())?;
    let mut taken: Vec<(MergeClauseKind, Expr)> = Vec::new();
    let mut kept = Vec::with_capacity(merge.clauses.len());
    for mut clause in std::mem::take(&mut merge.clauses) {
        let kind = kind_of(&clause);
        if is_idle(&clause) {
            taken.extend(clause.predicate.map(|condition| (kind, condition)));
            continue;
        }
        for (_, condition) in taken.iter().filter(|(of, _)| *of == kind) {
            let others = Expr::IsNotTrue(Box::new(Expr::Nested(Box::new(condition.clone()))));
            clause.predicate = Some(match clause.predicate.take() {
                None => others,
                Some(own) => and(own, others),
            });
        }
        kept.push(clause);
    }
    if kept.is_empty() {
        // A MERGE has a clause.
        kept.push(MergeClause {
            when_token: AttachedToken::empty(),
            clause_kind: MergeClauseKind::Matched,
            predicate: Some(Expr::value(Value::Boolean(false))),
            action: MergeAction::Delete { delete_token: AttachedToken::empty() },
        });
    }
    merge.clauses = kept;
    Ok(())
}

/// As PostgreSQL does.
fn refuse_unreachable(clauses: &[MergeClause]) -> Result<()> {
    let mut ended = Vec::new();
    for clause in clauses {
        let kind = kind_of(clause);
        if ended.contains(&kind) {
            let what = "unreachable WHEN clause specified after unconditional WHEN clause";
            return Err(Error::invalid(what).with_sqlstate("42601").with_hint(
                "the first clause whose condition holds is the one that is carried out",
            ));
        }
        if clause.predicate.is_none() {
            ended.push(kind);
        }
    }
    Ok(())
}

/// `NOT MATCHED` and `NOT MATCHED BY TARGET` are the same.
fn kind_of(clause: &MergeClause) -> MergeClauseKind {
    match clause.clause_kind {
        MergeClauseKind::NotMatchedByTarget => MergeClauseKind::NotMatched,
        kind => kind,
    }
}

fn is_idle(clause: &MergeClause) -> bool {
    let is_nothing = |name: &ObjectName| matches!(name.0.as_slice(), [part] if part.as_ident().is_some_and(|name| name.value == NOTHING));
    match &clause.action {
        MergeAction::Insert(insert) => insert.columns.iter().any(is_nothing),
        MergeAction::Update(update) => update.assignments.iter().any(|assignment| {
            matches!(&assignment.target, AssignmentTarget::ColumnName(name) if is_nothing(name))
        }),
        MergeAction::Delete { .. } => false,
    }
}

fn and(left: Expr, right: Expr) -> Expr {
    let left = Box::new(Expr::Nested(Box::new(left)));
    Expr::BinaryOp { left, op: BinaryOperator::And, right: Box::new(right) }
}

#[cfg(test)]
mod tests {
    use datafusion_sql::sqlparser::dialect::PostgreSqlDialect;
    use datafusion_sql::sqlparser::parser::Parser;
    use datafusion_sql::sqlparser::tokenizer::Tokenizer;

    use super::*;

    fn written(clauses: &str) -> Result<String> {
        let text = format!("MERGE INTO t USING s ON t.a = s.a {clauses}");
        assert!(may_be_in(&text));
        let dialect = PostgreSqlDialect {};
        let tokens = Tokenizer::new(&dialect, &text).tokenize_with_location().unwrap();
        let mut parser = Parser::new(&dialect).with_tokens_with_locations(marked(tokens));
        let mut statement = parser.parse_statement().unwrap();
        take_out(&mut statement)?;
        let written = statement.to_string();
        Ok(written.strip_prefix("MERGE INTO t USING s ON t.a = s.a ").unwrap().to_owned())
    }

    #[test]
    fn rows_that_are_left_alone_are_not_for_later_clauses() {
        for (clauses, expected) in [
            (
                "WHEN MATCHED AND t.b = 1 OR s.b THEN DO NOTHING WHEN NOT MATCHED THEN INSERT (a) VALUES (s.a) \
                 WHEN MATCHED AND s.b THEN DELETE WHEN MATCHED THEN UPDATE SET b = 2",
                "WHEN NOT MATCHED THEN INSERT (a) VALUES (s.a) \
                 WHEN MATCHED AND (s.b) AND (t.b = 1 OR s.b) IS NOT TRUE THEN DELETE \
                 WHEN MATCHED AND (t.b = 1 OR s.b) IS NOT TRUE THEN UPDATE SET b = 2",
            ),
            (
                "WHEN NOT MATCHED AND CASE WHEN s.a > 1 THEN true END THEN do  nothing \
                 WHEN NOT MATCHED THEN INSERT VALUES (1) WHEN MATCHED THEN DO NOTHING",
                "WHEN NOT MATCHED AND (CASE WHEN s.a > 1 THEN true END) IS NOT TRUE THEN INSERT VALUES (1)",
            ),
            (
                "WHEN NOT MATCHED BY SOURCE AND t.b = 1 THEN DO NOTHING WHEN NOT MATCHED BY SOURCE THEN DELETE",
                "WHEN NOT MATCHED BY SOURCE AND (t.b = 1) IS NOT TRUE THEN DELETE",
            ),
            ("WHEN NOT MATCHED THEN DO NOTHING", "WHEN MATCHED AND false THEN DELETE"),
        ] {
            assert_eq!(written(clauses).unwrap(), expected);
        }
    }

    #[test]
    fn clauses_after_one_that_takes_all_rows_are_refused() {
        for clauses in [
            "WHEN MATCHED THEN DO NOTHING WHEN MATCHED THEN DELETE",
            "WHEN NOT MATCHED THEN DO NOTHING WHEN MATCHED THEN DELETE WHEN NOT MATCHED AND s.a = 1 THEN DO NOTHING",
        ] {
            assert_eq!(written(clauses).unwrap_err().sqlstate(), "42601", "{clauses}");
        }
    }

    /// Each clause has its own copy of the conditions before it.
    #[test]
    fn copies_of_long_conditions_are_refused() {
        let idle = format!("WHEN MATCHED AND s.b = '{}' THEN DO NOTHING ", "y".repeat(10_000));
        let clauses = idle + &"WHEN MATCHED AND s.a = 1 THEN DELETE ".repeat(2_000);
        assert_eq!(written(&clauses).unwrap_err().sqlstate(), "54000");
    }
}
