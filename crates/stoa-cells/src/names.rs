//! Namespaces and tables of HQL as those of the catalog, and back.
//!
//! | HQL | catalog |
//! |---|---|
//! | `/` | `public`, where SQL looks for tables without a schema |
//! | `/a` | `a` |
//! | `/a/b` | `a.b`, as Iceberg's catalogs write nested namespaces |
//! | `/public` | `%70ublic` |
//!
//! A `.` or `%` within a name is written as `%2E` or `%25`; in names of tables only `%` and a leading
//! `.` are. **Invariant:** each name has one form on either side. Names of the catalog that HQL
//! cannot write (with quotes, say) have none in HQL.

use stoa_hql::{NamespacePath, TableName};
use stoa_table::TableIdent;

/// The namespace of the catalog that is HQL's root.
pub const ROOT_NAMESPACE: &str = "public";

/// How the namespace `/public` is written, which must not be the root.
const PUBLIC: &str = "%70ublic";

/// The catalog's namespace for one of HQL.
pub fn namespace_of(path: &NamespacePath) -> String {
    match path.parts() {
        [] => ROOT_NAMESPACE.to_owned(),
        [only] if only == ROOT_NAMESPACE => PUBLIC.to_owned(),
        parts => parts.iter().map(|part| encode(part)).collect::<Vec<_>>().join("."),
    }
}

/// HQL's namespace for one of the catalog; none if HQL cannot write it.
pub fn path_of(namespace: &str) -> Option<NamespacePath> {
    if namespace == ROOT_NAMESPACE {
        return Some(NamespacePath::root());
    }
    let mut path = String::new();
    for part in namespace.split('.') {
        path.push('/');
        path.push_str(&decode(part)?);
    }
    let path = NamespacePath::root().resolve(&path).ok()?;
    (namespace_of(&path) == namespace).then_some(path)
}

/// The catalog's name of a table.
pub fn ident_of(table: &TableName) -> TableIdent {
    let name = table.name.replace('%', "%25");
    let name = match name.strip_prefix('.') {
        Some(rest) => format!("%2E{rest}"),
        None => name,
    };
    TableIdent::new(namespace_of(&table.namespace), name)
}

/// HQL's name of a table; none if HQL cannot write it.
pub fn name_of(ident: &TableIdent) -> Option<TableName> {
    let namespace = path_of(&ident.namespace)?;
    let table = TableName::resolve(&namespace, &decode(&ident.name)?).ok()?;
    (ident_of(&table) == *ident).then_some(table)
}

fn encode(part: &str) -> String {
    part.replace('%', "%25").replace('.', "%2E")
}

fn decode(part: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let [first, behind @ ..] = rest {
        rest = behind;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, behind) = rest.split_at_checked(2)?;
        let digits = std::str::from_utf8(digits).ok()?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = behind;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(path: &str, namespace: &str) {
        let parsed = NamespacePath::root().resolve(path).unwrap();
        assert_eq!(namespace_of(&parsed), namespace);
        assert_eq!(path_of(namespace), Some(parsed));
    }

    #[test]
    fn namespaces_have_plain_names() {
        check("/", "public");
        check("/logs", "logs");
        check("/logs/2020", "logs.2020");
        check("/public", "%70ublic");
        check("/a/public", "a.public");
        check("/1.5/50%", "1%2E5.50%25");
    }

    #[test]
    fn what_hql_cannot_write_has_no_name_there() {
        for namespace in ["it's", "a..b", "%7", "%zz", "%61", ""] {
            assert_eq!(path_of(namespace), None, "{namespace}");
        }
        assert_eq!(name_of(&TableIdent::new("public", "a/b")), None);
    }

    proptest! {
        #[test]
        fn names_are_read_back(parts in prop::collection::vec("[a.%pü ]{1,6}|public", 1..4)) {
            prop_assume!(parts.iter().all(|part| part != "." && part != ".."));
            let path = format!("/{}", parts.join("/"));
            let table = TableName::resolve(&NamespacePath::root(), &path).unwrap();
            let ident = ident_of(&table);
            prop_assert!(!ident.name.starts_with('.'));
            prop_assert_eq!(name_of(&ident), Some(table));
        }
    }
}
