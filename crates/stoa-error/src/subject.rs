//! What of a statement's text an error is about.

/// A part of a statement, as far as it is known without its text: where it stands is found there later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A column, perhaps behind the name of a table.
    Column {
        /// The table or alias in front of it, if one is written.
        relation: Option<String>,
        /// Its name.
        name: String,
    },
    /// A column without the name of a table; if its name is written more often, it is not known where it is meant.
    OnlyColumn(String),
    /// A table or view, by the last part of its name.
    Relation(String),
    /// The qualifier in front of a column or a star.
    Qualifier(String),
    /// A function, by its name: the first call of it counts.
    Function(String),
    /// A function that is called once; if it is called more often, it is not known which call is meant.
    OnlyCall(String),
    /// A type.
    Type(String),
    /// An operator between two operands.
    Operator {
        /// As it is written.
        sign: String,
        /// How the operand before it ends: a name or a constant, if it is known.
        left: Option<String>,
        /// How the operand behind it begins.
        right: Option<String>,
    },
    /// A quoted literal, by its value.
    Literal(String),
    /// What follows this keyword, which is in the statement only once.
    Behind(&'static str),
    /// A column that stands as a condition by itself, by its name.
    Condition(String),
    /// A name that is written twice: the second time.
    Repeated(String),
    /// Any other name.
    Name(String),
}
