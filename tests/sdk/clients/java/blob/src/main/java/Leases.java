import static suite.Suite.equal;

import com.azure.core.util.BinaryData;
import com.azure.storage.blob.BlobClient;
import com.azure.storage.blob.BlobContainerClient;
import com.azure.storage.blob.models.BlobRequestConditions;
import com.azure.storage.blob.models.LeaseStateType;
import com.azure.storage.blob.models.LeaseStatusType;
import com.azure.storage.blob.options.BlobBreakLeaseOptions;
import com.azure.storage.blob.options.BlobParallelUploadOptions;
import com.azure.storage.blob.specialized.BlobLeaseClient;
import com.azure.storage.blob.specialized.BlobLeaseClientBuilder;
import java.time.Duration;
import java.util.UUID;

/** Leases of blobs and containers. */
final class Leases {
    private Leases() {}

    static void blobs() throws Exception {
        BlobClient blob = Store.written("leased", "x");
        BlobLeaseClient lease = new BlobLeaseClientBuilder().blobClient(blob).buildClient();
        String first = lease.acquireLease(15);
        equal("state", blob.getProperties().getLeaseState(), LeaseStateType.LEASED);
        Store.refused(412, "LeaseIdMissing", () -> blob.upload(BinaryData.fromString("y"), true));
        BlobRequestConditions holding = new BlobRequestConditions().setLeaseId(first);
        blob.uploadWithResponse(new BlobParallelUploadOptions(BinaryData.fromString("y")).setRequestConditions(holding),
                null, null);
        equal("renewed", lease.renewLease(), first);
        String second = UUID.randomUUID().toString();
        equal("changed", lease.changeLease(second), second);
        Store.refused(409, "LeaseAlreadyPresent",
                () -> new BlobLeaseClientBuilder().blobClient(blob).buildClient().acquireLease(15));
        lease.releaseLease();
        equal("status", blob.getProperties().getLeaseStatus(), LeaseStatusType.UNLOCKED);
        lease.acquireLease(-1);
        Integer left = lease.breakLeaseWithResponse(new BlobBreakLeaseOptions().setBreakPeriod(Duration.ofSeconds(0)), null, null)
                .getValue();
        equal("seconds until it is broken", left, 0);
        equal("state", blob.getProperties().getLeaseState(), LeaseStateType.BROKEN);
        blob.delete();
    }

    static void containers() throws Exception {
        BlobContainerClient made = Store.SERVICE.createBlobContainer("java-leased");
        BlobLeaseClient lease = new BlobLeaseClientBuilder().containerClient(made).buildClient();
        lease.acquireLease(60);
        Store.refused(412, "LeaseIdMissing", made::delete);
        equal("state", made.getProperties().getLeaseState(), LeaseStateType.LEASED);
        made.deleteWithResponse(new BlobRequestConditions().setLeaseId(lease.getLeaseId()), null, null);
    }
}
