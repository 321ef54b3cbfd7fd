import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;

/**
 * Reports over Hive's JDBC driver in a closed loop: each client has a connection, asks, reads the whole answer and asks
 * again. Arguments: URL, a file with one statement per line, clients, seconds of warm-up, seconds to measure, settings of
 * each connection ({@code name=value}). Prints one line of JSON; times are in microseconds, as the client sees them.
 */
public final class HiveReports {
    private final Connection connection;
    private final Statement statement;
    private final List<String> reports;
    private int next;
    private long rows;
    private long[] times = new long[1 << 16];
    private int count;
    private Exception failed;

    private HiveReports(String url, List<String> settings, List<String> reports, int first) throws Exception {
        this.reports = reports;
        next = first;
        connection = DriverManager.getConnection(url, "bench", "");
        statement = connection.createStatement();
        statement.setFetchSize(1000);
        for (String setting : settings) {
            statement.execute("SET " + setting);
        }
    }

    private void ask() throws Exception {
        try (ResultSet answer = statement.executeQuery(reports.get(next))) {
            int columns = answer.getMetaData().getColumnCount();
            while (answer.next()) {
                for (int column = 1; column <= columns; column++) {
                    answer.getObject(column);
                }
                rows++;
            }
        }
        next = (next + 1) % reports.size();
    }

    private void run(CyclicBarrier measured, double warmUp, double seconds) {
        try {
            long until = System.nanoTime() + (long) (warmUp * 1e9);
            while (System.nanoTime() < until) {
                ask();
            }
            measured.await();
            rows = 0;
            until = System.nanoTime() + (long) (seconds * 1e9);
            for (long begin = System.nanoTime(); begin < until; ) {
                ask();
                long end = System.nanoTime();
                if (count == times.length) {
                    times = Arrays.copyOf(times, 2 * count);
                }
                times[count++] = end - begin;
                begin = end;
            }
        } catch (Exception failure) {
            failed = failure;
            measured.reset();
        }
    }

    public static void main(String[] args) throws Exception {
        Class.forName("org.apache.hive.jdbc.HiveDriver");
        List<String> reports = Files.readAllLines(Path.of(args[1]));
        int clients = Integer.parseInt(args[2]);
        double warmUp = Double.parseDouble(args[3]);
        double seconds = Double.parseDouble(args[4]);
        List<String> settings = Arrays.asList(args).subList(5, args.length);
        List<HiveReports> all = new ArrayList<>();
        for (int client = 0; client < clients; client++) {
            all.add(new HiveReports(args[0], settings, reports, client * reports.size() / clients));
        }
        long[] began = {0};
        // The caller measures the server's CPU time between these two lines.
        CyclicBarrier measured = new CyclicBarrier(clients, () -> {
            System.out.println("begin");
            System.out.flush();
            began[0] = System.nanoTime();
        });
        CountDownLatch ended = new CountDownLatch(clients);
        for (HiveReports client : all) {
            new Thread(() -> {
                client.run(measured, warmUp, seconds);
                ended.countDown();
            }).start();
        }
        ended.await();
        double took = (System.nanoTime() - began[0]) / 1e9;
        int total = 0;
        long rows = 0;
        for (HiveReports client : all) {
            if (client.failed != null) {
                throw client.failed;
            }
            total += client.count;
            rows += client.rows;
        }
        long[] times = new long[total];
        int at = 0;
        for (HiveReports client : all) {
            System.arraycopy(client.times, 0, times, at, client.count);
            at += client.count;
            client.connection.close();
        }
        Arrays.sort(times);
        System.out.printf(
            "{\"reports\": %d, \"rows\": %d, \"seconds\": %.3f, \"p50_us\": %d, \"p95_us\": %d, \"p99_us\": %d, \"max_us\": %d}%n",
            total, rows, took, at(times, 0.5), at(times, 0.95), at(times, 0.99), at(times, 1));
        System.exit(0);
    }

    private static long at(long[] times, double share) {
        return times[Math.min(times.length - 1, (int) (share * times.length))] / 1000;
    }
}
