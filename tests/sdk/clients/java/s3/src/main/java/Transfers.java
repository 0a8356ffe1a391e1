import static suite.Suite.content;
import static suite.Suite.equal;
import static suite.Suite.setting;

import java.io.ByteArrayInputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import software.amazon.awssdk.core.async.AsyncRequestBody;
import software.amazon.awssdk.core.async.AsyncResponseTransformer;
import software.amazon.awssdk.core.async.BlockingInputStreamAsyncRequestBody;
import software.amazon.awssdk.services.s3.S3AsyncClient;
import software.amazon.awssdk.services.s3.model.PutObjectResponse;
import software.amazon.awssdk.services.s3.model.S3Object;
import software.amazon.awssdk.transfer.s3.S3TransferManager;
import software.amazon.awssdk.transfer.s3.model.CompletedDirectoryDownload;
import software.amazon.awssdk.transfer.s3.model.CompletedDirectoryUpload;
import software.amazon.awssdk.transfer.s3.model.FileDownload;
import software.amazon.awssdk.transfer.s3.model.ResumableFileDownload;
import software.amazon.awssdk.transfer.s3.progress.LoggingTransferListener;

/** Clients that do not wait, and the transfer manager over them. */
final class Transfers {
    private static final byte[] LARGE = content((12 << 20) + 7);

    private Transfers() {}

    /** Splits long objects in parts and reads them in ranges, by native code. */
    static S3AsyncClient crt() {
        return S3AsyncClient.crtBuilder().endpointOverride(Aws.ENDPOINT).region(Aws.REGION).credentialsProvider(Aws.CREDENTIALS)
                .forcePathStyle(true).minimumPartSizeInBytes(Aws.PART).thresholdInBytes(Aws.PART).build();
    }

    static void objects(S3AsyncClient client, String name) throws Exception {
        client.putObject(with -> with.bucket(Aws.BUCKET).key(name), AsyncRequestBody.fromBytes(LARGE)).join();
        equal("content", client.getObject(with -> with.bucket(Aws.BUCKET).key(name), AsyncResponseTransformer.toBytes()).join()
                .asByteArray(), LARGE);
        equal("parts", Aws.SYNC.headObject(with -> with.bucket(Aws.BUCKET).key(name)).eTag().endsWith("-3\""), true);
        List<CompletableFuture<PutObjectResponse>> many = new ArrayList<>();
        for (int number = 0; number < 20; number++) {
            String key = name + "/" + number;
            many.add(client.putObject(with -> with.bucket(Aws.BUCKET).key(key), AsyncRequestBody.fromString(key)));
        }
        many.forEach(CompletableFuture::join);
        List<String> found = new ArrayList<>();
        client.listObjectsV2Paginator(with -> with.bucket(Aws.BUCKET).prefix(name + "/").maxKeys(7)).contents()
                .subscribe((S3Object one) -> found.add(one.key())).join();
        equal("listed", found.size(), 20);
        BlockingInputStreamAsyncRequestBody body = AsyncRequestBody.forBlockingInputStream(null);
        CompletableFuture<PutObjectResponse> unknown = client.putObject(with -> with.bucket(Aws.BUCKET)
                .key(name + "-unknown"), body);
        body.writeInputStream(new ByteArrayInputStream(LARGE));
        unknown.join();
        equal("of unknown length", client.getObject(with -> with.bucket(Aws.BUCKET).key(name + "-unknown"),
                AsyncResponseTransformer.toBytes()).join().asByteArray(), LARGE);
    }

    static void files(S3AsyncClient client, String name) throws Exception {
        Path folder = Files.createTempDirectory(Path.of(setting("SCRATCH")), name);
        Path file = Files.write(folder.resolve("large"), LARGE);
        try (S3TransferManager manager = S3TransferManager.builder().s3Client(client).build()) {
            manager.uploadFile(with -> with.source(file).putObjectRequest(what -> what.bucket(Aws.BUCKET).key(name))
                    .addTransferListener(LoggingTransferListener.create())).completionFuture().join();
            Path back = folder.resolve("back");
            manager.downloadFile(with -> with.destination(back).getObjectRequest(what -> what.bucket(Aws.BUCKET).key(name)))
                    .completionFuture().join();
            equal("content", Files.readAllBytes(back), LARGE);
            manager.copy(with -> with.copyObjectRequest(what -> what.sourceBucket(Aws.BUCKET).sourceKey(name)
                    .destinationBucket(Aws.BUCKET).destinationKey(name + "-copy"))).completionFuture().join();
            equal("copy", Aws.SYNC.getObjectAsBytes(with -> with.bucket(Aws.BUCKET).key(name + "-copy")).asByteArray(), LARGE);
            Path resumed = folder.resolve("resumed");
            FileDownload begun = manager.downloadFile(
                    with -> with.destination(resumed).getObjectRequest(what -> what.bucket(Aws.BUCKET).key(name)));
            ResumableFileDownload paused = begun.pause();
            manager.resumeDownloadFile(paused).completionFuture().join();
            equal("resumed", Files.readAllBytes(resumed), LARGE);
        }
    }

    static void folders() throws Exception {
        Path from = Files.createTempDirectory(Path.of(setting("SCRATCH")), "from"), to = from.resolveSibling("to");
        for (String name : List.of("a", "b/c +ü", "b/d/e")) {
            Files.createDirectories(from.resolve(name).getParent());
            Files.writeString(from.resolve(name), name);
        }
        try (S3TransferManager manager = S3TransferManager.builder().s3Client(Aws.ASYNC).build()) {
            CompletedDirectoryUpload up = manager.uploadDirectory(with -> with.source(from).bucket(Aws.BUCKET).s3Prefix("folder"))
                    .completionFuture().join();
            equal("not uploaded", up.failedTransfers().size(), 0);
            CompletedDirectoryDownload down = manager.downloadDirectory(with -> with.destination(to).bucket(Aws.BUCKET)
                    .listObjectsV2RequestTransformer(list -> list.prefix("folder/"))).completionFuture().join();
            equal("not downloaded", down.failedTransfers().size(), 0);
        }
        try (Stream<Path> files = Files.walk(to)) {
            List<String> found = files.filter(Files::isRegularFile).map(one -> to.relativize(one).toString()).sorted().toList();
            equal("files", found, List.of("a", "b/c +ü", "b/d/e"));
        }
        equal("content", Files.readString(to.resolve("b/c +ü")), "b/c +ü");
    }
}
