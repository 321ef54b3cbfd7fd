import java.math.BigDecimal;
import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.Date;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.ResultSetMetaData;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Timestamp;
import java.sql.Types;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Properties;

/**
 * The PostgreSQL JDBC driver against a server: metadata, prepared statements, types, NULLs, fetch
 * sizes, COPY, cancel. Arguments: host and port. Prints the sum; exits with 1 if a check failed.
 */
public final class JdbcCheck {
    private interface Check {
        void run(Connection c) throws Exception;
    }

    private static int passed;
    private static int failed;
    private static String url;

    public static void main(String[] args) throws Exception {
        url = "jdbc:postgresql://" + args[0] + ":" + args[1] + "/stoa";
        check("connects", JdbcCheck::connects);
        check("metadata: catalogs, schemas, tables", JdbcCheck::tables);
        check("metadata: columns", JdbcCheck::columns);
        check("metadata: keys and indexes", JdbcCheck::keys);
        check("metadata: types", JdbcCheck::typeInfo);
        check("metadata: functions, procedures, privileges", JdbcCheck::otherMetadata);
        check("types through prepared statements", c -> types(c, 0));
        check("types, server-prepared and binary", c -> types(c, 1));
        check("NULLs of every type", JdbcCheck::nulls);
        check("metadata of a result", JdbcCheck::resultMetadata);
        check("fetch size", JdbcCheck::fetchSize);
        check("batches", JdbcCheck::batches);
        check("arrays", JdbcCheck::arrays);
        check("COPY", JdbcCheck::copy);
        check("errors", JdbcCheck::errors);
        check("transactions and savepoints", JdbcCheck::transactions);
        check("cancel and query timeout", JdbcCheck::timeouts);
        check("simple query mode", JdbcCheck::simpleMode);
        System.out.printf("%d passed, %d failed%n", passed, failed);
        System.exit(failed == 0 ? 0 : 1);
    }

    private static Connection connect(String... more) throws SQLException {
        Properties p = new Properties();
        p.setProperty("user", "stoa");
        p.setProperty("loginTimeout", "10");
        for (int i = 0; i < more.length; i += 2) {
            p.setProperty(more[i], more[i + 1]);
        }
        return DriverManager.getConnection(url, p);
    }

    private static void check(String name, Check check) {
        try (Connection c = connect()) {
            check.run(c);
            passed++;
        } catch (Throwable error) {
            failed++;
            System.out.println("FAILED " + name + ": " + error);
            for (StackTraceElement frame : error.getStackTrace()) {
                if (frame.getClassName().startsWith("JdbcCheck")) {
                    System.out.println("    at line " + frame.getLineNumber());
                }
            }
        }
    }

    private static void same(Object expected, Object actual) {
        if (!Objects.deepEquals(expected, actual)) {
            throw new AssertionError("expected " + show(expected) + " but got " + show(actual));
        }
    }

    private static String show(Object o) {
        return o instanceof byte[] b ? Arrays.toString(b) : String.valueOf(o);
    }

    private static void execute(Connection c, String... statements) throws SQLException {
        try (Statement s = c.createStatement()) {
            for (String sql : statements) {
                s.execute(sql);
            }
        }
    }

    private static Object one(Connection c, String sql) throws SQLException {
        try (Statement s = c.createStatement(); ResultSet r = s.executeQuery(sql)) {
            r.next();
            return r.getObject(1);
        }
    }

    /** One column of all rows. */
    private static List<String> column(ResultSet r, String name) throws SQLException {
        List<String> values = new ArrayList<>();
        try (r) {
            while (r.next()) {
                values.add(r.getString(name));
            }
        }
        return values;
    }

    private static void connects(Connection c) throws SQLException {
        DatabaseMetaData m = c.getMetaData();
        same("PostgreSQL", m.getDatabaseProductName());
        same(16, m.getDatabaseMajorVersion());
        same(true, c.isValid(5));
        same("stoa", c.getCatalog());
        same("public", c.getSchema());
        c.setSchema("public");
        same("public", c.getSchema());
        c.setReadOnly(true);
        same(1, one(c, "SELECT 1"));
    }

    private static void tables(Connection c) throws SQLException {
        execute(c, "DROP TABLE IF EXISTS jdbc_tables", "CREATE TABLE jdbc_tables (a INT)");
        DatabaseMetaData m = c.getMetaData();
        same(List.of("stoa"), column(m.getCatalogs(), "TABLE_CAT"));
        List<String> schemas = column(m.getSchemas(), "TABLE_SCHEM");
        same(true, schemas.contains("public") && schemas.contains("pg_catalog"));
        same(true, column(m.getTableTypes(), "TABLE_TYPE").contains("TABLE"));
        try (ResultSet r = m.getTables(null, "public", "jdbc\\_tab%", new String[] {"TABLE"})) {
            same(true, r.next());
            same("jdbc_tables", r.getString("TABLE_NAME"));
            same("public", r.getString("TABLE_SCHEM"));
            same("TABLE", r.getString("TABLE_TYPE"));
            same(false, r.next());
        }
        same(true, column(m.getTables(null, null, "%", null), "TABLE_NAME").contains("jdbc_tables"));
        execute(c, "DROP TABLE jdbc_tables");
    }

    private static void columns(Connection c) throws SQLException {
        execute(c, "DROP TABLE IF EXISTS jdbc_columns",
            "CREATE TABLE jdbc_columns (id BIGINT NOT NULL, name TEXT, price DECIMAL(10, 2), "
                + "d DATE, ts TIMESTAMP, tz TIMESTAMPTZ, ok BOOLEAN, f DOUBLE PRECISION)");
        int[] expected = {Types.BIGINT, Types.VARCHAR, Types.NUMERIC, Types.DATE, Types.TIMESTAMP,
            Types.TIMESTAMP, Types.BIT, Types.DOUBLE};
        String[] names = {"int8", "text", "numeric", "date", "timestamp", "timestamptz", "bool",
            "float8"};
        try (ResultSet r = c.getMetaData().getColumns(null, "public", "jdbc_columns", "%")) {
            for (int i = 0; i < expected.length; i++) {
                same(true, r.next());
                same(i + 1, r.getInt("ORDINAL_POSITION"));
                same(expected[i], r.getInt("DATA_TYPE"));
                same(names[i], r.getString("TYPE_NAME"));
                same(i == 0 ? "NO" : "YES", r.getString("IS_NULLABLE"));
                if (i == 2) {
                    same(10, r.getInt("COLUMN_SIZE"));
                    same(2, r.getInt("DECIMAL_DIGITS"));
                }
            }
            same(false, r.next());
        }
        execute(c, "DROP TABLE jdbc_columns");
    }

    private static void keys(Connection c) throws SQLException {
        execute(c, "DROP TABLE IF EXISTS jdbc_keys", "CREATE TABLE jdbc_keys (a INT)");
        DatabaseMetaData m = c.getMetaData();
        same(List.of(), column(m.getPrimaryKeys(null, "public", "jdbc_keys"), "PK_NAME"));
        same(List.of(), column(m.getImportedKeys(null, "public", "jdbc_keys"), "FK_NAME"));
        same(List.of(), column(m.getExportedKeys(null, "public", "jdbc_keys"), "FK_NAME"));
        same(List.of(), column(m.getIndexInfo(null, "public", "jdbc_keys", false, true), "INDEX_NAME"));
        m.getBestRowIdentifier(null, "public", "jdbc_keys", DatabaseMetaData.bestRowSession, true).close();
        m.getVersionColumns(null, "public", "jdbc_keys").close();
        execute(c, "CREATE TABLE jdbc_keyed (a INT NOT NULL, b INT NOT NULL, PRIMARY KEY (a, b))");
        same(List.of("a", "b"), column(m.getPrimaryKeys(null, "public", "jdbc_keyed"), "COLUMN_NAME"));
        same(List.of("jdbc_keyed_pkey"), column(m.getPrimaryKeys(null, "public", "jdbc_keyed"), "PK_NAME").stream().distinct().toList());
        execute(c, "DROP TABLE jdbc_keys", "DROP TABLE jdbc_keyed");
    }

    private static void typeInfo(Connection c) throws SQLException {
        List<String> names = column(c.getMetaData().getTypeInfo(), "TYPE_NAME");
        for (String name : List.of("int4", "int8", "text", "numeric", "timestamptz", "bool")) {
            same(true, names.contains(name));
        }
    }

    private static void otherMetadata(Connection c) throws SQLException {
        DatabaseMetaData m = c.getMetaData();
        m.getFunctions(null, "public", "%").close();
        m.getProcedures(null, "public", "%").close();
        m.getTablePrivileges(null, "public", "%").close();
        m.getColumnPrivileges(null, "public", "none", "%").close();
        m.getUDTs(null, "public", "%", null).close();
        m.getClientInfoProperties().close();
        same(true, m.getSQLKeywords().length() > 0);
        same(true, m.getMaxColumnNameLength() > 0);
        m.getNumericFunctions();
    }

    private static final String COLUMNS =
        "i INT, l BIGINT, r REAL, f DOUBLE PRECISION, n DECIMAL(20, 4), s TEXT, ok BOOLEAN, d DATE, "
            + "ts TIMESTAMP, tz TIMESTAMPTZ, b BYTEA";

    private static void types(Connection ignored, int prepareThreshold) throws SQLException {
        String threshold = prepareThreshold == 0 ? "5" : "1";
        String forced = prepareThreshold == 0 ? "false" : "true";
        try (Connection c = connect("prepareThreshold", threshold, "binaryTransfer", forced)) {
            execute(c, "DROP TABLE IF EXISTS jdbc_types", "CREATE TABLE jdbc_types (" + COLUMNS + ")");
            LocalDateTime local = LocalDateTime.parse("2024-02-29T12:34:56.789012");
            OffsetDateTime instant = OffsetDateTime.parse("2024-02-29T12:34:56.789012Z");
            byte[] bytes = {0, 1, -1, 92, 39};
            try (PreparedStatement p =
                c.prepareStatement("INSERT INTO jdbc_types VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")) {
                for (int round = 0; round < 3; round++) {
                    p.setInt(1, -7 - round);
                    p.setLong(2, Long.MAX_VALUE);
                    p.setFloat(3, 1.5f);
                    p.setDouble(4, 0.1);
                    p.setBigDecimal(5, new BigDecimal("-12345.6789"));
                    p.setString(6, "ä'\"\\€");
                    p.setBoolean(7, true);
                    p.setDate(8, Date.valueOf("2024-02-29"));
                    p.setTimestamp(9, Timestamp.valueOf(local));
                    p.setObject(10, instant);
                    p.setBytes(11, bytes);
                    same(1, p.executeUpdate());
                }
            }
            try (PreparedStatement p = c.prepareStatement("SELECT * FROM jdbc_types WHERE i = ?")) {
                for (int round = 0; round < 3; round++) {
                    p.setInt(1, -7 - round);
                    try (ResultSet r = p.executeQuery()) {
                        same(true, r.next());
                        same(-7 - round, r.getInt(1));
                        same(Long.MAX_VALUE, r.getLong(2));
                        same(1.5f, r.getFloat(3));
                        same(0.1, r.getDouble(4));
                        same(new BigDecimal("-12345.6789"), r.getBigDecimal(5));
                        same("ä'\"\\€", r.getString(6));
                        same(true, r.getBoolean(7));
                        same(LocalDate.of(2024, 2, 29), r.getObject(8, LocalDate.class));
                        same(local, r.getObject(9, LocalDateTime.class));
                        same(instant.toInstant(), r.getObject(10, OffsetDateTime.class).toInstant());
                        same(bytes, r.getBytes(11));
                        same(false, r.next());
                    }
                }
            }
            execute(c, "DROP TABLE jdbc_types");
        }
    }

    private static void nulls(Connection c) throws SQLException {
        execute(c, "DROP TABLE IF EXISTS jdbc_nulls", "CREATE TABLE jdbc_nulls (" + COLUMNS + ")");
        int[] sqlTypes = {Types.INTEGER, Types.BIGINT, Types.REAL, Types.DOUBLE, Types.NUMERIC,
            Types.VARCHAR, Types.BOOLEAN, Types.DATE, Types.TIMESTAMP, Types.TIMESTAMP_WITH_TIMEZONE,
            Types.BINARY};
        try (PreparedStatement p =
            c.prepareStatement("INSERT INTO jdbc_nulls VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")) {
            for (int i = 0; i < sqlTypes.length; i++) {
                p.setNull(i + 1, sqlTypes[i]);
            }
            same(1, p.executeUpdate());
        }
        try (Statement s = c.createStatement(); ResultSet r = s.executeQuery("SELECT * FROM jdbc_nulls")) {
            same(true, r.next());
            for (int i = 0; i < sqlTypes.length; i++) {
                same(null, r.getObject(i + 1));
                same(true, r.wasNull());
            }
        }
        execute(c, "DROP TABLE jdbc_nulls");
    }

    private static void resultMetadata(Connection c) throws SQLException {
        String sql = "SELECT CAST(1 AS DECIMAL(10, 2)) AS n, 'x' AS s, CAST(? AS BIGINT) AS l";
        try (PreparedStatement p = c.prepareStatement(sql)) {
            ResultSetMetaData m = p.getMetaData();
            same(3, m.getColumnCount());
            same("n", m.getColumnLabel(1));
            same(Types.NUMERIC, m.getColumnType(1));
            same(10, m.getPrecision(1));
            same(2, m.getScale(1));
            same(Types.VARCHAR, m.getColumnType(2));
            same(Types.BIGINT, m.getColumnType(3));
            same(1, p.getParameterMetaData().getParameterCount());
            same(Types.BIGINT, p.getParameterMetaData().getParameterType(1));
        }
    }

    private static void fetchSize(Connection c) throws SQLException {
        c.setAutoCommit(false);
        String sql = "SELECT value FROM generate_series(1, 9999) AS s(value) ORDER BY value LIMIT ?";
        try (PreparedStatement p = c.prepareStatement(sql)) {
            p.setFetchSize(100);
            p.setLong(1, 1000);
            long sum = 0;
            try (ResultSet r = p.executeQuery()) {
                while (r.next()) {
                    sum += r.getLong(1);
                }
            }
            same(500500L, sum);
            try (ResultSet r = p.executeQuery()) {
                same(true, r.next());
            }
        }
        c.commit();
    }

    private static void batches(Connection c) throws SQLException {
        execute(c, "DROP TABLE IF EXISTS jdbc_batch", "CREATE TABLE jdbc_batch (i INT, s TEXT)");
        try (PreparedStatement p = c.prepareStatement("INSERT INTO jdbc_batch VALUES (?, ?)")) {
            for (int i = 0; i < 10; i++) {
                p.setInt(1, i);
                p.setString(2, "s" + i);
                p.addBatch();
            }
            same(10, p.executeBatch().length);
        }
        same(10L, one(c, "SELECT count(*) FROM jdbc_batch"));
        execute(c, "DROP TABLE jdbc_batch");
    }

    private static void arrays(Connection c) throws SQLException {
        Integer[] numbers = (Integer[]) ((java.sql.Array) one(c, "SELECT ARRAY[1, 2, NULL]")).getArray();
        same(Arrays.asList(1, 2, null), Arrays.asList(numbers));
        try (PreparedStatement p =
            c.prepareStatement("SELECT count(*) FROM generate_series(1, 10) AS s(value) WHERE value = ANY(?)")) {
            p.setArray(1, c.createArrayOf("int8", new Long[] {3L, 5L, 99L}));
            try (ResultSet r = p.executeQuery()) {
                r.next();
                same(2L, r.getLong(1));
            }
        }
    }

    private static void copy(Connection c) throws Exception {
        execute(c, "DROP TABLE IF EXISTS jdbc_copy", "CREATE TABLE jdbc_copy (i INT, s TEXT)");
        var copies = c.unwrap(org.postgresql.PGConnection.class).getCopyAPI();
        same(2L, copies.copyIn("COPY jdbc_copy FROM STDIN WITH (FORMAT csv)",
            new java.io.StringReader("1,one\n2,\"t,wo\"\n")));
        var out = new java.io.StringWriter();
        same(2L, copies.copyOut("COPY (SELECT * FROM jdbc_copy ORDER BY i) TO STDOUT", out));
        same("1\tone\n2\tt,wo\n", out.toString());
        execute(c, "DROP TABLE jdbc_copy");
    }

    private static void errors(Connection c) throws SQLException {
        try {
            one(c, "SELECT * FROM nothing");
            throw new AssertionError("no error");
        } catch (SQLException error) {
            same("42P01", error.getSQLState());
        }
        same(1, one(c, "SELECT 1"));
        try (PreparedStatement p = c.prepareStatement("SELECT CAST(? AS INT)")) {
            p.setString(1, "x");
            p.executeQuery();
            throw new AssertionError("no error");
        } catch (SQLException error) {
            same("22P02", error.getSQLState());
        }
        same(2, one(c, "SELECT 2"));
    }

    private static void transactions(Connection c) throws SQLException {
        c.setAutoCommit(false);
        same(1, one(c, "SELECT 1"));
        var savepoint = c.setSavepoint("here");
        try {
            one(c, "SELECT * FROM nothing");
        } catch (SQLException expected) {
            c.rollback(savepoint);
        }
        same(2, one(c, "SELECT 2"));
        c.releaseSavepoint(savepoint);
        c.commit();
        c.setTransactionIsolation(Connection.TRANSACTION_READ_COMMITTED);
        same(Connection.TRANSACTION_READ_COMMITTED, c.getTransactionIsolation());
        c.rollback();
    }

    private static void timeouts(Connection c) throws SQLException {
        String slow =
            "SELECT count(*) FROM generate_series(1, 1000000000000) AS s(value) WHERE value % 7 = 8";
        try (Statement s = c.createStatement()) {
            s.setQueryTimeout(1);
            s.executeQuery(slow);
            throw new AssertionError("no error");
        } catch (SQLException error) {
            same("57014", error.getSQLState());
        }
        same(1, one(c, "SELECT 1"));
    }

    private static void simpleMode(Connection ignored) throws SQLException {
        try (Connection c = connect("preferQueryMode", "simple");
            PreparedStatement p = c.prepareStatement("SELECT ? + 1, ?")) {
            p.setInt(1, 41);
            p.setString(2, "it's");
            try (ResultSet r = p.executeQuery()) {
                r.next();
                same(42, r.getInt(1));
                same("it's", r.getString(2));
            }
        }
    }
}
