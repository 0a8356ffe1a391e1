import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.sum;
import static suite.Suite.equal;
import static suite.Suite.setting;

import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.SparkSession;

/** Tables that are written and read. */
final class Tables {
    private static final String ROOT = "s3a://" + setting("BUCKET") + "/";
    private static final int ROWS = 10_000;
    private static final SparkSession SPARK = session();

    private Tables() {}

    /** Without Snappy, whose Java library loads the wrong native part where musl is installed beside glibc. */
    private static SparkSession session() {
        return SparkSession.builder().master("local[2]").config("spark.ui.enabled", false)
                .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
                .config("spark.local.dir", setting("SCRATCH")).config("spark.sql.warehouse.dir", setting("SCRATCH") + "/warehouse")
                .config("spark.sql.parquet.compression.codec", "zstd").config("spark.sql.shuffle.partitions", 2)
.config("spark.sql.sources.partitionOverwriteMode", "dynamic")
                .config("spark.hadoop.fs.s3a.endpoint", setting("ENDPOINT"))
                .config("spark.hadoop.fs.s3a.endpoint.region", "us-east-1")
                .config("spark.hadoop.fs.s3a.path.style.access", true)
                .config("spark.hadoop.fs.s3a.access.key", setting("KEY_ID")).config("spark.hadoop.fs.s3a.secret.key", setting("SECRET"))
                .config("spark.hadoop.fs.s3a.aws.credentials.provider", "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider")
                .getOrCreate();
    }

    /** Whole numbers with a text and one of three colors. */
    private static Dataset<Row> numbers() {
        return SPARK.range(ROWS).selectExpr("id", "concat('text ', id) AS text", "id % 3 AS color");
    }

    private static Dataset<Row> table() {
        return SPARK.read().parquet(ROOT + "table");
    }

    private static long total(Dataset<Row> rows) {
        return rows.agg(sum("id")).first().getLong(0);
    }

    static void partitions() {
        numbers().repartition(4).write().partitionBy("color").parquet(ROOT + "table");
        equal("rows", table().count(), (long) ROWS);
        equal("sum", total(table()), (ROWS - 1L) * ROWS / 2);
        equal("one partition", table().where(col("color").equalTo(1)).count(), 3_333L);
        Row found = table().where(col("id").equalTo(4_321)).first();
        equal("a row", List.of(found.getLong(0), found.getString(1)), List.of(4_321L, "text 4321"));
        equal("files", Stream.of(table().inputFiles()).allMatch(name -> name.endsWith(".zstd.parquet")), true);
    }

    static void changes() {
        numbers().where("id < 300").write().mode(SaveMode.Append).partitionBy("color").parquet(ROOT + "table");
        equal("appended", table().count(), ROWS + 300L);
        numbers().where("color = 2 AND id < 30").write().mode(SaveMode.Overwrite).partitionBy("color").parquet(ROOT + "table");
        equal("overwritten", table().where("color = 2").count(), 10L);
        equal("others are kept", table().where("color = 0").count(), 3_434L);
    }

    static void texts() {
        numbers().coalesce(1).write().option("header", true).option("compression", "gzip").csv(ROOT + "texts/csv");
        equal("CSV", total(SPARK.read().option("header", true).schema("id LONG, text STRING, color LONG")
                .csv(ROOT + "texts/csv")),
                (ROWS - 1L) * ROWS / 2);
        numbers().write().json(ROOT + "texts/json");
        equal("JSON", SPARK.read().json(ROOT + "texts/json").where("text = 'text 77'").first().<Long>getAs("id"), 77L);
    }

    static void joins() {
        SPARK.sql("SELECT * FROM VALUES (0, 'green'), (1, 'blue') AS colors(color, name)").write().parquet(ROOT + "colors");
        table().createOrReplaceTempView("numbers");
        SPARK.read().parquet(ROOT + "colors").createOrReplaceTempView("colors");
        List<Row> found = SPARK.sql("SELECT name, count(*) FROM numbers JOIN colors USING (color) GROUP BY name ORDER BY name")
                .collectAsList();
        equal("counts", found.stream().map(row -> row.getString(0) + row.getLong(1)).toList(), List.of("blue3433", "green3434"));
    }
}
