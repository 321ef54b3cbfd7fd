//! Names of temporary tables in a statement.
//!
//! In: a parsed statement, and which names are temporary tables' of the session. Out: the same, in which these names
//! have the schema in which such tables are: `t` is `pg_temp_1.t`, and so is `pg_temp.t`. What WITH calls so stays.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion_sql::parser::Statement as EngineStatement;
use datafusion_sql::sqlparser::ast::{Ident, ObjectName, ObjectNamePart, Query, VisitorMut};

use crate::adapt::parsed;
use crate::walk::WalkMut;
use crate::{normalise, whole_tables};

/// What the schemas of temporary tables begin with.
pub const PREFIX: &str = "pg_temp_";

/// The schema of one's own temporary tables, as it is written.
pub const OWN: &str = "pg_temp";

/// Whether a schema is one of temporary tables.
pub fn is_temporary(schema: &str) -> bool {
    schema.starts_with(PREFIX)
}

/// What names of a statement mean.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Qualified {
    /// Whether there were temporary tables among them.
    pub any: bool,
    /// A schema of temporary tables that is another one.
    pub other: Option<String>,
}

/// Puts `schema` before the names for which `is_one` holds.
pub fn qualify(
    statement: &mut EngineStatement,
    schema: &str,
    is_one: &dyn Fn(&str) -> bool,
) -> Qualified {
    let Some(statement) = parsed(statement) else { return Qualified::default() };
    let mut names = With::default();
    let _ = statement.walk_mut(&mut names);
    let found = Qualified::default();
    let mut qualifying = Qualifying { schema, is_one, with: names.0, found };
    let _ = statement.walk_mut(&mut qualifying);
    let found = qualifying.found;
    if found.any {
        whole_tables::write_schemas(statement);
    }
    found
}

/// The names that WITH gives.
#[derive(Default)]
struct With(HashSet<String>);

impl VisitorMut for With {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        if let Some(with) = &query.with {
            self.0.extend(with.cte_tables.iter().map(|table| normalise(&table.alias.name)));
        }
        ControlFlow::Continue(())
    }
}

struct Qualifying<'a> {
    schema: &'a str,
    is_one: &'a dyn Fn(&str) -> bool,
    with: HashSet<String>,
    found: Qualified,
}

impl VisitorMut for Qualifying<'_> {
    type Break = ();

    fn pre_visit_relation(&mut self, name: &mut ObjectName) -> ControlFlow<()> {
        let own = || ObjectNamePart::Identifier(Ident::with_quote('"', self.schema));
        match name.0.as_mut_slice() {
            [ObjectNamePart::Identifier(table)] => {
                let table = normalise(table);
                if !self.with.contains(&table) && (self.is_one)(&table) {
                    name.0.insert(0, own());
                    self.found.any = true;
                }
            }
            [schema @ ObjectNamePart::Identifier(_), _]
            | [_, schema @ ObjectNamePart::Identifier(_), _] => {
                let named = schema.as_ident().map(normalise).unwrap_or_default();
                if named == OWN {
                    *schema = own();
                    self.found.any = true;
                } else if is_temporary(&named) && named != self.schema {
                    self.found.other = Some(named);
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use datafusion_sql::parser::DFParserBuilder;
    use datafusion_sql::sqlparser::dialect::PostgreSqlDialect;

    use super::*;

    #[test]
    fn schemas_of_others_are_found() {
        for (sql, other) in [
            ("SELECT * FROM u, pg_temp_2.t", Some("pg_temp_2")),
            ("SELECT * FROM stoa.\"pg_temp_2\".t", Some("pg_temp_2")),
            ("SELECT 'pg_temp_2.t' FROM pg_temp_1.t", None),
        ] {
            let dialect = PostgreSqlDialect {};
            let mut parser = DFParserBuilder::new(sql).with_dialect(&dialect).build().unwrap();
            let mut statement = parser.parse_statement().unwrap();
            let found = qualify(&mut statement, "pg_temp_1", &|_| false);
            assert_eq!((found.any, found.other.as_deref()), (false, other));
        }
    }

    #[test]
    fn names_of_temporary_tables_get_their_schema() {
        for (sql, expected) in [
            ("SELECT t.a FROM t JOIN u ON true", "SELECT t.a FROM \"s\".t JOIN u ON true"),
            ("INSERT INTO T SELECT * FROM x.t", "INSERT INTO \"s\".T SELECT * FROM x.t"),
            (
                "UPDATE t SET a = 1 WHERE a IN (SELECT a FROM t)",
                "UPDATE \"s\".t SET a = 1 WHERE a IN (SELECT a FROM \"s\".t)",
            ),
            (
                "SELECT t.*, count(t.*) FROM t, u AS v",
                "SELECT \"s\".t.*, count(\"s\".t.*) FROM \"s\".t, u AS v",
            ),
            ("SELECT t.* FROM u AS t", "SELECT t.* FROM u AS t"),
            ("DELETE FROM t", "DELETE FROM \"s\".t"),
            ("TRUNCATE TABLE t", "TRUNCATE TABLE \"s\".t"),
            ("SELECT * FROM pg_temp.v", "SELECT * FROM \"s\".v"),
            ("WITH t AS (SELECT 1) SELECT * FROM t", "WITH t AS (SELECT 1) SELECT * FROM t"),
            ("EXPLAIN SELECT * FROM t", "EXPLAIN SELECT * FROM \"s\".t"),
            (
                "MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN DELETE",
                "MERGE INTO \"s\".t USING u ON t.a = u.a WHEN MATCHED THEN DELETE",
            ),
        ] {
            let dialect = PostgreSqlDialect {};
            let mut parser = DFParserBuilder::new(sql).with_dialect(&dialect).build().unwrap();
            let mut statement = parser.parse_statement().unwrap();
            qualify(&mut statement, "s", &|name| name == "t");
            assert_eq!(statement.to_string(), expected);
        }
    }
}
