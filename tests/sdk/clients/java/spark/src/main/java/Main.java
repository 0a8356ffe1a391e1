import static suite.Suite.group;

/** Spark in one process, over S3A. */
public final class Main {
    private Main() {}

    public static void main(String[] arguments) {
        group("Spark: Parquet in partitions, filters", Tables::partitions);
        group("Spark: appends, overwritten partitions", Tables::changes);
        group("Spark: CSV and JSON", Tables::texts);
        group("Spark: joins", Tables::joins);
        // Threads of Spark would keep the program alive.
        System.exit(0);
    }
}
