import static suite.Suite.equal;

import com.azure.core.http.rest.Response;
import com.azure.storage.blob.BlobClient;
import com.azure.storage.blob.batch.BlobBatch;
import com.azure.storage.blob.batch.BlobBatchClient;
import com.azure.storage.blob.batch.BlobBatchClientBuilder;
import com.azure.storage.blob.batch.BlobBatchStorageException;
import com.azure.storage.blob.models.AccessTier;
import com.azure.storage.blob.models.BlobStorageException;
import com.azure.storage.blob.models.DeleteSnapshotsOptionType;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.StreamSupport;

/** The batch client. */
final class Batches {
    private static final BlobBatchClient BATCHES = new BlobBatchClientBuilder(Store.SERVICE).buildClient();

    private Batches() {}

    private static List<BlobClient> some(String name) {
        return IntStream.range(0, 4).mapToObj(number -> Store.written("batch/" + name + " +%" + number, "x")).toList();
    }

    static void all() {
        List<BlobClient> blobs = some("all");
        List<String> urls = blobs.stream().map(BlobClient::getBlobUrl).toList();
        equal("tiers", BATCHES.setBlobsAccessTier(urls, AccessTier.COOL).stream().map(Response::getStatusCode).toList(),
                List.of(200, 200, 200, 200));
        equal("tier", blobs.get(3).getProperties().getAccessTier(), AccessTier.COOL);
        blobs.get(0).createSnapshot();
        equal("deleted", BATCHES.deleteBlobs(urls, DeleteSnapshotsOptionType.INCLUDE).stream()
                .map(Response::getStatusCode).toList(),
                List.of(202, 202, 202, 202));
        equal("left", blobs.stream().filter(BlobClient::exists).count(), 0L);
    }

    static void mixed() {
        List<BlobClient> blobs = some("mixed");
        BlobBatch batch = BATCHES.getBlobBatch();
        Response<Void> deleted = batch.deleteBlob(blobs.get(0).getBlobUrl());
        Response<Void> missing = batch.deleteBlob("java", "batch/missing");
        BATCHES.submitBatchWithResponse(batch, false, null, null);
        equal("deleted", deleted.getStatusCode(), 202);
        try {
            missing.getStatusCode();
            throw new AssertionError("a missing blob was deleted");
        } catch (BlobStorageException refusal) {
            equal("refusal", refusal.getStatusCode() + " " + refusal.getErrorCode(), "404 BlobNotFound");
        }
        BlobBatch wrong = new BlobBatchClientBuilder(Store.BOX).buildClient().getBlobBatch();
        wrong.setBlobAccessTier("java", "batch/missing", AccessTier.COOL);
        wrong.setBlobAccessTier(blobs.get(1).getBlobUrl(), AccessTier.COOL);
        try {
            new BlobBatchClientBuilder(Store.BOX).buildClient().submitBatch(wrong);
            throw new AssertionError("a batch with a refusal was not refused");
        } catch (BlobBatchStorageException refusals) {
            equal("refusals", StreamSupport.stream(refusals.getBatchExceptions().spliterator(), false)
                    .map(one -> String.valueOf(one.getErrorCode())).toList(), List.of("BlobNotFound"));
        }
        equal("tier", blobs.get(1).getProperties().getAccessTier(), AccessTier.COOL);
    }
}
