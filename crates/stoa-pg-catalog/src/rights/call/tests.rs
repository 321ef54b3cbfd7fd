use stoa_access::{Grant, Grantee, Object as On, PolicyParts, Privilege, Role};

use super::*;
use crate::tests::{Fake, OPEN};

#[test]
fn names_are_cut_at_points_outside_of_quotes() {
    for (name, parts) in [
        ("visits", &["visits"][..]),
        ("Public.VISITS", &["public", "visits"][..]),
        ("\"My Schema\".\"A.b\"", &["My Schema", "A.b"][..]),
        ("\"say \"\"x\"\"\"", &["say \"x\""][..]),
    ] {
        assert_eq!(name_parts(name), parts, "{name}");
    }
}

/// `ann` may read the column `a` of the table `open`.
fn policy() -> Arc<Policy> {
    let ann = Grantee::Role("ann".to_owned());
    let grant = Grant::new(ann, Privilege::Select, On::Table(OPEN)).on_columns([1]);
    let root = Role { is_superuser: true, ..Role::new("root") };
    let roles = vec![Role::new("ann"), root];
    Arc::new(
        Policy::new(1, PolicyParts { roles, grants: vec![grant], ..PolicyParts::default() })
            .unwrap(),
    )
}

/// What `role` is answered, or the SQLSTATE of the error.
async fn answer(role: &str, object: Object, values: &[&str]) -> Result<Option<bool>, &'static str> {
    let relations = Relations::read(&Fake::all(), &[], true).await.unwrap();
    let asked = Asked {
        object,
        database: "stoa",
        role,
        policy: policy(),
        relations: Arc::new(relations),
        namespace: "public",
    };
    let values: Vec<Value> = values.iter().map(|text| Value::Text((*text).to_owned())).collect();
    asked.answer(&values).map_err(|error| error.sqlstate())
}

#[tokio::test]
async fn answers_are_what_the_policy_says() {
    use Object::{AnyColumn, Column, Database, Schema, Table};
    for (object, values, ann) in [
        (Table, &["open", "select"][..], Ok(Some(false))),
        (AnyColumn, &["open", "select"], Ok(Some(true))),
        (Column, &["open", "a", "select"], Ok(Some(true))),
        (Column, &["open", "b", "select"], Ok(Some(false))),
        (Column, &["open", "c", "select"], Err("42703")),
        (Table, &["hidden", "select, insert"], Ok(Some(false))),
        (Table, &["broken", "select"], Ok(Some(false))),
        (Table, &["nowhere", "select"], Err("42P01")),
        (Table, &["pg_class", "select"], Ok(Some(true))),
        (Table, &["root", "hidden", "select"], Ok(Some(true))),
        (Schema, &["public", "create"], Ok(Some(false))),
        (Schema, &["nowhere", "usage"], Err("3F000")),
        (Database, &["stoa", "connect"], Ok(Some(true))),
        (Database, &["other", "connect"], Err("3D000")),
        (Table, &["open"], Err("42883")),
    ] {
        assert_eq!(answer("ann", object, values).await, ann, "{object:?} {values:?}");
    }
    assert_eq!(answer("root", Table, &["broken", "delete"]).await, Ok(Some(true)));
}
