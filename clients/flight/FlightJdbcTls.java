import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Properties;

/**
 * The Flight SQL JDBC driver against a server with a certificate. Arguments: URL, superuser and
 * password, the authority's certificate, another certificate. Exits with 1 at the first thing that is
 * not as it should be.
 */
public final class FlightJdbcTls {
    private static String[] args;

    public static void main(String[] arguments) throws SQLException {
        args = arguments;
        try (Connection c = connect(true, args[3]);
                Statement s = c.createStatement();
                ResultSet r = s.executeQuery("SELECT count(*) FROM generate_series(1, 10)")) {
            holds(r.next() && r.getLong(1) == 10, "a wrong answer");
        }
        fails("a server that is not trusted", true, args[4]);
        fails("a connection that is not encrypted", false, null);
    }

    private static Connection connect(boolean encrypts, String authority) throws SQLException {
        Properties p = new Properties();
        p.setProperty("user", args[1]);
        p.setProperty("password", args[2]);
        p.setProperty("useEncryption", String.valueOf(encrypts));
        if (authority != null) {
            p.setProperty("tlsRootCerts", authority);
        }
        return DriverManager.getConnection(args[0], p);
    }

    private static void fails(String what, boolean encrypts, String authority) {
        try (Connection c = connect(encrypts, authority);
                Statement s = c.createStatement();
                ResultSet r = s.executeQuery("SELECT 1")) {
            r.next();
        } catch (SQLException error) {
            return;
        }
        throw new AssertionError("no error from " + what);
    }

    private static void holds(boolean fact, String what) {
        if (!fact) {
            throw new AssertionError(what);
        }
    }
}
