import static suite.Suite.equal;

import com.azure.core.util.BinaryData;
import com.azure.storage.blob.BlobClient;
import com.azure.storage.blob.BlobContainerClient;
import com.azure.storage.blob.models.BlobImmutabilityPolicy;
import com.azure.storage.blob.models.BlobImmutabilityPolicyMode;
import com.azure.storage.blob.models.BlobItem;
import com.azure.storage.blob.models.BlobListDetails;
import com.azure.storage.blob.models.BlobProperties;
import com.azure.storage.blob.models.BlobRetentionPolicy;
import com.azure.storage.blob.models.BlobServiceProperties;
import com.azure.storage.blob.models.DeleteSnapshotsOptionType;
import com.azure.storage.blob.models.ListBlobsOptions;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/** Former states of blobs: snapshots, versions, deleted ones, and those that must stay. */
final class States {
    private States() {}

    static void snapshots() throws Exception {
        BlobClient blob = Store.written("snap", "old");
        String snapshot = blob.createSnapshotWithResponse(Map.of("Of", "then"), null, null, null).getValue().getSnapshotId();
        blob.upload(BinaryData.fromString("new"), true);
        BlobClient former = blob.getSnapshotClient(snapshot);
        equal("old and new", former.downloadContent() + " " + blob.downloadContent(), "old new");
        equal("metadata", former.getProperties().getMetadata(), Map.of("Of", "then"));
        Store.refused(409, "SnapshotsPresent", blob::delete);
        blob.deleteWithResponse(DeleteSnapshotsOptionType.ONLY, null, null, null);
        equal("snapshot and blob", List.of(former.exists(), blob.exists()), List.of(false, true));
    }

    static void versions() throws Exception {
        BlobContainerClient box = Store.LOCKING.createBlobContainer("java-versions");
        BlobClient blob = box.getBlobClient("v");
        blob.upload(BinaryData.fromString("one"));
        String first = blob.getProperties().getVersionId();
        blob.upload(BinaryData.fromString("two"), true);
        equal("current", blob.getProperties().isCurrentVersion(), true);
        equal("first", blob.getVersionClient(first).downloadContent().toString(), "one");
        blob.delete();
        equal("deleted", blob.exists(), false);
        List<BlobItem> found = Store.all(box.listBlobs(
                new ListBlobsOptions().setDetails(new BlobListDetails().setRetrieveVersions(true)), null));
        equal("versions", found.stream().map(BlobItem::isCurrentVersion).toList(), Arrays.asList(null, null));
        equal("first of them", found.get(0).getVersionId(), first);
        blob.beginCopy(blob.getVersionClient(first).getBlobUrl(), Duration.ofMillis(50)).waitForCompletion();
        equal("restored", blob.downloadContent().toString(), "one");
        blob.getVersionClient(first).delete();
        Store.refused(404, "BlobNotFound", () -> blob.getVersionClient(first).downloadContent());
    }

    static void deleted() throws Exception {
        retention(new BlobRetentionPolicy().setEnabled(true).setDays(7));
        try {
            BlobClient blob = Store.written("softly", "kept");
            blob.delete();
            Store.refused(404, "BlobNotFound", blob::downloadContent);
            BlobItem found = Store.BOX.listBlobs(new ListBlobsOptions().setPrefix("softly")
                    .setDetails(new BlobListDetails().setRetrieveDeletedBlobs(true)), null).stream().findFirst().get();
            equal("listed", List.of(found.isDeleted(), found.getProperties().getRemainingRetentionDays()), List.of(true, 6));
            blob.undelete();
            equal("content", blob.downloadContent().toString(), "kept");
        } finally {
            retention(new BlobRetentionPolicy().setEnabled(false));
        }
    }

    private static void retention(BlobRetentionPolicy policy) {
        Store.SERVICE.setProperties(new BlobServiceProperties().setDeleteRetentionPolicy(policy));
    }

    static void held() throws Exception {
        BlobContainerClient box = Store.LOCKING.createBlobContainer("java-held");
        BlobClient blob = box.getBlobClient("held");
        blob.upload(BinaryData.fromString("old"));
        BlobClient former = blob.getVersionClient(blob.getProperties().getVersionId());
        OffsetDateTime until = OffsetDateTime.now(ZoneOffset.UTC).truncatedTo(ChronoUnit.SECONDS).plusHours(1);
        blob.setImmutabilityPolicy(
                new BlobImmutabilityPolicy().setExpiryTime(until).setPolicyMode(BlobImmutabilityPolicyMode.UNLOCKED));
        equal("held", blob.setLegalHold(true).hasLegalHold(), true);
        BlobProperties found = blob.getProperties();
        equal("policy", List.of(found.getImmutabilityPolicy().getExpiryTime(), found.getImmutabilityPolicy().getPolicyMode(),
                found.hasLegalHold()), List.of(until, BlobImmutabilityPolicyMode.UNLOCKED, true));
        BlobItem listed = box.listBlobs(new ListBlobsOptions().setDetails(new BlobListDetails()
                .setRetrieveImmutabilityPolicy(true)
                .setRetrieveLegalHold(true)), null).stream().findFirst().get();
        equal("listed", List.of(listed.getProperties().getImmutabilityPolicy().getExpiryTime(),
                listed.getProperties().hasLegalHold()),
                List.of(until, true));
        Store.refused(409, "BlobImmutableDueToLegalHold", () -> blob.setMetadata(Map.of("a", "b")));
        blob.setLegalHold(false);
        blob.upload(BinaryData.fromString("new"), true);
        Store.refused(409, "BlobImmutableDueToPolicy", former::delete);
        equal("former", former.downloadContent().toString(), "old");
        former.deleteImmutabilityPolicy();
        former.delete();
        equal("content", blob.downloadContent().toString(), "new");
    }
}
