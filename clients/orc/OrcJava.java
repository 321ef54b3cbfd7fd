import java.io.BufferedWriter;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.sql.Timestamp;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Random;
import java.util.TimeZone;
import java.util.TreeMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.orc.CompressionKind;
import org.apache.orc.OrcConf;
import org.apache.orc.OrcFile;
import org.apache.orc.Reader;
import org.apache.orc.RecordReader;
import org.apache.orc.TypeDescription;
import org.apache.orc.Writer;
import org.apache.orc.storage.common.type.HiveDecimal;
import org.apache.orc.storage.ql.exec.vector.*;
import org.apache.orc.storage.ql.io.sarg.PredicateLeaf;
import org.apache.orc.storage.ql.io.sarg.SearchArgument;
import org.apache.orc.storage.ql.io.sarg.SearchArgumentFactory;

/**
 * What only ORC Java's API can do.
 *
 * <pre>
 *   OrcJava.java write DIRECTORY       files of all types, and the rows in them as JSON lines
 *   OrcJava.java search FILE COLUMN…   looks for values with predicate pushdown, as engines do
 * </pre>
 *
 * `search` prints a line of JSON per column: how many of the values that are there were found, and
 * how many rows were read for values that are not.
 */
public class OrcJava {
    static final Configuration CONF = new Configuration();

    public static void main(String[] arguments) throws Exception {
        switch (arguments[0]) {
            case "write":
                writeAll(arguments[1]);
                break;
            case "search":
                for (int at = 2; at < arguments.length; at++) search(arguments[1], arguments[at]);
                break;
            default:
                throw new IllegalArgumentException(arguments[0]);
        }
    }

    // ---- write

    static final String SCHEMA =
        "struct<b:boolean,t:tinyint,s:smallint,i:int,l:bigint,f:float,d:double,str:string,"
            + "uni:string,bin:binary,c:char(5),v:varchar(20),dec:decimal(10,3),big:decimal(38,9),"
            + "dt:date,ts:timestamp,ins:timestamp with local time zone,li:array<int>,"
            + "m:map<string,bigint>,st:struct<x:int,y:string>,u:uniontype<int,string>>";
    static final int ROWS = 5000;

    static void writeAll(String directory) throws Exception {
        write(directory, "zlib-hybrid", "UTC", options -> options.compress(CompressionKind.ZLIB));
        write(directory, "none-v0.11", "America/New_York",
            options -> options.compress(CompressionKind.NONE).version(OrcFile.Version.V_0_11));
        write(directory, "snappy-proleptic-bloom", "Asia/Tokyo",
            options -> options.compress(CompressionKind.SNAPPY).setProlepticGregorian(true)
                .rowIndexStride(1000).bloomFilterColumns("i,l,str,dt,ts,dec,d"));
        write(directory, "lzo-small-chunks", "Europe/Berlin",
            options -> options.compress(CompressionKind.LZO).bufferSize(1024).enforceBufferSize());
        write(directory, "lz4-stripes", "Australia/Lord_Howe",
            options -> options.compress(CompressionKind.LZ4).stripeSize(64 << 10).rowIndexStride(1000));
        write(directory, "zstd-utc", "America/Los_Angeles",
            options -> options.compress(CompressionKind.ZSTD).useUTCTimestamp(true));
        write(directory, "zlib-no-index", "UTC",
            options -> options.compress(CompressionKind.ZLIB).rowIndexStride(0).version(OrcFile.Version.V_0_11));
        OrcConf.DICTIONARY_IMPL.setString(CONF, "HASH");
        write(directory, "zlib-hash-dictionary", "UTC", options -> options.compress(CompressionKind.ZLIB));
    }

    interface Change {
        OrcFile.WriterOptions apply(OrcFile.WriterOptions options);
    }

    static void write(String directory, String name, String zone, Change change) throws Exception {
        TimeZone.setDefault(TimeZone.getTimeZone(zone));
        TypeDescription schema = TypeDescription.fromString(SCHEMA);
        Random random = new Random(name.hashCode());
        OrcFile.WriterOptions options =
            change.apply(OrcFile.writerOptions(CONF).setSchema(schema).overwrite(true));
        boolean isUtc = options.getUseUTCTimestamp();
        try (BufferedWriter rows = Files.newBufferedWriter(Paths.get(directory, name + ".jsonl"));
             Writer writer = OrcFile.createWriter(new Path(directory, name + ".orc"), options)) {
            VectorizedRowBatch batch = schema.createRowBatch(1000);
            for (int row = 0; row < ROWS; row++) {
                int at = batch.size++;
                rows.write(fill(schema, batch, at, row, random, isUtc).toString());
                rows.newLine();
                if (batch.size == batch.getMaxSize()) {
                    writer.addRowBatch(batch);
                    batch.reset();
                }
            }
            if (batch.size > 0) writer.addRowBatch(batch);
        }
    }

    /** Fills a row and returns it as JSON. */
    static StringBuilder fill(
        TypeDescription schema, VectorizedRowBatch batch, int at, int row, Random random, boolean isUtc) {
        StringBuilder json = new StringBuilder("{");
        for (int column = 0; column < batch.cols.length; column++) {
            String name = schema.getFieldNames().get(column);
            json.append(column == 0 ? "" : ",").append('"').append(name).append("\":");
            boolean isNull = row / 700 % 3 == 1 || random.nextInt(9) == 0;
            if (isNull && column % 4 != 0) {
                batch.cols[column].noNulls = false;
                batch.cols[column].isNull[at] = true;
                json.append("null");
            } else {
                batch.cols[column].isNull[at] = false;
                value(name, batch.cols[column], at, row, random, isUtc, json);
            }
        }
        return json.append('}');
    }

    static void value(
        String name, ColumnVector vector, int at, int row, Random random, boolean isUtc, StringBuilder json) {
        switch (name) {
            case "b": number(vector, at, random.nextInt(3) == 0 ? 1 : 0, json); break;
            case "t": number(vector, at, (byte) random.nextInt(), json); break;
            case "s": number(vector, at, (short) (random.nextInt() >> random.nextInt(16)), json); break;
            case "i": number(vector, at, row / 1000 % 2 == 0 ? row / 3 : random.nextInt(), json); break;
            case "l":
                long[] longs = {row * 1000L, -row, random.nextLong(), random.nextInt(50), 7};
                number(vector, at, longs[row / 500 % 5], json);
                break;
            case "f": {
                float value = random.nextFloat() * 100;
                ((DoubleColumnVector) vector).vector[at] = value;
                json.append((double) value);
                break;
            }
            case "d": {
                double value = random.nextGaussian() * 1e6;
                ((DoubleColumnVector) vector).vector[at] = value;
                json.append(value);
                break;
            }
            case "str": text(vector, at, new String[] {"alpha", "beta", "γ", ""}[random.nextInt(4)], json); break;
            case "uni": text(vector, at, "value " + random.nextLong(), json); break;
            case "c": text(vector, at, new String[] {"a", "abcde", "äöü"}[random.nextInt(3)], json); break;
            case "v": text(vector, at, "v".repeat(random.nextInt(20)), json); break;
            case "bin": {
                byte[] bytes = new byte[random.nextInt(12)];
                random.nextBytes(bytes);
                ((BytesColumnVector) vector).setVal(at, bytes);
                json.append('"').append(Base64.getEncoder().encodeToString(bytes)).append('"');
                break;
            }
            case "dec": decimal(vector, at, new BigDecimal(BigInteger.valueOf(random.nextInt()), 3), json); break;
            case "big":
                decimal(vector, at, new BigDecimal(new BigInteger(random.nextInt(90) + 1, random), 9).negate(), json);
                break;
            case "dt": {
                // From 0001-01-01; handed over as days of the proleptic calendar.
                long day = random.nextInt(2) == 0 ? random.nextInt(20_000) : -719_162 + random.nextInt(1_000_000);
                DateColumnVector dates = (DateColumnVector) vector;
                if (!dates.isUsingProlepticCalendar()) dates.changeCalendar(true, false);
                dates.vector[at] = day;
                json.append('"').append(LocalDate.ofEpochDay(day)).append('"');
                break;
            }
            case "ts": {
                // Not at night: there are hours that do not exist, or exist twice.
                LocalDate day = LocalDate.ofEpochDay(random.nextInt(60_000) - 25_000);
                int nanos = new int[] {0, 500_000_000, random.nextInt(1_000_000_000), 1000}[random.nextInt(4)];
                LocalDateTime moment = day.atTime(4 + random.nextInt(20), random.nextInt(60), 1 + random.nextInt(59), nanos);
                Timestamp value = Timestamp.valueOf(moment);
                if (isUtc) value.setTime(value.getTime() + TimeZone.getDefault().getOffset(value.getTime()));
                if (isUtc) value.setNanos(nanos);
                TimestampColumnVector stamps = (TimestampColumnVector) vector;
                if (isUtc) stamps.setIsUTC(true);
                stamps.set(at, value);
                json.append('"').append(moment.toLocalDate()).append(' ');
                json.append(String.format("%tT.%09d", moment, nanos)).append('"');
                break;
            }
            case "ins": {
                long millis = 1_600_000_000_000L + random.nextInt();
                Timestamp value = new Timestamp(millis);
                ((TimestampColumnVector) vector).set(at, value);
                json.append(millis);
                break;
            }
            case "li": list(vector, at, random, json); break;
            case "m": map(vector, at, random, json); break;
            case "st": {
                StructColumnVector struct = (StructColumnVector) vector;
                json.append("{\"x\":");
                struct.fields[0].isNull[at] = false;
                number(struct.fields[0], at, random.nextInt(100), json);
                json.append(",\"y\":");
                if (random.nextBoolean()) {
                    struct.fields[1].isNull[at] = false;
                    text(struct.fields[1], at, "y" + row, json);
                } else {
                    struct.fields[1].noNulls = false;
                    struct.fields[1].isNull[at] = true;
                    json.append("null");
                }
                json.append('}');
                break;
            }
            case "u": {
                UnionColumnVector union = (UnionColumnVector) vector;
                union.tags[at] = random.nextInt(2);
                union.fields[union.tags[at]].isNull[at] = false;
                if (union.tags[at] == 0) number(union.fields[0], at, row, json);
                else text(union.fields[1], at, "u" + row, json);
                break;
            }
            default: throw new IllegalStateException(name);
        }
    }

    static void number(ColumnVector vector, int at, long value, StringBuilder json) {
        ((LongColumnVector) vector).vector[at] = value;
        json.append(value);
    }

    static void text(ColumnVector vector, int at, String value, StringBuilder json) {
        ((BytesColumnVector) vector).setVal(at, value.getBytes(StandardCharsets.UTF_8));
        json.append('"').append(value).append('"');
    }

    static void decimal(ColumnVector vector, int at, BigDecimal value, StringBuilder json) {
        ((DecimalColumnVector) vector).set(at, HiveDecimal.create(value));
        json.append('"').append(value.toPlainString()).append('"');
    }

    static void list(ColumnVector vector, int at, Random random, StringBuilder json) {
        ListColumnVector list = (ListColumnVector) vector;
        int count = random.nextInt(4);
        list.offsets[at] = list.childCount;
        list.lengths[at] = count;
        list.child.ensureSize(list.childCount + count, true);
        json.append('[');
        for (int item = 0; item < count; item++) {
            json.append(item == 0 ? "" : ",");
            list.child.isNull[list.childCount] = false;
            number(list.child, list.childCount++, random.nextInt(10), json);
        }
        json.append(']');
    }

    static void map(ColumnVector vector, int at, Random random, StringBuilder json) {
        MapColumnVector map = (MapColumnVector) vector;
        int count = random.nextInt(3);
        map.offsets[at] = map.childCount;
        map.lengths[at] = count;
        map.keys.ensureSize(map.childCount + count, true);
        map.values.ensureSize(map.childCount + count, true);
        json.append('[');
        for (int item = 0; item < count; item++) {
            json.append(item == 0 ? "[" : ",[");
            map.keys.isNull[map.childCount] = false;
            text(map.keys, map.childCount, "k" + item, json);
            json.append(',');
            map.values.isNull[map.childCount] = false;
            number(map.values, map.childCount++, random.nextInt(1000), json);
            json.append(']');
        }
        json.append(']');
    }

    // ---- search

    static final int VALUES_MAX = 20;

    static void search(String file, String column) throws Exception {
        Reader reader = OrcFile.createReader(new Path(file), OrcFile.readerOptions(CONF));
        int index = reader.getSchema().getFieldNames().indexOf(column);
        TypeDescription type = reader.getSchema().getChildren().get(index);
        // How often each value is there, as text.
        TreeMap<String, Integer> counts = new TreeMap<>();
        scan(reader, null, column, index, value -> counts.merge(value, 1, Integer::sum));
        List<String> values = new ArrayList<>(counts.keySet());
        int found = 0, asked = 0;
        for (int at = 0; at < values.size(); at += Math.max(1, values.size() / VALUES_MAX)) {
            String wanted = values.get(at);
            int[] matches = {0};
            scan(reader, wanted, column, index, value -> matches[0] += value.equals(wanted) ? 1 : 0);
            asked++;
            if (matches[0] == counts.get(wanted)) found++;
        }
        // Values that are not there, but within the bounds.
        long rowsRead = 0;
        int absent = 0;
        for (String candidate : absentValues(type, values)) {
            if (counts.containsKey(candidate)) continue;
            int[] rows = {0};
            scan(reader, candidate, column, index, value -> rows[0]++);
            rowsRead += rows[0];
            absent++;
        }
        System.out.printf(
            "{\"column\":\"%s\",\"asked\":%d,\"found\":%d,\"absent\":%d,\"rowsRead\":%d,\"rows\":%d}%n",
            column, asked, found, absent, rowsRead, reader.getNumberOfRows());
    }

    interface Visit {
        void value(String value);
    }

    /** Calls `visit` with the values of all rows that are read where the column equals `wanted`. */
    static void scan(Reader reader, String wanted, String column, int index, Visit visit) throws Exception {
        TypeDescription type = reader.getSchema().getChildren().get(index);
        boolean[] include = new boolean[reader.getSchema().getMaximumId() + 1];
        for (int id = type.getId(); id <= type.getMaximumId(); id++) include[id] = true;
        include[0] = true;
        Reader.Options options = reader.options().include(include);
        if (wanted != null) {
            Object literal = literal(type, wanted);
            SearchArgument search = SearchArgumentFactory.newBuilder()
                .equals(column, kind(type), literal).build();
            options.searchArgument(search, new String[] {column}).allowSARGToFilter(false);
        }
        try (RecordReader rows = reader.rows(options)) {
            VectorizedRowBatch batch = reader.getSchema().createRowBatch();
            while (rows.nextBatch(batch)) {
                ColumnVector vector = batch.cols[index];
                for (int row = 0; row < batch.size; row++) {
                    int at = vector.isRepeating ? 0 : row;
                    if (vector.noNulls || !vector.isNull[at]) visit.value(string(type, vector, at));
                }
            }
        }
    }

    static String string(TypeDescription type, ColumnVector vector, int at) {
        switch (type.getCategory()) {
            case STRING: return ((BytesColumnVector) vector).toString(at);
            case DECIMAL: return ((DecimalColumnVector) vector).vector[at].getHiveDecimal().toString();
            case TIMESTAMP: return ((TimestampColumnVector) vector).asScratchTimestamp(at).toString();
            case DOUBLE: return Double.toString(((DoubleColumnVector) vector).vector[at]);
            default: return Long.toString(((LongColumnVector) vector).vector[at]);
        }
    }

    static PredicateLeaf.Type kind(TypeDescription type) {
        switch (type.getCategory()) {
            case STRING: return PredicateLeaf.Type.STRING;
            case DECIMAL: return PredicateLeaf.Type.DECIMAL;
            case TIMESTAMP: return PredicateLeaf.Type.TIMESTAMP;
            case DOUBLE: return PredicateLeaf.Type.FLOAT;
            case DATE: return PredicateLeaf.Type.DATE;
            default: return PredicateLeaf.Type.LONG;
        }
    }

    static Object literal(TypeDescription type, String value) {
        switch (type.getCategory()) {
            case STRING: return value;
            case DECIMAL: return new org.apache.orc.storage.serde2.io.HiveDecimalWritable(value);
            case TIMESTAMP: return Timestamp.valueOf(value);
            case DOUBLE: return Double.valueOf(value);
            case DATE: return new java.sql.Date(Long.parseLong(value) * 86_400_000L);
            default: return Long.valueOf(value);
        }
    }

    static List<String> absentValues(TypeDescription type, List<String> values) {
        List<String> absent = new ArrayList<>();
        for (int at = 0; at < values.size(); at += Math.max(1, values.size() / VALUES_MAX)) {
            String value = values.get(at);
            switch (type.getCategory()) {
                case STRING: absent.add(value + "?"); break;
                case DECIMAL: absent.add(new BigDecimal(value).add(new BigDecimal("0.01")).toPlainString()); break;
                case TIMESTAMP: absent.add(new Timestamp(Timestamp.valueOf(value).getTime() + 3_333).toString()); break;
                case DOUBLE: absent.add(Double.toString(Double.parseDouble(value) * 1.000001)); break;
                default: absent.add(Long.toString(Long.parseLong(value) + 1));
            }
        }
        return absent;
    }
}
