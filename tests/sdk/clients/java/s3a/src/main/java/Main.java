import static suite.Suite.group;

import java.util.List;

/** Hadoop's S3A through the FileSystem API. */
public final class Main {
    private Main() {}

    public static void main(String[] arguments) {
        group("S3A: folders, small files", Files::small);
        group("S3A: files in parts, checksum", Files::inParts);
        for (String kind : List.of("classic", "prefetch", "analytics")) {
            group("S3A: seeks, vectored reads, " + kind, () -> Files.streams(kind));
        }
        group("S3A: lists", Files::lists);
        group("S3A: renames, deletions", Files::renames);
        group("S3A: conditional overwrites", More::conditions);
        group("S3A: conditional overwrites in parts", More::conditionsInParts);
        group("S3A: bulk deletion", More::bulkDeletion);
        group("S3A: headers as attributes", More::headers);
        group("S3A: a file that changes", More::changedWhileRead);
        group("S3A: checksums of four algorithms", More::checksums);
        group("S3A: customer-provided keys", More::ownKey);
        group("S3A: uploads by the caller", More::uploader);
        group("S3A: local files up and down", More::localFiles);
        group("S3A: a MapReduce job, magic committer", () -> Jobs.counts("magic"));
        group("S3A: a MapReduce job, directory committer", () -> Jobs.counts("directory"));
        // Threads of the file systems would keep the program alive.
        System.exit(0);
    }
}
