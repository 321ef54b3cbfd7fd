use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, TimeUnit};

use super::*;

fn with_id(field: Field, id: i32) -> Field {
    field.with_metadata(HashMap::from([(FIELD_ID_KEY.to_owned(), id.to_string())]))
}

#[test]
fn an_arrow_schema_with_field_ids_comes_back() {
    let item = with_id(Field::new("item", DataType::Utf8, true), 6);
    let schema = Schema::new(vec![
        with_id(Field::new("account", DataType::Int64, false), 1),
        with_id(Field::new("at", DataType::Timestamp(TimeUnit::Microsecond, None), true), 2),
        with_id(
            Field::new(
                "seen",
                DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into())),
                true,
            ),
            3,
        ),
        with_id(Field::new("cost", DataType::Decimal128(18, 4), true), 4),
        with_id(Field::new("tags", DataType::List(Arc::new(item)), true), 5),
        with_id(Field::new("time", DataType::Time64(TimeUnit::Microsecond), true), 7),
        with_id(Field::new("fixed", DataType::FixedSizeBinary(3), true), 8),
    ]);
    let tree = TypeTree::from_arrow(&schema).unwrap();
    assert_eq!(tree.field_id(5), Some(5));
    assert_eq!(tree.path(6), "tags.item");
    assert_eq!(tree.column_of_field(6), Some(6));
    let back = TypeTree::from_proto(&tree.to_proto()).unwrap();
    assert_eq!(back, tree);
    assert_eq!(*back.to_arrow(&ArrowOptions::default()).unwrap(), schema);
}

#[test]
fn without_ids_there_are_no_attributes() {
    let schema = Schema::new(vec![Field::new("a", DataType::Int32, false)]);
    let tree = TypeTree::from_arrow(&schema).unwrap();
    assert!(tree.types()[1].attributes.is_empty());
}

#[test]
fn a_tree_that_is_not_in_pre_order_is_refused() {
    let mut root = OrcType::new(TypeKind::List);
    for children in [vec![0], vec![2], vec![], vec![1, 1]] {
        root.children = children;
        let types = vec![root.clone(), OrcType::new(TypeKind::Int)];
        assert!(TypeTree::new(types).is_err());
    }
}

#[test]
fn deep_nesting_is_refused_not_overflown() {
    let mut types: Vec<OrcType> = Vec::new();
    for column in 0..100_000u32 {
        let mut ty = OrcType::new(TypeKind::List);
        ty.children = vec![column + 1];
        types.push(ty);
    }
    types.push(OrcType::new(TypeKind::Int));
    assert!(TypeTree::new(types).is_err());
}
