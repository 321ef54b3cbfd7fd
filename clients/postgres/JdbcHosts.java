import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;

/** Connects with several hosts, once for each targetServerType; prints what each came to. Arguments: hosts, password. */
public final class JdbcHosts {
    private static final String[] TYPES = {
        "any", "primary", "master", "preferSecondary", "preferPrimary", "secondary"
    };

    public static void main(String[] args) {
        for (String type : TYPES) {
            String url = "jdbc:postgresql://" + args[0] + "/stoa?connectTimeout=10&targetServerType=" + type;
            System.out.println(type + ":" + answer(url, args[1]));
        }
    }

    private static String answer(String url, String password) {
        try (Connection connection = DriverManager.getConnection(url, "boss", password);
                ResultSet rows = connection.createStatement().executeQuery("SELECT 40 + 2")) {
            rows.next();
            return rows.getString(1);
        } catch (SQLException error) {
            return error.getSQLState();
        }
    }
}
