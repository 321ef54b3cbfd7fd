import java.util.TimeZone;

/**
 * Prints what `crates/stoa-orc/src/decode/timezone/java_offsets.txt` holds: the offsets of time zones as
 * `java.util.TimeZone` has them, with which ORC Java writes TIMESTAMP. `java JavaOffsets.java > …`
 */
public class JavaOffsets {
    private static final String[] ZONES = {
        "America/Sao_Paulo", "Europe/Istanbul", "Europe/Moscow", "America/Mexico_City", "Asia/Tehran",
        "Africa/Cairo", "America/New_York", "Europe/Berlin", "Europe/Dublin", "Africa/Casablanca",
        "Asia/Gaza", "Australia/Lord_Howe", "America/Santiago", "Pacific/Auckland", "Antarctica/Troll",
        "America/Asuncion", "America/Havana", "Asia/Beirut", "Asia/Jerusalem", "Europe/Chisinau",
        "America/Nuuk", "Asia/Kathmandu", "Asia/Tokyo", "Africa/Monrovia", "Asia/Kolkata", "Asia/Almaty",
    };

    /** Before 1900 and its first years; the last listed years and those behind them. */
    private static final long[][] WINDOWS = {
        {-62_135_596_800L, -62_135_596_800L + 86_400}, {-2_524_521_600L, -1_735_689_600L},
        {63_072_000L, 94_694_400L}, {1_893_456_000L, 1_924_992_000L}, {2_082_758_400L, 2_335_219_200L},
        {4_102_444_800L, 4_165_516_800L},
    };

    public static void main(String[] args) {
        System.out.println("# By clients/orc/JavaOffsets.java with Java " + System.getProperty("java.version")
                + ": zone, then second:offset from there on");
        for (String name : ZONES) {
            TimeZone zone = TimeZone.getTimeZone(name);
            for (long[] window : WINDOWS) {
                System.out.println(name + changes(zone, window[0], window[1]));
            }
        }
    }

    private static String changes(TimeZone zone, long from, long to) {
        StringBuilder line = new StringBuilder(" " + from + ":" + offset(zone, from));
        for (long at = from; at < to; at += 1800) {
            long next = Math.min(at + 1800, to);
            if (offset(zone, at) != offset(zone, next)) {
                long low = at;
                long high = next;
                while (high - low > 1) {
                    long middle = (low + high) / 2;
                    if (offset(zone, middle) == offset(zone, at)) {
                        low = middle;
                    } else {
                        high = middle;
                    }
                }
                line.append(" " + high + ":" + offset(zone, high));
            }
        }
        return line.append(" " + to + ":" + offset(zone, to)).toString();
    }

    private static int offset(TimeZone zone, long seconds) {
        return zone.getOffset(seconds * 1000) / 1000;
    }
}
