import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Properties;

/**
 * The PostgreSQL JDBC driver against a server with a certificate. Arguments: URL, superuser and
 * password, the authority's certificate, another certificate. Exits with 1 at the first thing that is
 * not as it should be.
 */
public final class JdbcTls {
    private static String[] args;

    public static void main(String[] arguments) throws SQLException {
        args = arguments;
        for (String binding : new String[] {"require", "prefer", "disable"}) {
            try (Connection c = connect("verify-full", args[3], binding);
                    Statement s = c.createStatement();
                    ResultSet r = s.executeQuery("SELECT count(*) FROM generate_series(1, 10)")) {
                holds(r.next() && r.getLong(1) == 10, "a wrong answer with channelBinding=" + binding);
            }
        }
        fails("08006", "verify-full", args[4]);
        fails("28000", "disable", args[3]);
    }

    private static Connection connect(String mode, String authority, String binding) throws SQLException {
        Properties p = new Properties();
        p.setProperty("user", args[1]);
        p.setProperty("password", args[2]);
        p.setProperty("sslmode", mode);
        p.setProperty("sslrootcert", authority);
        p.setProperty("channelBinding", binding);
        p.setProperty("loginTimeout", "30");
        return DriverManager.getConnection(args[0], p);
    }

    private static void fails(String state, String mode, String authority) {
        try {
            connect(mode, authority, "prefer").close();
        } catch (SQLException error) {
            holds(state.equals(error.getSQLState()), mode + ": " + error.getSQLState() + " " + error);
            return;
        }
        throw new AssertionError("no error with sslmode=" + mode);
    }

    private static void holds(boolean fact, String what) {
        if (!fact) {
            throw new AssertionError(what);
        }
    }
}
