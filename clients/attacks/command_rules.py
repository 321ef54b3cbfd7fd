"""Rules of what is no query, of what is heavy, and of words in no order."""

RULES = {
    # What is not a query; it leaves tables and settings as they are.
    "command": """
        EXPLAIN {query}
        EXPLAIN {query}
        EXPLAIN ANALYZE {core}
        EXPLAIN VERBOSE {core}
        EXPLAIN (FORMAT {format}) {core}
        EXPLAIN (ANALYZE {bool}, COSTS off, VERBOSE) {core}
        EXPLAIN DELETE FROM scratch WHERE k = {small}
        COPY ({query}) TO STDOUT
        COPY ({query}) TO STDOUT
        COPY ({core}) TO STDOUT WITH ({copied})
        COPY ({core}) TO STDOUT WITH ({copied}, {copied})
        COPY facts TO STDOUT WITH (FORMAT csv, HEADER)
        COPY facts ({columns}) TO STDOUT
        COPY scratch FROM 'nowhere.csv'
        SHOW {setting}
        SHOW ALL
        TABLE few
        SHOW {shown}
        DESCRIBE facts
        SELECT current_setting('{setting}')
        SELECT name, setting, unit FROM pg_settings WHERE name = {t}
        SELECT {list} FROM pg_catalog.{catalog} {tail}
        SELECT * FROM pg_catalog.{catalog} LIMIT 3
        SELECT * FROM information_schema.{schema} LIMIT 3
        SELECT * FROM system.{system} LIMIT 2
        SELECT count(*) FROM system.{system} WHERE {b}
        SELECT {pg}
        INSERT INTO nothing {query}
        DROP TABLE nothing
        ALTER TABLE few ADD COLUMN fk int
        ALTER TABLE few ALTER COLUMN ft TYPE {type}
        CREATE TABLE few (a {type}, b {type})
        CREATE TABLE nothing.x AS {query}
        CREATE TABLE bad (a {type} DEFAULT {e})
        CREATE VIEW few AS {query}
        CREATE OR REPLACE VIEW seen AS {query}
        DROP VIEW IF EXISTS seen; CREATE VIEW seen AS {query}; SELECT * FROM seen
        SELECT * FROM seen AS a, seen AS b LIMIT 3
        ALTER VIEW seen SET (security_invoker = {bool})
        SELECT set_config('{setting}', {t}, true)
        CREATE TEMP TABLE facts AS {query}; SELECT * FROM facts LIMIT 3; DROP TABLE pg_temp.facts
        CREATE TEMP TABLE IF NOT EXISTS passing (k bigint PRIMARY KEY, t text); INSERT INTO passing SELECT k, t FROM facts ON CONFLICT DO NOTHING
        CREATE OR REPLACE TEMP VIEW glimpse AS {query}; SELECT * FROM glimpse LIMIT 3
        SELECT * INTO TEMP taken FROM ({query}) AS q; DISCARD TEMP
        SELECT * FROM pg_temp_1.passing
        INSERT INTO passing (k, t) VALUES ({i}, {t}) ON CONFLICT (k) DO UPDATE SET t = {e} WHERE {b} RETURNING {e}
        INSERT INTO passing (k, t) VALUES ({i}, {t}), ({i}, {t}) ON CONFLICT (k) DO UPDATE SET t = excluded.t || {t} RETURNING *
        UPDATE passing SET t = {t} WHERE {b} RETURNING {e}, *
        DELETE FROM passing WHERE {b} RETURNING {e}
        DELETE FROM passing AS p USING ({query}) AS q WHERE {b} RETURNING p.k
        CREATE SCHEMA public
        GRANT SELECT ON few TO nobody
        DROP ROLE nobody
        TRUNCATE nothing
        USE nothing
        LISTEN x
        KILL QUERY {t}
        EXECUTE nothing ({e})
        FETCH {small} FROM nothing
        CALL nothing({e})
        VACUUM
        ANALYZE facts
        LOCK TABLE facts
        PREPARE x AS {query}; DEALLOCATE x
        {core}; {core}
        BEGIN; {core}; ROLLBACK
        ;
    """,
    "format": "json text tree pgjson xml",
    "bool": "on off true 1 maybe",
    "copied": """
        FORMAT csv
        FORMAT text
        FORMAT binary
        FORMAT tsv
        HEADER
        HEADER {bool}
        DELIMITER '|'
        DELIMITER {t}
        NULL 'x'
        QUOTE ''''
        ESCAPE '\\\\'
        FORCE_QUOTE *
        ENCODING 'latin1'
    """,
    "columns": """
        k
        k, t
        t, nothing
        a, ta, y
    """,
    "setting": """
        search_path
        statement_timeout
        TimeZone
        DateStyle
        application_name
        work_mem
        extra_float_digits
        short_path
        plan_templates
        result_reuse
        transaction_isolation
        datafusion.execution.batch_size
        datafusion.optimizer.max_passes
        datafusion.execution.target_partitions
        client_encoding
        server_version
        nothing
    """,
    "value": """
        {t}
        {i}
        {bool}
        DEFAULT
        public
        'UTC'
        'Europe/Berlin'
        'read committed'
        '1.5min'
        '8MB'
        ISO, DMY
        1
        8192
        ''
    """,
    "shown": """
        TABLES
        COLUMNS FROM facts
        FUNCTIONS
        SCHEMAS
        TIME ZONE
        CREATE TABLE facts
        server_version
    """,
    "catalog": "pg_class pg_attribute pg_type pg_namespace pg_database pg_proc pg_roles pg_index pg_tables pg_settings pg_am",
    "schema": "tables columns schemata views routines nothing",
    "system": "queries query_shapes totals executors pools cache tables stores ingest log maintenance refusals roles grants",
    "pg": """
        pg_backend_pid()
        pg_typeof({e})
        pg_get_userbyid({i})
        format_type({i}, {i})
        to_regclass({t})
        {t}::regclass
        pg_table_is_visible({i})
        has_table_privilege({t}, {t})
        obj_description({i})
        current_schemas({b})
        pg_size_pretty({i})
        col_description({i}, {i})
        pg_get_expr({t}, {i})
        array_upper(current_schemas(true), 1)
        set_config('application_name', {t}, {b})
    """,
    # Changes of a table that all sessions share.
    "change": """
        INSERT INTO scratch VALUES (1, 'a', '2015-01-05', 1.5)
        INSERT INTO scratch VALUES ({i}, {text}, NULL, {small})
        INSERT INTO scratch SELECT k, t, d, s FROM facts WHERE {b}
        INSERT INTO scratch (k, n) SELECT {i}, {n} FROM few, facts WHERE fk = k
        INSERT INTO scratch (k, t) VALUES ({small}, {t0}), (2, NULL)
        DELETE FROM scratch WHERE k = {small}
        DELETE FROM scratch s WHERE t IN (SELECT ft FROM few) OR s.n > {num0}
        DELETE FROM scratch WHERE EXISTS (SELECT 1 FROM few WHERE fk = scratch.k)
        UPDATE scratch SET t = upper(t), n = n + 1 WHERE k < 3
        UPDATE scratch SET n = {num0}, d = d + 1, t = {t0}
        UPDATE scratch SET k = (SELECT max(fk) FROM few) WHERE t LIKE 'a%'
        MERGE INTO scratch s USING few ON s.k = fk WHEN MATCHED THEN UPDATE SET t = ft, n = fn WHEN NOT MATCHED THEN INSERT (k, t) VALUES (fk, ft)
        MERGE INTO scratch s USING (SELECT DISTINCT fk FROM few) f ON s.k = f.fk WHEN MATCHED AND s.n > 1 THEN DELETE WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = {num0}
        TRUNCATE scratch
        INSERT OVERWRITE scratch SELECT k, t, d, 1 FROM facts
        {maintenance}
    """,
    "text": "'a' '' NULL 'Ünï'",
    "t0": "'a' NULL upper('x') 'b'||'c' repeat('x',100)",
    "num0": "1 0.5 -7 NULL 1e3 99999999999",
    "maintenance": """
        FLUSH TABLE scratch
        COMPACT TABLE scratch
        COMPACT TABLE scratch FULL
        EXPIRE SNAPSHOTS FROM scratch
        CACHE TABLE scratch
        PURGE CACHE
    """,
    # What stands after CREATE TABLE own.
    "table": """
        AS {query}
        AS {core}
        (x {type}, y {type})
        (x {inttype}, y text) PARTITIONED BY ({term}) ORDER BY ({term})
        (x {inttype} NOT NULL, y date) ORDER BY (y DESC) TBLPROPERTIES ('write.orc.compression-codec' = '{codec}')
        (x struct<p bigint, q text>, y map(text, bigint))
    """,
    "term": "x y bucket(4,x) truncate(2,y) year(y) day(y) nothing bucket(0,x)",
    "codec": "zstd zlib snappy lz4 none nothing",
    # Much work or much memory; refused, or ended by statement_timeout.
    "heavy": """
        SELECT repeat('x', 1000000000)
        SELECT lpad('x', 2000000000)
        SELECT array_repeat(1, 1000000000)
        SELECT range(0, 1000000000)
        SELECT length(repeat(repeat(t, 10000), 10000)) FROM facts
        SELECT string_agg(repeat('x', 1000000), ',') FROM visits
        SELECT count(*) FROM visits a, visits b, visits c
        SELECT array_agg(n) OVER (ORDER BY n) FROM generate_series(1, 100000) AS g (n) LIMIT 3
        SELECT string_agg(t, ',') OVER (ORDER BY q) FROM facts, generate_series(1, 100000) AS g (q) LIMIT 3
        SELECT {agg} OVER ({over}) FROM facts, generate_series(1, 10000) LIMIT 3
        SELECT * FROM generate_series(DATE '0001-01-01', DATE '9999-12-31', INTERVAL '1 second') AS g (n) LIMIT 3
        SELECT a.imps, sum(b.imps) OVER (PARTITION BY a.day ORDER BY b.day) FROM visits a, visits b LIMIT 5
        SELECT sum(n) FROM generate_series(1, 1000000000) AS g (n)
        SELECT n, count(*) FROM generate_series(1, 1000000000) AS g (n) GROUP BY n LIMIT 1
        SELECT n FROM generate_series(1, 1000000000) AS g (n) ORDER BY {n} LIMIT 1
        WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n FROM r) SELECT count(*) FROM r
        WITH RECURSIVE r (n) AS (SELECT 'x' UNION ALL SELECT n || n FROM r) SELECT max(length(n)) FROM r
        SELECT array_agg(a.imps) FROM visits a, visits b, visits c
        SELECT DISTINCT a.imps * b.imps * c.imps FROM visits a, visits b, visits c LIMIT 3
        SELECT * FROM visits a, visits b ORDER BY a.imps * b.imps, b.day LIMIT 1
        SELECT regexp_replace(repeat('a', 100000), '(a*)*b', 'c')
        SELECT count(*) FROM visits a JOIN visits b ON a.imps > b.imps WHERE a.imps * b.imps > {small}
    """,
    # Words in no order.
    "words": """
        {word} {word} {word}
        SELECT {word} {word} {word} {word} FROM {word} {word}
        SELECT {word} {e} {word} {e} FROM facts {word} {word} {e}
        {words} {words}
        {words} {words} {words}
    """,
    "word": "SELECT FROM WHERE ( ) [ ] , ; ' \" $$ $1 :: ARRAY CASE COPY EXPLAIN SET PREPARE x AS facts -- /* */ \\ é 0x1 1e999 GROUP BY "
    "ORDER UNION JOIN ON WITH INSERT INTO VALUES * . .. := => @ # ~ NULL NOT IN BETWEEN AND U&'x' E' b'1' {'a' }",
}  # fmt: skip
