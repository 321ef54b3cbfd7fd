import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.Date;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.SQLTimeoutException;
import java.sql.Statement;
import java.sql.Timestamp;
import java.sql.Types;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;

/**
 * Hive's JDBC driver against a server: connections of all kinds, metadata, prepared statements, types, errors, cancel.
 * Arguments: host and port. Prints the sum; exits with 1 if a check failed.
 */
public final class HiveJdbc {
    private interface Check {
        void run(Connection c) throws Exception;
    }

    private static final String ENDLESS =
        "SELECT count(*) FROM generate_series(1, 1000000000000) AS t(n) WHERE n % 7 = 8";

    private static int passed;
    private static int failed;
    private static String url;

    public static void main(String[] args) throws Exception {
        Class.forName("org.apache.hive.jdbc.HiveDriver");
        url = "jdbc:hive2://" + args[0] + ":" + args[1] + "/";
        try (Connection c = connect("default")) {
            update(c, "DROP TABLE IF EXISTS hive_types");
            update(c, "CREATE TABLE hive_types (id bigint NOT NULL, flag boolean, small smallint, n integer,"
                + " ratio double precision, single real, price decimal(12, 2), word text, code varchar(8), raw bytea,"
                + " day date, at timestamp, list bigint[]) PARTITIONED BY (day)");
        }
        check("all transports", HiveJdbc::transports);
        check("HiveQL", HiveJdbc::hiveql);
        check("databases", HiveJdbc::databases);
        check("metadata: the product", HiveJdbc::product);
        check("metadata: schemas, tables, types of tables", HiveJdbc::tables);
        check("metadata: columns", HiveJdbc::columns);
        check("metadata: types, functions, keys", HiveJdbc::others);
        check("queries and their metadata", HiveJdbc::queries);
        check("every type, and NULL in each", HiveJdbc::types);
        check("prepared statements keep their values", HiveJdbc::quotes);
        check("updates", HiveJdbc::updates);
        check("variables", HiveJdbc::variables);
        check("a large result", HiveJdbc::largeResult);
        check("errors", HiveJdbc::errors);
        check("cancel", HiveJdbc::cancel);
        check("timeouts", HiveJdbc::timeouts);
        check("the log of an operation", HiveJdbc::log);
        try (Connection c = connect("default")) {
            update(c, "DROP TABLE hive_types");
        }
        System.out.printf("%d passed, %d failed%n", passed, failed);
        System.exit(failed == 0 ? 0 : 1);
    }

    /** A connection in Stoa's SQL, which most checks are written in. */
    private static Connection connect(String rest) throws SQLException {
        String dialect = "?stoa.dialect=postgres";
        int at = rest.indexOf('?') >= 0 ? rest.indexOf('?') : rest.indexOf('#');
        String behind = at < 0 ? "" : rest.substring(at).replace('?', ';');
        String before = at < 0 ? rest : rest.substring(0, at);
        return DriverManager.getConnection(url + before + dialect + behind, "me", "any");
    }

    private static void check(String name, Check check) {
        try (Connection c = connect("default")) {
            check.run(c);
            passed++;
        } catch (Throwable error) {
            failed++;
            System.out.println("FAILED: " + name);
            error.printStackTrace(System.out);
        }
    }

    private static void update(Connection c, String sql) throws SQLException {
        try (Statement s = c.createStatement()) {
            s.execute(sql);
        }
    }

    private static Object one(Connection c, String sql) throws SQLException {
        try (Statement s = c.createStatement(); ResultSet r = s.executeQuery(sql)) {
            holds(r.next(), "no row: " + sql);
            return r.getObject(1);
        }
    }

    private static List<List<String>> rows(ResultSet r, String... columns) throws SQLException {
        List<List<String>> rows = new ArrayList<>();
        while (r.next()) {
            List<String> row = new ArrayList<>();
            for (String column : columns) {
                row.add(r.getString(column));
            }
            rows.add(row);
        }
        r.close();
        return rows;
    }

    private static void same(Object expected, Object found) {
        if (!Objects.equals(expected, found)) {
            throw new AssertionError("expected " + expected + ", found " + found);
        }
    }

    private static void holds(boolean condition, String what) {
        if (!condition) {
            throw new AssertionError(what);
        }
    }

    private static void transports(Connection ignored) throws SQLException {
        for (String kind : new String[] {
            "", ";auth=noSasl", ";transportMode=http;httpPath=cliservice"}) {
            try (Connection c = connect("default" + kind)) {
                same(1, one(c, "SELECT 1::integer"));
                holds(c.isValid(5), kind);
            }
        }
        try (Connection c = DriverManager.getConnection(url)) {
            same(1, one(c, "SELECT 1"));
        }
    }

    private static void hiveql(Connection ignored) throws SQLException {
        try (Connection c = DriverManager.getConnection(url + "default", "me", "any")) {
            update(c, "CREATE TABLE IF NOT EXISTS hiveql_jdbc (id INT, name STRING, price DECIMAL(9,2)) STORED AS ORC");
            update(c, "INSERT OVERWRITE TABLE hiveql_jdbc VALUES (1, 'it\\'s', 1.50), (2, \"b\", NULL)");
            String sql = "SELECT name, id / 2, price FROM hiveql_jdbc WHERE name = ?";
            try (PreparedStatement s = c.prepareStatement(sql)) {
                s.setString(1, "it's");
                try (ResultSet r = s.executeQuery()) {
                    holds(r.next(), "a row");
                    same("it's", r.getString(1));
                    same(0.5, r.getDouble(2));
                    same("_c1", r.getMetaData().getColumnName(2));
                    same("double", r.getMetaData().getColumnTypeName(2));
                }
            }
            try (ResultSet r = c.createStatement().executeQuery("SHOW COLUMNS IN hiveql_jdbc")) {
                same("field", r.getMetaData().getColumnName(1));
            }
            update(c, "SET hivevar:x=id");
            same(3L, one(c, "SELECT sum(${x}) FROM hiveql_jdbc"));
            update(c, "DROP TABLE hiveql_jdbc");
        }
    }

    private static void databases(Connection c) throws SQLException {
        same("default", c.getSchema());
        update(c, "CREATE SCHEMA IF NOT EXISTS hive_db");
        update(c, "USE `hive_db`");
        same("hive_db", c.getSchema());
        update(c, "CREATE TABLE t (a bigint)");
        try (Connection other = connect("hive_db")) {
            same(0L, one(other, "SELECT count(*) FROM t"));
        }
        update(c, "DROP TABLE `hive_db`.`t`");
        update(c, "USE default");
        update(c, "DROP SCHEMA hive_db");
        try (Connection other = connect("nowhere")) {
            throw new AssertionError("a database that is not there");
        } catch (SQLException expected) {
            holds(expected.getMessage().contains("nowhere"), expected.getMessage());
        }
    }

    private static void product(Connection c) throws SQLException {
        DatabaseMetaData m = c.getMetaData();
        same("Apache Hive", m.getDatabaseProductName());
        holds(m.getDatabaseProductVersion().contains("stoa"), m.getDatabaseProductVersion());
        same(4, m.getDatabaseMajorVersion());
        holds(m.getSQLKeywords() != null, "no keywords");
    }

    private static void tables(Connection c) throws SQLException {
        update(c, "DROP VIEW IF EXISTS hive_view");
        update(c, "CREATE VIEW hive_view AS SELECT id, word FROM hive_types");
        DatabaseMetaData m = c.getMetaData();
        holds(rows(m.getSchemas(), "TABLE_SCHEM").contains(List.of("default")), "no schema default");
        same(0, rows(m.getCatalogs(), "TABLE_CAT").size());
        same(List.of(List.of("TABLE"), List.of("VIEW")), rows(m.getTableTypes(), "TABLE_TYPE"));
        String[] wanted = {"TABLE_SCHEM", "TABLE_NAME", "TABLE_TYPE"};
        same(List.of(List.of("default", "hive_types", "TABLE"), List.of("default", "hive_view", "VIEW")),
            rows(m.getTables(null, "default", "hive\\_%", null), wanted));
        same(List.of(List.of("default", "hive_view", "VIEW")),
            rows(m.getTables(null, "%", "hive%", new String[] {"VIEW"}), wanted));
        same(0, rows(m.getTables(null, "nowhere", "%", null), wanted).size());
        update(c, "DROP VIEW hive_view");
    }

    private static void columns(Connection c) throws SQLException {
        String[] wanted = {"COLUMN_NAME", "DATA_TYPE", "TYPE_NAME", "COLUMN_SIZE", "DECIMAL_DIGITS", "IS_NULLABLE",
            "ORDINAL_POSITION"};
        List<List<String>> all = rows(c.getMetaData().getColumns(null, "default", "hive_types", "%"), wanted);
        same(13, all.size());
        same(Arrays.asList("id", "-5", "BIGINT", "19", "0", "NO", "1"), all.get(0));
        same(Arrays.asList("price", "3", "DECIMAL(12,2)", "12", "2", "YES", "7"), all.get(6));
        same(Arrays.asList("code", "12", "VARCHAR(8)", "8", null, "YES", "9"), all.get(8));
        same("ARRAY<BIGINT>", all.get(12).get(2));
    }

    private static void others(Connection c) throws SQLException {
        DatabaseMetaData m = c.getMetaData();
        List<List<String>> types = rows(m.getTypeInfo(), "TYPE_NAME", "DATA_TYPE");
        holds(types.contains(List.of("BIGINT", "-5")) && types.contains(List.of("STRING", "12")), types.toString());
        List<List<String>> functions = rows(m.getFunctions(null, null, "upper"), "FUNCTION_NAME");
        same(List.of(List.of("upper")), functions);
        same(0, rows(m.getPrimaryKeys(null, "default", "hive_types"), "COLUMN_NAME").size());
    }

    private static void queries(Connection c) throws SQLException {
        try (Statement s = c.createStatement();
             ResultSet r = s.executeQuery("SELECT n, n * 1.5 AS `more`, 'x' AS word FROM generate_series(1, 3) AS t(n)")) {
            ResultSetMetaData m = r.getMetaData();
            same(3, m.getColumnCount());
            same("more", m.getColumnName(2));
            same(Types.DECIMAL, m.getColumnType(2));
            same(Types.VARCHAR, m.getColumnType(3));
            int sum = 0;
            while (r.next()) {
                sum += r.getInt("n");
                same("x", r.getString(3));
            }
            same(6, sum);
        }
    }

    private static void types(Connection c) throws SQLException {
        update(c, "INSERT INTO hive_types VALUES (1, true, -7, 70000, 0.1, 1.1, -12.50, 'größer \"x\"', 'ab',"
            + " decode('00ff', 'hex'), '2024-02-29', '2024-02-29 23:59:59.123456', ARRAY[1, NULL, 3])");
        update(c, "INSERT INTO hive_types (id) VALUES (2)");
        try (Statement s = c.createStatement();
             ResultSet r = s.executeQuery("SELECT * FROM hive_types ORDER BY id")) {
            holds(r.next(), "no row");
            same(1L, r.getObject("id"));
            same(true, r.getObject("flag"));
            // Stored as an integer of four bytes, and told so.
            same(-7, r.getInt("small"));
            same(70000, r.getObject("n"));
            same(0.1, r.getObject("ratio"));
            same(1.1, r.getDouble("single"));
            same(new BigDecimal("-12.50"), r.getBigDecimal("price"));
            same("größer \"x\"", r.getString("word"));
            same("ab", r.getString("code"));
            holds(Arrays.equals(new byte[] {0, -1}, (byte[]) r.getObject("raw")), "the bytes");
            same(Date.valueOf("2024-02-29"), r.getDate("day"));
            same(Timestamp.valueOf("2024-02-29 23:59:59.123456"), r.getTimestamp("at"));
            same("[1,null,3]", r.getString("list"));
            holds(r.next(), "no second row");
            for (int column = 2; column <= 13; column++) {
                same(null, r.getObject(column));
                holds(r.wasNull(), "column " + column);
            }
            holds(!r.next(), "a third row");
        }
    }

    private static void quotes(Connection c) throws SQLException {
        String[] values = {"it's", "' OR 1=1 --", "a\nb", "\"double\"", "`back`", "?", "ä€😀", "", "a\\b", "\\' OR 1=1 --"};
        try (PreparedStatement s = c.prepareStatement("SELECT ?, length(?)")) {
            for (String value : values) {
                // The driver escapes quotes, and leaves backslashes to its user.
                s.setString(1, value.replace("\\", "\\\\"));
                s.setString(2, value.replace("\\", "\\\\"));
                try (ResultSet r = s.executeQuery()) {
                    holds(r.next(), value);
                    same(value, r.getString(1));
                    same((long) value.codePointCount(0, value.length()), r.getLong(2));
                }
            }
        }
        try (PreparedStatement s = c.prepareStatement("SELECT ?::bigint + 1, ?::date, ?::boolean")) {
            s.setLong(1, 41);
            s.setDate(2, Date.valueOf("2024-01-02"));
            s.setBoolean(3, true);
            try (ResultSet r = s.executeQuery()) {
                holds(r.next(), "no row");
                same(42L, r.getLong(1));
                same(Date.valueOf("2024-01-02"), r.getDate(2));
                same(true, r.getBoolean(3));
            }
        }
    }

    private static void updates(Connection c) throws SQLException {
        update(c, "DELETE FROM hive_types WHERE id >= 10");
        update(c, "INSERT INTO `default`.`hive_types` (id, word) SELECT n, 'n' FROM generate_series(10, 19) AS t(n)");
        update(c, "UPDATE hive_types SET word = 'm' WHERE id > 14");
        same(5L, one(c, "SELECT count(*) FROM hive_types WHERE word = 'm'"));
        update(c, "DELETE FROM hive_types WHERE id >= 10");
    }

    private static void variables(Connection ignored) throws SQLException {
        try (Connection c = connect("default?hive.x=1#y=2")) {
            same("hive.x=1", one(c, "SET hive.x"));
            same("hivevar:y=2", one(c, "SET hivevar:y"));
            update(c, "SET hive.exec.parallel=true");
            same("hive.exec.parallel=true", one(c, "set hiveconf:hive.exec.parallel").toString().replace("hiveconf:", ""));
            update(c, "SET statement_timeout = 5000");
            same("5s", one(c, "SHOW statement_timeout"));
        }
    }

    private static void largeResult(Connection c) throws SQLException {
        long sum = 0;
        try (Statement s = c.createStatement()) {
            s.setFetchSize(5000);
            try (ResultSet r = s.executeQuery("SELECT n, 'row ' || n FROM generate_series(1, 300000) AS t(n)")) {
                while (r.next()) {
                    sum += r.getLong(1);
                }
            }
        }
        same(300_000L * 300_001 / 2, sum);
    }

    private static void errors(Connection c) throws SQLException {
        for (Object[] wrong : new Object[][] {
            {"SELECT * FROM nowhere", "42S02", 10001}, {"SELEC 1", "42000", 40000},
            {"SELECT nothing FROM hive_types", "42000", 10004}, {"USE nowhere", "42000", 10072},
            {"SELECT 1 / (n - 3) FROM generate_series(1, 5) AS t(n)", "22012", 1},
            {"BEGIN", "42000", 40000}, {"SELECT 1; SELECT 2", "42000", 40000}}) {
            try {
                update(c, (String) wrong[0]);
                throw new AssertionError("no error: " + wrong[0]);
            } catch (SQLException error) {
                same(wrong[1], error.getSQLState());
                same(wrong[2], error.getErrorCode());
            }
        }
        same(1, one(c, "SELECT 1::integer"));
    }

    private static void cancel(Connection c) throws Exception {
        try (Statement s = c.createStatement()) {
            Exception[] ended = {null};
            Thread asking = new Thread(() -> {
                try (ResultSet r = s.executeQuery(ENDLESS)) {
                    r.next();
                } catch (Exception error) {
                    ended[0] = error;
                }
            });
            asking.start();
            // The driver of Hive 4 cancels once, whether there is anything to cancel or not.
            running(1);
            s.cancel();
            asking.join(60_000);
            holds(!asking.isAlive(), "the query goes on");
            holds(ended[0] != null, "the query has ended");
        }
        running(0);
    }

    private static void timeouts(Connection c) throws SQLException {
        try (Statement s = c.createStatement()) {
            s.setQueryTimeout(1);
            s.executeQuery(ENDLESS).next();
            throw new AssertionError("the query ended");
        } catch (SQLTimeoutException expected) {
            holds(expected.getMessage().contains("1 second"), expected.getMessage());
        }
        running(0);
    }

    /** Waits until so many endless queries run: the registry is asked. */
    private static void running(long count) throws SQLException {
        String running = "SELECT count(*) FROM system.queries WHERE protocol = 'hive' AND state = 'running'"
            + " AND sql LIKE '%1000000000000%' AND sql NOT LIKE '%system.queries%'";
        long deadline = System.nanoTime() + 60_000_000_000L;
        try (Connection c = connect("default")) {
            while (!Objects.equals(count, one(c, running))) {
                holds(System.nanoTime() < deadline, "not " + count + " queries run");
            }
        }
    }

    private static void log(Connection c) throws Exception {
        try (org.apache.hive.jdbc.HiveStatement s = (org.apache.hive.jdbc.HiveStatement) c.createStatement()) {
            s.executeQuery("SELECT 1").next();
            String all = String.join("\n", s.getQueryLog(false, 100));
            holds(all.contains("SELECT 1") && all.contains("Completed"), all);
            holds(s.getQueryLog(true, 100).isEmpty(), "lines come again");
        }
    }
}
