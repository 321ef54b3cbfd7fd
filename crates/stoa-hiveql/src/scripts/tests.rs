use crate::{Options, translate};

fn check(hive: &str, stoa: &str) {
    let found =
        translate(hive, Options::default()).unwrap_or_else(|error| panic!("{hive}: {error}"));
    assert_eq!(found, stoa, "{hive}");
}

fn refused(hive: &str, sqlstate: &str) {
    let error = translate(hive, Options::default()).unwrap_err();
    assert_eq!(error.sqlstate(), sqlstate, "{hive}: {error}");
}

#[test]
fn a_script_is_a_table_of_its_rows() {
    check(
        "SELECT TRANSFORM (id, upper(word)) USING 'cat' AS (id INT, word) FROM w WHERE id > 1",
        "SELECT hive_field_int(\"c0\") AS \"id\", \"c1\" AS \"word\" FROM hive_transform('cat', \
         'columns=2 input=9:5C4E output=9:5C4E', (SELECT id AS \"a0\", hive_upper(word) AS \"a1\" FROM w WHERE id > 1)) AS script",
    );
    check(
        "FROM w MAP * USING 'cat'",
        "SELECT \"c0\" AS \"key\", \"c1\" AS \"value\" FROM hive_transform('cat', \
         'columns=2 input=9:5C4E output=9:5C4E rest', (SELECT * FROM w)) AS script",
    );
    check(
        "SELECT TRANSFORM (a) ROW FORMAT DELIMITED FIELDS TERMINATED BY ',' ESCAPED BY '\\\\' USING 'it\\'s' AS a, b \
         ROW FORMAT DELIMITED NULL DEFINED AS '' FROM w SORT BY b DESC LIMIT 3",
        "SELECT \"c0\" AS \"a\", \"c1\" AS \"b\" FROM hive_transform('it''s', \
         'columns=2 input=44:5C4E:92 output=1:', (SELECT a AS \"a0\" FROM w)) AS script ORDER BY b DESC NULLS LAST LIMIT 3",
    );
}

#[test]
fn rows_are_distributed_as_the_query_says() {
    check(
        "FROM (FROM w MAP id, word USING 'm' AS (k INT, v) CLUSTER BY k) m REDUCE m.k, m.v USING 'r' AS (k, n)",
        "SELECT \"c0\" AS \"k\", \"c1\" AS \"n\" FROM hive_transform('r', \
         'columns=2 input=9:5C4E output=9:5C4E distribute=1 sort=af', (SELECT m.k AS \"a0\", m.v AS \"a1\", m.k AS \"a2\", \
         m.k AS \"a3\" FROM (SELECT hive_field_int(\"c0\") AS \"k\", \"c1\" AS \"v\" FROM hive_transform('m', \
         'columns=2 input=9:5C4E output=9:5C4E', (SELECT id AS \"a0\", word AS \"a1\" FROM w)) AS script) AS m)) AS script",
    );
    check(
        "SELECT TRANSFORM (x.a) USING 'r' FROM (SELECT a, b % 2 AS p FROM t DISTRIBUTE BY b % 2 SORT BY t.a DESC, p) x",
        "SELECT \"c0\" AS \"key\", \"c1\" AS \"value\" FROM hive_transform('r', \
         'columns=2 input=9:5C4E output=9:5C4E rest distribute=1 sort=dl,af', (SELECT x.a AS \"a0\", x.p AS \"a1\", \
         x.a AS \"a2\", x.p AS \"a3\" FROM (SELECT a, hive_mod(b, 2) AS p FROM t) AS x)) AS script",
    );
    refused("SELECT TRANSFORM (a) USING 'r' FROM (SELECT a FROM t DISTRIBUTE BY b) x", "0A000");
}

#[test]
fn what_is_no_script_is_refused() {
    for hive in [
        "SELECT TRANSFORM (a) AS x FROM t",
        "SELECT TRANSFORM (a), b USING 'cat' FROM t",
        "SELECT TRANSFORM () USING 'cat' FROM t",
        "SELECT TRANSFORM (a) USING 'cat' AS () FROM t",
        "SELECT TRANSFORM (a) ROW FORMAT DELIMITED FIELDS TERMINATED BY '\\n' USING 'cat' FROM t",
        "SELECT TRANSFORM (a) ROW FORMAT DELIMITED FIELDS TERMINATED BY 'ab' USING 'cat' FROM t",
    ] {
        refused(hive, "42601");
    }
    for hive in [
        "SELECT TRANSFORM (a) ROW FORMAT SERDE 'x.OpenCSVSerde' USING 'cat' FROM t",
        "SELECT TRANSFORM (a) USING 'cat' RECORDREADER 'x.BinaryRecordReader' FROM t",
    ] {
        refused(hive, "0A000");
    }
    // Columns of these names are columns.
    check("SELECT map, reduce FROM t WHERE map = 1", "SELECT map, reduce FROM t WHERE map = 1");
}
