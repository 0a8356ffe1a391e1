import static suite.Suite.equal;
import static suite.Suite.group;

import software.amazon.awssdk.services.s3.S3AsyncClient;

/** AWS SDK v2 with its transfer manager, and minio-java. */
public final class Main {
    private Main() {}

    public static void main(String[] arguments) {
        group("AWS: put, get, head, ranges", Objects::plain);
        group("AWS: checksums of five algorithms", Objects::checksums);
        group("AWS: conditions", Objects::conditions);
        group("AWS: uploads in parts", Objects::parts);
        group("AWS: lists by pages, many deleted", Objects::lists);
        group("AWS: copies, tags", Objects::copiesAndTags);
        group("AWS: buckets", Buckets::made);
        group("AWS: versions", Buckets::versions);
        group("AWS: object lock", Buckets::locks);
        group("AWS: presigned", Signed::all);
        group("AWS: what Blob wrote", () -> equal("content", Aws.read("from-blob"), "of Blob"));
        group("AWS: async client, parts by itself", () -> Transfers.objects(Aws.ASYNC, "async"));
        group("AWS: transfer manager, files", () -> Transfers.files(Aws.ASYNC, "file"));
        group("AWS: transfer manager, folders", Transfers::folders);
        S3AsyncClient crt = Transfers.crt();
        group("AWS CRT: async client, parts by itself", () -> Transfers.objects(crt, "crt"));
        group("AWS CRT: transfer manager, files", () -> Transfers.files(crt, "crt-file"));
        group("minio-java: put, get, unknown length", Minio::objects);
        group("minio-java: tags, composed, presigned, removals", Minio::rest);
        // Threads of the clients would keep the program alive.
        System.exit(0);
    }
}
