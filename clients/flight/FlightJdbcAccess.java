import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Properties;

/**
 * The Flight SQL JDBC driver against a server with access control. Arguments: URL, superuser and
 * password, role and password, a table of which the role may read nothing yet. Exits with 1 at the
 * first thing that is not as it should be.
 */
public final class FlightJdbcAccess {
    private interface Work {
        void run() throws SQLException;
    }

    private static String url;

    public static void main(String[] args) throws SQLException {
        url = args[0];
        String role = args[3];
        String table = args[5];
        fails("28P01", () -> connect(role, "wrong").close());
        fails("28000", () -> connect(null, null).close());
        try (Connection admin = connect(args[1], args[2]); Connection c = connect(role, args[4])) {
            String report = "SELECT cost FROM " + table + " WHERE account > ?";
            fails("42501", () -> rows(c, report));
            update(admin, "GRANT SELECT ON " + table + " TO " + role);
            holds(rows(c, report) == 2, "not all rows");
            try (PreparedStatement p = c.prepareStatement(report)) {
                holds(rows(p) == 2, "not all rows when prepared");
                update(admin, "REVOKE SELECT (cost) ON " + table + " FROM " + role);
                update(admin, "REVOKE SELECT ON " + table + " FROM " + role);
                fails("42501", () -> rows(p));
                update(admin, "GRANT SELECT (account) ON " + table + " TO " + role);
                fails("42501", () -> rows(p));
            }
            holds(rows(c, report.replace("cost", "account")) == 2, "not all rows of a column");
        }
    }

    private static Connection connect(String user, String password) throws SQLException {
        Properties p = new Properties();
        p.setProperty("useEncryption", "false");
        if (user != null) {
            p.setProperty("user", user);
            p.setProperty("password", password);
        }
        Connection connection = DriverManager.getConnection(url, p);
        // Without a user the driver asks nothing of the server before the first statement.
        try (Statement s = connection.createStatement(); ResultSet r = s.executeQuery("SELECT 1")) {
            r.next();
        }
        return connection;
    }

    private static int rows(Connection c, String report) throws SQLException {
        try (PreparedStatement p = c.prepareStatement(report)) {
            return rows(p);
        }
    }

    private static int rows(PreparedStatement p) throws SQLException {
        p.setLong(1, 1);
        int count = 0;
        try (ResultSet r = p.executeQuery()) {
            while (r.next()) {
                count++;
            }
        }
        return count;
    }

    private static void update(Connection c, String sql) throws SQLException {
        try (Statement s = c.createStatement()) {
            s.executeUpdate(sql);
        }
    }

    /** The message has the SQLSTATE: the driver's own says only of which kind an error is. */
    private static void fails(String state, Work work) {
        try {
            work.run();
        } catch (SQLException error) {
            StringBuilder all = new StringBuilder();
            for (Throwable e = error; e != null; e = e.getCause()) {
                all.append(e.getMessage());
            }
            holds(all.toString().contains("SQLSTATE: " + state), all.toString());
            return;
        }
        throw new AssertionError("no error, not " + state);
    }

    private static void holds(boolean fact, String what) {
        if (!fact) {
            throw new AssertionError(what);
        }
    }
}
