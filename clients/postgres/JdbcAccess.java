import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Objects;
import java.util.Properties;

/**
 * The PostgreSQL JDBC driver against a server with access control. Arguments: URL, superuser and
 * password, role and password, a table of which the role may read nothing yet. Exits with 1 at the
 * first thing that is not as it should be.
 */
public final class JdbcAccess {
    private static String url;

    public static void main(String[] args) throws SQLException {
        url = args[0];
        String role = args[3];
        String table = args[5];
        same("28P01", stateOf(() -> connect(role, "wrong").close()));
        same("28P01", stateOf(() -> connect("nobody", args[4]).close()));
        try (Connection admin = connect(args[1], args[2]); Connection c = connect(role, args[4])) {
            String report = "SELECT day, sum(clicks) FROM " + table
                + " WHERE account = ? GROUP BY day ORDER BY day";
            same("42501", stateOf(() -> days(c, report)));
            execute(admin, "GRANT SELECT (account, day, clicks) ON " + table + " TO " + role);
            same(9, days(c, report));
            try (PreparedStatement p = c.prepareStatement(report)) {
                same(9, days(p));
                execute(admin, "REVOKE SELECT (clicks) ON " + table + " FROM " + role);
                same("42501", stateOf(() -> days(p)));
                execute(admin, "GRANT SELECT (clicks) ON " + table + " TO " + role);
                same(9, days(p));
            }
            same("42501", stateOf(() -> days(c, report.replace("clicks", "cost"))));
        }
    }

    private interface Work {
        void run() throws SQLException;
    }

    private static Connection connect(String user, String password) throws SQLException {
        Properties p = new Properties();
        p.setProperty("user", user);
        p.setProperty("password", password);
        p.setProperty("loginTimeout", "10");
        // A statement of the server from the first execution on.
        p.setProperty("prepareThreshold", "1");
        return DriverManager.getConnection(url, p);
    }

    private static int days(Connection c, String report) throws SQLException {
        try (PreparedStatement p = c.prepareStatement(report)) {
            return days(p);
        }
    }

    private static int days(PreparedStatement p) throws SQLException {
        p.setLong(1, 3);
        int count = 0;
        try (ResultSet r = p.executeQuery()) {
            while (r.next()) {
                count++;
            }
        }
        return count;
    }

    private static void execute(Connection c, String sql) throws SQLException {
        try (Statement s = c.createStatement()) {
            s.execute(sql);
        }
    }

    /** The SQLSTATE of what must fail. */
    private static String stateOf(Work work) {
        try {
            work.run();
        } catch (SQLException error) {
            return error.getSQLState();
        }
        return "no error";
    }

    private static void same(Object expected, Object found) {
        if (!Objects.equals(expected, found)) {
            throw new AssertionError("expected " + expected + ", found " + found);
        }
    }
}
