use proptest::prelude::*;

use super::*;

fn family(name: &str, options: FamilyOptions) -> FamilyDefinition {
    FamilyDefinition { name: name.to_owned(), options }
}

fn group(name: &str, families: &[&str]) -> GroupDefinition {
    GroupDefinition {
        name: name.to_owned(),
        families: families.iter().map(|f| (*f).to_owned()).collect(),
        options: GroupOptions::default(),
        family_defaults: FamilyOptions::default(),
    }
}

fn plain(names: &[&str]) -> TableDefinitions {
    let families = names.iter().map(|name| family(name, FamilyOptions::default())).collect();
    TableDefinitions { families, ..TableDefinitions::default() }
}

fn versions(n: u32) -> FamilyOptions {
    FamilyOptions { max_versions: Some(n), ..FamilyOptions::default() }
}

#[test]
fn ids_follow_the_order_of_the_access_groups() {
    let definitions =
        TableDefinitions { groups: vec![group("g", &["b"])], ..plain(&["a", "b", "c"]) };
    let schema = TableSchema::create(&definitions, TableOptions::default()).unwrap();
    let ids: Vec<_> = schema.families.iter().map(|f| (f.id, f.name.as_str())).collect();
    assert_eq!(ids, [(1, "b"), (2, "a"), (3, "c")]);
}

#[test]
fn defaults_of_group_and_table_are_shown_with_the_families() {
    let mut definitions = plain(&["apple", "banana", "carrot"]);
    definitions.families[0].options.ttl_s = Some(172_800);
    definitions.families[1].options.max_versions = Some(2);
    definitions.groups = vec![GroupDefinition {
        options: GroupOptions { block_size: Some(20_000), ..GroupOptions::default() },
        ..group("foo", &["banana"])
    }];
    definitions.indices = vec![IndexDefinition { family: "carrot".into(), of_qualifiers: true }];
    let options = TableOptions {
        group_commit_interval_ms: Some(100),
        group: GroupOptions { in_memory: Some(true), ..GroupOptions::default() },
        family: FamilyOptions { ttl_s: Some(604_800), ..versions(3) },
    };
    let schema = TableSchema::create(&definitions, options).unwrap();
    let expected = "CREATE TABLE 'my_fruits' (\n  \
        banana MAX_VERSIONS 2 TTL 604800,\n  \
        apple MAX_VERSIONS 3 TTL 172800,\n  \
        carrot MAX_VERSIONS 3 TTL 604800, QUALIFIER INDEX carrot,\n  \
        ACCESS GROUP foo (banana) BLOCKSIZE 20000 IN_MEMORY true,\n  \
        ACCESS GROUP default (apple, carrot) IN_MEMORY true\n\
        ) GROUP_COMMIT_INTERVAL 100 IN_MEMORY true MAX_VERSIONS 3 TTL 604800;\n";
    assert_eq!(schema.show_create("my_fruits"), expected);
}

#[test]
fn a_dropped_family_leaves_its_id_behind() {
    let schema = TableSchema::create(&plain(&["a", "b"]), TableOptions::default()).unwrap();
    let actions = [
        AlterAction::DropFamilies(vec!["a".into()]),
        AlterAction::Add(plain(&["a"])),
        AlterAction::RenameFamily { from: "b".into(), to: "z".into() },
    ];
    let altered = schema.alter(&actions).unwrap();
    assert_eq!(altered.generation, schema.generation + 1);
    assert_eq!(altered.family("a").unwrap().id, 3);
    assert_eq!(altered.family("z").unwrap().id, 2);
    assert!(altered.describe(false).contains("<Name>!1</Name>"));

    let many: Vec<String> = (0..252).map(|i| format!("c{i}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let full = altered.alter(&[AlterAction::Add(plain(&many))]).unwrap();
    let error = full.alter(&[AlterAction::Add(plain(&["last"]))]).unwrap_err();
    assert_eq!(error.message(), "a table has at most 255 column families");
}

#[test]
fn what_cannot_be_is_refused() {
    let create = |definitions| TableSchema::create(&definitions, TableOptions::default());
    let counter = FamilyOptions { counter: Some(true), ..versions(1) };
    let cases = [
        plain(&["a", "a"]),
        plain(&["media:image"]),
        TableDefinitions { groups: vec![group("g", &["b"])], ..plain(&["a"]) },
        TableDefinitions { groups: vec![group("g", &["a"]), group("h", &["a"])], ..plain(&["a"]) },
        TableDefinitions { families: vec![family("a", counter)], ..TableDefinitions::default() },
        TableDefinitions {
            indices: vec![IndexDefinition { family: "b".into(), of_qualifiers: false }],
            ..plain(&["a"])
        },
    ];
    for case in cases {
        assert!(create(case.clone()).is_err(), "{case:?}");
    }
    let schema = create(plain(&["Query"])).unwrap();
    let error = schema.require_family("query").unwrap_err();
    assert_eq!(error.hint(), Some("did you mean 'Query'?"));
    let count = FamilyOptions { counter: Some(true), ..FamilyOptions::default() };
    let modify = TableDefinitions { families: vec![family("Query", count)], ..plain(&[]) };
    let error = schema.alter(&[AlterAction::Modify(modify)]).unwrap_err();
    assert_eq!(error.message(), "COUNTER of 'Query' cannot be changed");
}

#[test]
fn a_schema_file_changes_a_table() {
    let schema = TableSchema::create(&plain(&["a", "b"]), TableOptions::default()).unwrap();
    let target = TableSchema::create(&plain(&["b", "c"]), TableOptions::default()).unwrap();
    let (definitions, _) = TableDefinitions::from_xml(&target.describe(true)).unwrap();
    let altered = schema.alter(&schema.changes_to(&definitions)).unwrap();
    let names: Vec<&str> = altered.living().map(|f| f.name.as_str()).collect();
    assert_eq!(names, ["b", "c"]);

    for text in ["", "<Schema>", "<Schema></Schema>x", "<Schema><Nonsense/></Schema>", "<a></b>"] {
        assert!(TableDefinitions::from_xml(text).is_err(), "{text}");
    }
}

pub(crate) fn any_family_options() -> impl Strategy<Value = FamilyOptions> {
    let order = prop_oneof![Just(TimeOrder::NewestFirst), Just(TimeOrder::OldestFirst)];
    let numbers = (prop::option::of(0_u32..9), prop::option::of(0_u64..99));
    (numbers, prop::option::of(order), prop::option::of(any::<bool>())).prop_map(
        |((max_versions, ttl_s), time_order, counter)| match counter {
            Some(true) => FamilyOptions { ttl_s, counter, ..FamilyOptions::default() },
            _ => FamilyOptions { max_versions, ttl_s, time_order, counter },
        },
    )
}

pub(crate) fn any_group_options() -> impl Strategy<Value = GroupOptions> {
    let numbers = (prop::option::of(0_u32..9), prop::option::of(0_u32..99));
    let texts = (prop::option::of("zlib( --[a-z]{1,3})?"), prop::option::of("rows --[a-z]{1,3}"));
    (numbers, texts, prop::option::of(any::<bool>())).prop_map(
        |((replication, block_size), (compressor, bloom_filter), in_memory)| GroupOptions {
            replication,
            block_size,
            compressor,
            bloom_filter,
            in_memory,
        },
    )
}

pub(crate) fn any_definitions() -> impl Strategy<Value = TableDefinitions> {
    let family = (any_family_options(), 0_usize..4, any::<bool>(), any::<bool>());
    let group = (any_group_options(), any_family_options());
    let parts = (prop::collection::vec(family, 1..8), prop::collection::vec(group, 3));
    parts.prop_map(|(families, groups)| {
        let name = |i: usize| format!("{}{i}", ["a", "b_", "Index", "c d"][i % 4]);
        let mut out = TableDefinitions::default();
        for (i, (options, _, by_value, by_qualifier)) in families.iter().enumerate() {
            out.families.push(FamilyDefinition { name: name(i), options: options.clone() });
            let index = |of_qualifiers| IndexDefinition { family: name(i), of_qualifiers };
            out.indices.extend(by_value.then(|| index(false)));
            out.indices.extend(by_qualifier.then(|| index(true)));
            // A counter has no index, be it by its own word or by a default.
            if options.max_versions.is_none() && options.counter != Some(false) {
                out.indices.retain(|index| index.family != name(i));
            }
        }
        for (g, (options, family_defaults)) in groups.into_iter().enumerate() {
            let members = families.iter().enumerate().filter(|(_, f)| f.1 == g);
            out.groups.push(GroupDefinition {
                name: format!("g{g}"),
                families: members.map(|(i, _)| name(i)).collect(),
                options,
                family_defaults,
            });
        }
        out
    })
}

pub(crate) fn any_table_options() -> impl Strategy<Value = TableOptions> {
    (prop::option::of(1_u32..999), any_group_options(), any_family_options()).prop_map(
        |(group_commit_interval_ms, group, family)| TableOptions {
            group_commit_interval_ms,
            group,
            family,
        },
    )
}

proptest! {
    #[test]
    fn the_xml_of_a_schema_makes_the_same_schema(
        definitions in any_definitions(),
        options in any_table_options(),
    ) {
        let schema = TableSchema::create(&definitions, options).unwrap();
        let (read, options) = TableDefinitions::from_xml(&schema.describe(true)).unwrap();
        let again = TableSchema::create(&read, options).unwrap();
        prop_assert_eq!(again.describe(true), schema.describe(true));
        prop_assert_eq!(again.show_create("t"), schema.show_create("t"));
    }

    #[test]
    fn any_text_is_read_as_xml_without_panic(text in any::<String>(), tags in "[<>/a?!-]{0,40}") {
        let _ = TableDefinitions::from_xml(&text);
        let _ = TableDefinitions::from_xml(&tags);
    }

    #[test]
    fn a_schema_is_kept_as_json(definitions in any_definitions(), options in any_table_options()) {
        let schema = TableSchema::create(&definitions, options).unwrap();
        let json = serde_json::to_string(&schema).unwrap();
        prop_assert_eq!(serde_json::from_str::<TableSchema>(&json).unwrap(), schema);
    }
}
