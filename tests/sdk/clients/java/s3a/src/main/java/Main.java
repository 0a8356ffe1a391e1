import static suite.Suite.group;

/** Hadoop's S3A through the FileSystem API. */
public final class Main {
    private Main() {}

    public static void main(String[] arguments) {
        group("S3A: folders, small files", Files::small);
        group("S3A: files in parts, seeks, checksum", Files::inParts);
        group("S3A: vectored reads", Files::vectored);
        group("S3A: lists", Files::lists);
        group("S3A: renames, deletions", Files::renames);
        group("S3A: conditional overwrites", More::conditions);
        group("S3A: conditional overwrites in parts", More::conditionsInParts);
        group("S3A: bulk deletion", More::bulkDeletion);
        group("S3A: headers as attributes", More::headers);
        group("S3A: a file that changes", More::changedWhileRead);
        group("S3A: checksums of five algorithms", More::checksums);
        group("S3A: customer-provided keys", More::ownKey);
        group("S3A: local files up and down", More::localFiles);
        group("S3A: a MapReduce job, magic committer", () -> Jobs.counts("magic"));
        group("S3A: a MapReduce job, directory committer", () -> Jobs.counts("directory"));
        // Threads of the file systems would keep the program alive.
        System.exit(0);
    }
}
