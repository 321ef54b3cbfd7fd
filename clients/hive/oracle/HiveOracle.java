import java.io.FileOutputStream;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.ql.DriverFactory;
import org.apache.hadoop.hive.ql.IDriver;
import org.apache.hadoop.hive.ql.session.SessionState;

/**
 * Runs the statements of a corpus in a real Hive, within this process: lines that begin with {@code Q}. Writes each with
 * its rows ({@code R}) or the first line of its error ({@code E}), as the corpus has them.
 *
 * <p>Arguments: the corpus, the file to write, a folder for Hive's own files.
 */
public class HiveOracle {
  /** The line of a corpus whose statements are run by a user who is asked for rights. */
  private static final String RIGHTS = "# hive.security.authorization.enabled=true";
  /** The line of a corpus whose statements Hive only takes from a client of HiveServer2. */
  private static final String SERVER = "# hive.server2=true";

  public static void main(String[] args) throws Exception {
    Path home = Path.of(args[2]).toAbsolutePath();
    HiveConf conf = new HiveConf(SessionState.class);
    String[] settings = {
      "javax.jdo.option.ConnectionURL", "jdbc:derby:memory:oracle;create=true",
      "javax.jdo.option.ConnectionDriverName", "org.apache.derby.iapi.jdbc.AutoloadedDriver",
      "datanucleus.schema.autoCreateAll", "true",
      "hive.metastore.schema.verification", "false",
      "hive.metastore.warehouse.dir", home.resolve("warehouse").toUri().toString(),
      "hive.exec.scratchdir", home.resolve("scratch").toString(),
      "hive.exec.local.scratchdir", home.resolve("local").toString(),
      "hive.execution.engine", "mr",
      "hive.exec.mode.local.auto", "true",
      "mapreduce.framework.name", "local",
      "fs.defaultFS", "file:///",
      "hive.exec.dynamic.partition.mode", "nonstrict",
      "hive.default.nulls.last", "false",
      "hive.resultset.use.unique.column.names", "false",
      "hive.strict.checks.cartesian.product", "false",
      "hive.strict.checks.type.safety", "false",
      "hive.create.as.external.legacy", "false",
      "hive.support.concurrency", "false",
      "hive.stats.autogather", "false",
      "hive.notification.event.poll.interval", "0",
      "hive.txn.manager", "org.apache.hadoop.hive.ql.lockmgr.DummyTxnManager",
      "hive.fetch.task.conversion", "more",
      // Joins in memory would start another process.
      "hive.auto.convert.join", "false",
    };
    for (int i = 0; i < settings.length; i += 2) {
      conf.set(settings[i], settings[i + 1]);
    }
    List<String> lines = Files.readAllLines(Path.of(args[0]));
    boolean asksForRights = lines.contains(RIGHTS);
    if (asksForRights) {
      // Rights are those of HiveServer2; outside of it, Hive does not ask for them.
      String hive = "org.apache.hadoop.hive.ql.security.";
      conf.set("hive.security.authorization.enabled", "true");
      conf.set("hive.security.authorization.manager", hive + "authorization.plugin.sqlstd.SQLStdHiveAuthorizerFactory");
      conf.set("hive.security.authenticator.manager", hive + "SessionStateUserAuthenticator");
      conf.set("hive.users.in.admin.role", "hive");
    }
    SessionState session = new SessionState(conf, "hive");
    session.setIsHiveServerQuery(asksForRights || lines.contains(SERVER));
    SessionState.start(session);
    IDriver driver = DriverFactory.newDriver(conf);
    try (PrintStream out = new PrintStream(new FileOutputStream(args[1]), true, "UTF-8")) {
      for (String line : lines) {
        if (line.startsWith("Q ")) {
          run(driver, line.substring(2), out);
        }
      }
    }
    System.exit(0);
  }

  private static void run(IDriver driver, String statement, PrintStream out) {
    out.println("Q " + statement);
    if (statement.matches("(?i)set [^ =]+=.*")) {
      String[] setting = statement.substring(4).split("=", 2);
      SessionState.get().getConf().set(setting[0], setting[1]);
      driver.getConf().set(setting[0], setting[1]);
      return;
    }
    try {
      driver.run(statement);
      List<String> rows = new ArrayList<>();
      while (driver.getResults(rows)) {
        rows.forEach(row -> out.println("R " + row));
        rows.clear();
      }
    } catch (Exception failure) {
      out.println("E " + String.valueOf(failure.getMessage()).split("\n")[0]);
    }
  }
}
