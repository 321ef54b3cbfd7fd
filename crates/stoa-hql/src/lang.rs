//! HQL: text to statements and back.
//!
//! In: the text of one statement. Out: a [`Statement`](ast::Statement) that names what was written
//! (names are not looked up, times not read), or a [`ParseError`] with line, column and hint.
//! [`Splitter`] cuts what a shell reads into statements. A statement prints as HQL that parses to
//! the same statement.
//!
//! Keywords are not reserved: a word is one where the grammar has a place for it, and never within
//! quotes. Literals have no escapes (reference §1.2): between its quotes, text stands for itself.
//!
//! **Invariants:** no text makes the parser panic, loop or recurse.
//!
//! Not here: what statements do (`session`), the grammar in full (docs/hql.md).

pub mod ast;
mod cursor;
mod error;
mod file_names;
mod parser;
mod print;
mod split;

pub use error::ParseError;
pub use parser::parse;
pub use split::Splitter;

#[cfg(test)]
mod tests;
