import static suite.Suite.equal;
import static suite.Suite.setting;

import com.azure.core.util.BinaryData;
import com.azure.storage.blob.BlobClient;
import com.azure.storage.blob.BlobContainerClient;
import com.azure.storage.blob.BlobServiceClient;
import com.azure.storage.blob.BlobServiceClientBuilder;
import com.azure.storage.blob.models.BlobStorageException;
import com.azure.storage.common.policy.RequestRetryOptions;
import com.azure.storage.common.policy.RetryPolicyType;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.stream.StreamSupport;
import suite.Suite.Group;

/** The accounts of the server, and what all groups need. */
final class Store {
    static final BlobServiceClient SERVICE = builder("CONNECTION_STRING").buildClient();
    static final BlobServiceClient SECOND = builder("SECOND").buildClient();
    /** New containers of this account have object lock and versions. */
    static final BlobServiceClient LOCKING = builder("LOCKING").buildClient();
    static final BlobContainerClient BOX = SERVICE.createBlobContainerIfNotExists("java");

    private Store() {}

    /** One try for each request, so that its answer is the server's. */
    static BlobServiceClientBuilder builder(String account) {
        return new BlobServiceClientBuilder().connectionString(setting(account))
                .retryOptions(new RequestRetryOptions(RetryPolicyType.FIXED, 1, 60, null, null, null));
    }

    static BlobClient blob(String name) {
        return BOX.getBlobClient(name);
    }

    /** A new blob with this text. */
    static BlobClient written(String name, String text) {
        BlobClient made = blob(name);
        made.upload(BinaryData.fromString(text), true);
        return made;
    }

    static <T> List<T> all(Iterable<T> items) {
        return StreamSupport.stream(items.spliterator(), false).toList();
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** Throws unless the service refuses with this status and code. */
    static void refused(int status, String code, Group call) throws Exception {
        try {
            call.run();
        } catch (BlobStorageException refusal) {
            equal("refusal", refusal.getStatusCode() + " " + refusal.getErrorCode(), status + " " + code);
            return;
        }
        throw new AssertionError("not refused with " + code);
    }
}
