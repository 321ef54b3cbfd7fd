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
import java.sql.Time;
import java.sql.Timestamp;
import java.sql.Types;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Properties;

/**
 * The Flight SQL JDBC driver against a server: what DBeaver and other tools ask of a driver (metadata,
 * prepared statements, types, errors, cancel). Arguments: host and port. Prints the sum; exits with 1
 * if a check failed.
 */
public final class FlightJdbc {
    private interface Check {
        void run(Connection c) throws Exception;
    }

    private static int passed;
    private static int failed;
    private static String url;

    public static void main(String[] args) throws Exception {
        url = "jdbc:arrow-flight-sql://" + args[0] + ":" + args[1];
        try (Connection c = connect()) {
            update(c, "DROP TABLE IF EXISTS jdbc_types");
            update(c, "CREATE TABLE jdbc_types (id bigint NOT NULL, flag boolean, small integer,"
                + " ratio double precision, price decimal(12, 2), word text, raw bytea, day date,"
                + " at timestamp, moment timestamp with time zone)");
        }
        check("connects with and without a user", FlightJdbc::connects);
        check("metadata: the product", FlightJdbc::product);
        check("metadata: catalogs, schemas, tables", FlightJdbc::tables);
        check("metadata: columns", FlightJdbc::columns);
        check("metadata: keys", FlightJdbc::keys);
        check("metadata: types", FlightJdbc::typeInfo);
        check("queries and their metadata", FlightJdbc::queries);
        check("prepared statements, types and NULLs", FlightJdbc::types);
        check("times of day", FlightJdbc::times);
        check("a prepared query runs again", FlightJdbc::again);
        check("batches", FlightJdbc::batches);
        check("updates count their rows", FlightJdbc::updates);
        check("a large result", FlightJdbc::largeResult);
        check("errors", FlightJdbc::errors);
        check("cancel", FlightJdbc::cancel);
        check("settings of a session", FlightJdbc::session);
        System.out.printf("%d passed, %d failed%n", passed, failed);
        System.exit(failed == 0 ? 0 : 1);
    }

    private static Connection connect(String... more) throws SQLException {
        Properties p = new Properties();
        p.setProperty("useEncryption", "false");
        for (int i = 0; i < more.length; i += 2) {
            p.setProperty(more[i], more[i + 1]);
        }
        return DriverManager.getConnection(url, p);
    }

    private static void check(String name, Check check) {
        try (Connection c = connect("user", "stoa", "password", "any")) {
            check.run(c);
            passed++;
        } catch (Throwable error) {
            failed++;
            System.out.println("FAILED: " + name);
            error.printStackTrace(System.out);
        }
    }

    private static void same(Object expected, Object found) {
        if (!Objects.equals(expected, found)) {
            throw new AssertionError("expected " + expected + ", found " + found);
        }
    }

    private static void holds(boolean fact, String what) {
        if (!fact) {
            throw new AssertionError(what);
        }
    }

    private static int update(Connection c, String sql) throws SQLException {
        try (Statement s = c.createStatement()) {
            return s.executeUpdate(sql);
        }
    }

    private static Object one(Connection c, String sql) throws SQLException {
        try (Statement s = c.createStatement(); ResultSet r = s.executeQuery(sql)) {
            holds(r.next(), "no row: " + sql);
            return r.getObject(1);
        }
    }

    /** One column of all rows, as text. */
    private static List<String> texts(ResultSet r, String column) throws SQLException {
        List<String> texts = new ArrayList<>();
        try (r) {
            while (r.next()) {
                texts.add(r.getString(column));
            }
        }
        return texts;
    }

    private static void connects(Connection c) throws SQLException {
        holds(c.isValid(5), "the connection is not valid");
        same("1", one(c, "SELECT 1").toString());
        try (Connection anonymous = connect()) {
            same("2", one(anonymous, "SELECT 2").toString());
        }
    }

    private static void product(Connection c) throws SQLException {
        DatabaseMetaData m = c.getMetaData();
        same("Stoa", m.getDatabaseProductName());
        holds(!m.getDatabaseProductVersion().isEmpty(), "no version");
        same("\"", m.getIdentifierQuoteString());
        same(false, m.isReadOnly());
        same("schema", m.getSchemaTerm());
        same("database", m.getCatalogTerm());
        same("\\", m.getSearchStringEscape());
        same(true, m.supportsGroupBy());
        same(true, m.supportsUnionAll());
        same(true, m.supportsSubqueriesInExists());
        same(false, m.supportsTransactions());
        holds(m.getStringFunctions().contains("substr"), "functions");
        holds(m.getSQLKeywords().contains("COPY"), "keywords");
        same(0, m.getMaxColumnNameLength());
        m.getNumericFunctions();
        m.getTimeDateFunctions();
        m.getSystemFunctions();
        m.storesLowerCaseIdentifiers();
        m.supportsFullOuterJoins();
        m.supportsOuterJoins();
        m.getDefaultTransactionIsolation();
    }

    private static void tables(Connection c) throws SQLException {
        DatabaseMetaData m = c.getMetaData();
        same(List.of("stoa"), texts(m.getCatalogs(), "TABLE_CAT"));
        holds(texts(m.getSchemas(), "TABLE_SCHEM").contains("public"), "schemas");
        same(List.of("public"), texts(m.getSchemas("stoa", "pub%"), "TABLE_SCHEM"));
        same(List.of("TABLE"), texts(m.getTableTypes(), "TABLE_TYPE"));
        String[] types = {"TABLE", "VIEW"};
        same(List.of("jdbc_types"),
            texts(m.getTables("stoa", "public", "jdbc\\_types", types), "TABLE_NAME"));
        holds(texts(m.getTables(null, null, "%", null), "TABLE_NAME").contains("jdbc_types"), "all");
        same(List.of(), texts(m.getTables(null, "nowhere", "%", null), "TABLE_NAME"));
    }

    private static void columns(Connection c) throws SQLException {
        List<String> found = new ArrayList<>();
        try (ResultSet r = c.getMetaData().getColumns("stoa", "public", "jdbc_types", "%")) {
            while (r.next()) {
                found.add(r.getString("COLUMN_NAME") + " " + r.getInt("DATA_TYPE") + " "
                    + r.getString("TYPE_NAME") + " " + r.getString("IS_NULLABLE"));
            }
        }
        same(List.of(
            "id " + Types.BIGINT + " bigint NO",
            "flag " + Types.BOOLEAN + " boolean YES",
            "small " + Types.INTEGER + " integer YES",
            "ratio " + Types.DOUBLE + " double precision YES",
            "price " + Types.DECIMAL + " decimal(12, 2) YES",
            "word " + Types.VARCHAR + " text YES",
            "raw " + Types.VARBINARY + " bytea YES",
            "day " + Types.DATE + " date YES",
            "at " + Types.TIMESTAMP + " timestamp YES",
            "moment " + Types.TIMESTAMP_WITH_TIMEZONE + " timestamp with time zone YES"),
            found);
        try (ResultSet r = c.getMetaData().getColumns(null, null, "jdbc_types", "price")) {
            holds(r.next(), "no column price");
            same(12, r.getInt("COLUMN_SIZE"));
            same(2, r.getInt("DECIMAL_DIGITS"));
        }
    }

    private static void keys(Connection c) throws SQLException {
        DatabaseMetaData m = c.getMetaData();
        same(List.of(), texts(m.getPrimaryKeys("stoa", "public", "jdbc_types"), "COLUMN_NAME"));
        same(List.of(), texts(m.getImportedKeys("stoa", "public", "jdbc_types"), "FKCOLUMN_NAME"));
        same(List.of(), texts(m.getExportedKeys("stoa", "public", "jdbc_types"), "FKCOLUMN_NAME"));
        same(List.of(), texts(m.getCrossReference("stoa", "public", "jdbc_types", "stoa", "public",
            "jdbc_types"), "FKCOLUMN_NAME"));
    }

    private static void typeInfo(Connection c) throws SQLException {
        // The driver does not ask the server; that it asks at all is Flight's GetXdbcTypeInfo.
        try (ResultSet r = c.getMetaData().getTypeInfo()) {
            holds(r.getMetaData().getColumnCount() > 0, "no columns");
        }
    }

    private static void queries(Connection c) throws SQLException {
        String sql = "SELECT 1 AS n, 'x' AS t, CAST(1.5 AS decimal(5, 2)) AS d";
        try (Statement s = c.createStatement(); ResultSet r = s.executeQuery(sql)) {
            ResultSetMetaData m = r.getMetaData();
            same(3, m.getColumnCount());
            same("t", m.getColumnLabel(2));
            same(Types.INTEGER, m.getColumnType(1));
            same(Types.VARCHAR, m.getColumnType(2));
            same(Types.DECIMAL, m.getColumnType(3));
            same(2, m.getScale(3));
            holds(r.next(), "no row");
            same(1L, r.getLong("n"));
            same("x", r.getString("t"));
            same(new BigDecimal("1.50"), r.getBigDecimal("d"));
            holds(!r.next(), "a second row");
        }
    }

    private static void types(Connection c) throws SQLException {
        update(c, "DELETE FROM jdbc_types");
        String insert = "INSERT INTO jdbc_types VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
        Timestamp at = Timestamp.valueOf("2025-01-31 12:30:00.123");
        try (PreparedStatement p = c.prepareStatement(insert)) {
            same(10, p.getParameterMetaData().getParameterCount());
            p.setLong(1, 1);
            p.setBoolean(2, true);
            p.setInt(3, -5);
            p.setDouble(4, 0.25);
            p.setBigDecimal(5, new BigDecimal("12.34"));
            p.setString(6, "it's ä");
            p.setBytes(7, new byte[] {0, (byte) 255});
            p.setDate(8, Date.valueOf(LocalDate.of(2025, 1, 31)));
            p.setTimestamp(9, at);
            p.setTimestamp(10, at);
            same(1, p.executeUpdate());
            p.setLong(1, 2);
            int[] kinds = {Types.BOOLEAN, Types.INTEGER, Types.DOUBLE, Types.DECIMAL, Types.VARCHAR,
                Types.VARBINARY, Types.DATE, Types.TIMESTAMP, Types.TIMESTAMP};
            for (int i = 0; i < kinds.length; i++) {
                p.setNull(i + 2, kinds[i]);
            }
            same(1, p.executeUpdate());
        }
        try (Statement s = c.createStatement();
            ResultSet r = s.executeQuery("SELECT * FROM jdbc_types ORDER BY id")) {
            holds(r.next(), "no row");
            same(1L, r.getLong(1));
            same(true, r.getBoolean(2));
            same(-5, r.getInt(3));
            same(0.25, r.getDouble(4));
            same(new BigDecimal("12.34"), r.getBigDecimal(5));
            same("it's ä", r.getString(6));
            holds(Arrays.equals(new byte[] {0, (byte) 255}, r.getBytes(7)), "bytes");
            same("2025-01-31", r.getDate(8).toString());
            same(at, r.getTimestamp(9));
            holds(r.getTimestamp(10) != null, "a moment");
            holds(r.next(), "no second row");
            // The driver has no getObject for the last, a timestamp with time zone.
            for (int column = 2; column <= 10; column++) {
                same(null, column < 10 ? r.getObject(column) : r.getTimestamp(column));
                holds(r.wasNull(), "not NULL");
            }
        }
    }

    private static void times(Connection c) throws SQLException {
        try (PreparedStatement p = c.prepareStatement("SELECT CAST(? AS time) AS t")) {
            p.setTime(1, Time.valueOf("23:59:58"));
            try (ResultSet r = p.executeQuery()) {
                holds(r.next(), "no row");
                same("23:59:58", r.getTime(1).toString());
            }
        }
    }

    private static void again(Connection c) throws SQLException {
        try (PreparedStatement p =
            c.prepareStatement("SELECT n, n * ? FROM generate_series(1, 10) AS t(n) WHERE n > ?")) {
            for (int from = 7; from < 10; from++) {
                p.setLong(1, 3);
                p.setLong(2, from);
                long count = 0;
                try (ResultSet r = p.executeQuery()) {
                    while (r.next()) {
                        same(r.getLong(1) * 3, r.getLong(2));
                        count++;
                    }
                }
                same(10L - from, count);
            }
        }
    }

    private static void batches(Connection c) throws SQLException {
        update(c, "DELETE FROM jdbc_types");
        try (PreparedStatement p =
            c.prepareStatement("INSERT INTO jdbc_types (id, word) VALUES (?, ?)")) {
            for (int i = 0; i < 50; i++) {
                p.setLong(1, i);
                p.setString(2, "w" + i);
                p.addBatch();
            }
            p.executeBatch();
        }
        same(50L, one(c, "SELECT count(DISTINCT word) FROM jdbc_types"));
    }

    private static void updates(Connection c) throws SQLException {
        update(c, "DELETE FROM jdbc_types");
        same(3, update(c, "INSERT INTO jdbc_types (id) VALUES (1), (2), (3)"));
        same(2, update(c, "UPDATE jdbc_types SET word = 'x' WHERE id > 1"));
        same(3, update(c, "DELETE FROM jdbc_types"));
        try (Statement s = c.createStatement()) {
            same(false, s.execute("CREATE TABLE IF NOT EXISTS jdbc_types (id bigint)"));
            same(true, s.execute("SELECT 1"));
        }
    }

    private static void largeResult(Connection c) throws SQLException {
        long sum = 0;
        try (Statement s = c.createStatement();
            ResultSet r = s.executeQuery("SELECT n FROM generate_series(1, 500000) AS t(n)")) {
            while (r.next()) {
                sum += r.getLong(1);
            }
        }
        same(500_000L * 500_001 / 2, sum);
    }

    private static void errors(Connection c) throws SQLException {
        for (String[] wrong : new String[][] {
            {"SELECT * FROM nowhere", "42P01"}, {"SELEC 1", "42601"},
            {"SELECT 1 / (n - 3) FROM generate_series(1, 5) AS t(n)", "22012"}}) {
            try {
                one(c, wrong[0]);
                throw new AssertionError("no error: " + wrong[0]);
            } catch (SQLException error) {
                StringBuilder all = new StringBuilder();
                for (Throwable e = error; e != null; e = e.getCause()) {
                    all.append(e.getMessage());
                }
                holds(all.toString().contains("SQLSTATE: " + wrong[1]), all.toString());
            }
        }
        same("1", one(c, "SELECT 1").toString());
    }

    private static void cancel(Connection c) throws Exception {
        String endless =
            "SELECT count(*) FROM generate_series(1, 1000000000000) AS t(n) WHERE n % 7 = 8";
        try (Statement s = c.createStatement()) {
            boolean[] ended = {false};
            Thread asking = new Thread(() -> {
                try (ResultSet r = s.executeQuery(endless)) {
                    r.next();
                } catch (Exception expected) {
                    ended[0] = true;
                }
            });
            asking.start();
            long deadline = System.nanoTime() + 30_000_000_000L;
            while (asking.isAlive() && System.nanoTime() < deadline) {
                // A cancel that comes before the query would not reach it.
                try {
                    s.cancel();
                } catch (SQLException notYet) {
                    // There is nothing to cancel yet.
                }
                asking.join(200);
            }
            holds(!asking.isAlive() && ended[0], "the query goes on");
        }
        same("1", one(c, "SELECT 1").toString());
    }

    private static void session(Connection c) throws SQLException {
        update(c, "CREATE SCHEMA IF NOT EXISTS jdbc_schema");
        update(c, "SET search_path = jdbc_schema");
        same("jdbc_schema", one(c, "SHOW search_path").toString());
        try (Connection other = connect("user", "me", "password", "any")) {
            same("public", one(other, "SHOW search_path").toString());
        }
        update(c, "DROP SCHEMA jdbc_schema");
    }
}
