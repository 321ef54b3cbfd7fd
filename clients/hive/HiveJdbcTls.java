import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;

/** Connects with Hive's driver as a URL says, and prints what it reads. Arguments: URL, user, password. */
public final class HiveJdbcTls {
    public static void main(String[] args) throws Exception {
        Class.forName("org.apache.hive.jdbc.HiveDriver");
        try (Connection c = DriverManager.getConnection(args[0], args[1], args[2]);
             ResultSet r = c.createStatement().executeQuery("SELECT 'encrypted'")) {
            r.next();
            System.out.println(r.getString(1));
        }
    }
}
