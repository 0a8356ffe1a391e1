import static suite.Suite.equal;

import com.azure.core.util.BinaryData;
import com.azure.storage.blob.BlobClient;
import com.azure.storage.blob.models.BlobQueryArrowField;
import com.azure.storage.blob.models.BlobQueryArrowFieldType;
import com.azure.storage.blob.models.BlobQueryArrowSerialization;
import com.azure.storage.blob.models.BlobQueryDelimitedSerialization;
import com.azure.storage.blob.models.BlobQueryError;
import com.azure.storage.blob.models.BlobQueryJsonSerialization;
import com.azure.storage.blob.models.BlobQueryParquetSerialization;
import com.azure.storage.blob.models.BlobQueryProgress;
import com.azure.storage.blob.models.BlobQuerySerialization;
import com.azure.storage.blob.models.BlobRequestConditions;
import com.azure.storage.blob.options.BlobQueryOptions;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** Queries over delimited text, JSON and Parquet, answered as delimited text, JSON and Arrow. */
final class Queries {
    private static final BlobQueryJsonSerialization JSON = new BlobQueryJsonSerialization().setRecordSeparator('\n');

    private Queries() {}

    private static BlobQueryDelimitedSerialization delimited(char separator, boolean headers) {
        return new BlobQueryDelimitedSerialization().setColumnSeparator(separator).setRecordSeparator('\n').setFieldQuote('"')
                .setEscapeChar('\0').setHeadersPresent(headers);
    }

    private static byte[] answer(BlobClient blob, String expression, BlobQuerySerialization in, BlobQuerySerialization out) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        List<BlobQueryError> errors = new ArrayList<>();
        blob.queryWithResponse(new BlobQueryOptions(expression, bytes).setInputSerialization(in).setOutputSerialization(out)
                .setErrorConsumer(errors::add), null, null);
        equal("errors", errors.size(), 0);
        return bytes.toByteArray();
    }

    private static String text(BlobClient blob, String expression, BlobQuerySerialization in, BlobQuerySerialization out) {
        return new String(answer(blob, expression, in, out), StandardCharsets.UTF_8);
    }

    static void delimited() throws Exception {
        BlobClient blob = Store.written("table.csv", "100,200,300\n150,250,350\n");
        try (InputStream in = blob.openQueryInputStream("SELECT * FROM BlobStorage")) {
            equal("all", new String(in.readAllBytes(), StandardCharsets.UTF_8), "100,200,300\n150,250,350\n");
        }
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        blob.query(out, "SELECT _2 FROM BlobStorage WHERE _1 > 120");
        equal("filtered", out.toString(StandardCharsets.UTF_8), "250\n");
        BlobClient named = Store.written("named.csv", "id;color\n1;\"green;ish\"\n2;blue\n");
        equal("by name", text(named, "SELECT color, id FROM BlobStorage", delimited(';', true), delimited('|', false)),
                "green;ish|1\nblue|2\n");
        equal("aggregate", text(named, "SELECT COUNT(*), MAX(CAST(id AS INT)) FROM BlobStorage", delimited(';', true),
                delimited(',', false)), "2,2\n");
        equal("no rows", text(named, "SELECT * FROM BlobStorage WHERE color = 'red'", delimited(';', true),
                delimited(',', false)), "");
    }

    static void json() {
        BlobClient blob = Store.written("rows.json", "{\"a\":1,\"b\":{\"c\":\"x\"}}\n{\"a\":2,\"b\":{\"c\":\"y\"}}\n");
        equal("text", text(blob, "SELECT a, b.c FROM BlobStorage WHERE a > 1", JSON, delimited(',', false)), "2,y\n");
        equal("JSON", text(blob, "SELECT a FROM BlobStorage", JSON, JSON), "{\"a\":1}\n{\"a\":2}\n");
        BlobClient table = Store.written("table.csv", "100,200,300\n150,250,350\n");
        equal("text as JSON", text(table, "SELECT _1 AS a FROM BlobStorage LIMIT 1", delimited(',', false), JSON),
                "{\"a\":\"100\"}\n");
    }

    static void parquet() throws Exception {
        BlobClient blob = Store.blob("table.parquet");
        try (InputStream table = Queries.class.getResourceAsStream("/table.parquet")) {
            blob.upload(BinaryData.fromBytes(table.readAllBytes()), true);
        }
        equal("text", text(blob, "SELECT id, color, size FROM BlobStorage WHERE size > 2", new BlobQueryParquetSerialization(),
                delimited(',', false)), "2,blue,2.5\n3,,3.5\n");
        equal("JSON", text(blob, "SELECT color FROM BlobStorage WHERE id = 1", new BlobQueryParquetSerialization(), JSON),
                "{\"color\":\"green\"}\n");
    }

    static void arrow() {
        BlobClient blob = Store.written("table.csv", "100,200,300\n150,250,350\n");
        BlobQueryArrowSerialization columns = new BlobQueryArrowSerialization().setSchema(List.of(
                new BlobQueryArrowField(BlobQueryArrowFieldType.INT64).setName("first"),
                new BlobQueryArrowField(BlobQueryArrowFieldType.DECIMAL).setName("second").setPrecision(9).setScale(1)));
        byte[] found = answer(blob, "SELECT _1, _2 FROM BlobStorage", delimited(',', false), columns);
        // An IPC stream: messages begin with -1, the last one is empty; values of a column are side by side.
        ByteBuffer words = ByteBuffer.wrap(found).order(ByteOrder.LITTLE_ENDIAN);
        equal("begin and end", List.of(words.getInt(0), words.getInt(found.length - 8), words.getInt(found.length - 4)),
                List.of(-1, -1, 0));
        String shown = new String(found, StandardCharsets.ISO_8859_1);
        equal("names", List.of(shown.contains("first"), shown.contains("second")), List.of(true, true));
        equal("whole numbers", shown.contains(littleEndian(100, 150)), true);
        equal("decimals with one digit", shown.contains(littleEndian(2_000, 0, 2_500, 0)), true);
    }

    private static String littleEndian(long... numbers) {
        ByteBuffer bytes = ByteBuffer.allocate(8 * numbers.length).order(ByteOrder.LITTLE_ENDIAN);
        for (long number : numbers) {
            bytes.putLong(number);
        }
        return new String(bytes.array(), StandardCharsets.ISO_8859_1);
    }

    static void consumers() throws Exception {
        BlobClient blob = Store.written("broken.csv", "1,2\n3,4\n");
        List<BlobQueryError> errors = new ArrayList<>();
        List<BlobQueryProgress> steps = new ArrayList<>();
        blob.queryWithResponse(new BlobQueryOptions("SELECT * FROM BlobStorage", new ByteArrayOutputStream())
                .setProgressConsumer(steps::add), null, null);
        BlobQueryProgress last = steps.get(steps.size() - 1);
        equal("progress", List.of(last.getBytesScanned(), last.getTotalBytes()), List.of(8L, 8L));
        BlobQueryOptions wrong = new BlobQueryOptions("SELECT * FROM BlobStorage", new ByteArrayOutputStream())
                .setInputSerialization(JSON);
        blob.queryWithResponse(wrong.setErrorConsumer(errors::add), null, null);
        equal("errors", List.of(errors.size(), errors.get(0).isFatal(), errors.get(0).getName().isEmpty()),
                List.of(1, true, false));
        InputStream in = blob.openQueryInputStreamWithResponse(new BlobQueryOptions("SELECT * FROM BlobStorage")
                .setInputSerialization(JSON)).getValue();
        try {
            in.readAllBytes();
        } catch (IOException fatal) {
            equal("named in", List.of(fatal.getMessage(), fatal.getMessage().contains(errors.get(0).getName())),
                    List.of(fatal.getMessage(), true));
            return;
        }
        throw new AssertionError("an error that nobody takes is not thrown");
    }

    static void refusals() throws Exception {
        BlobClient blob = Store.written("table.csv", "100,200,300\n");
        for (String wrong : List.of("SELECT", "SELECT * FROM Other", "DROP TABLE BlobStorage",
                "SELECT _1 FROM BlobStorage WHERE")) {
            Store.refused(400, "InvalidInput", () -> blob.query(new ByteArrayOutputStream(), wrong));
        }
        BlobRequestConditions other = new BlobRequestConditions().setIfMatch("\"0x1\"");
        Store.refused(412, "ConditionNotMet", () -> blob.queryWithResponse(
                new BlobQueryOptions("SELECT * FROM BlobStorage", new ByteArrayOutputStream()).setRequestConditions(other),
                null, null));
        Store.refused(404, "BlobNotFound",
                () -> Store.blob("missing").query(new ByteArrayOutputStream(), "SELECT * FROM BlobStorage"));
    }
}
