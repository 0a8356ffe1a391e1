import static suite.Suite.equal;

import com.azure.core.util.BinaryData;
import com.azure.storage.blob.BlobClient;
import com.azure.storage.blob.BlobClientBuilder;
import com.azure.storage.blob.BlobServiceClient;
import com.azure.storage.blob.BlobServiceClientBuilder;
import com.azure.storage.blob.models.UserDelegationKey;
import com.azure.storage.blob.sas.BlobContainerSasPermission;
import com.azure.storage.blob.sas.BlobSasPermission;
import com.azure.storage.blob.sas.BlobServiceSasSignatureValues;
import com.azure.storage.common.sas.AccountSasPermission;
import com.azure.storage.common.sas.AccountSasResourceType;
import com.azure.storage.common.sas.AccountSasService;
import com.azure.storage.common.sas.AccountSasSignatureValues;
import com.azure.storage.common.sas.SasIpRange;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.List;
import java.util.Map;

/** Shared access signatures: of an account, a container, a blob, a snapshot, and by a user delegation key. */
final class Signatures {
    private static final OffsetDateTime EXPIRY = OffsetDateTime.now(ZoneOffset.UTC).plusMinutes(10);

    private Signatures() {}

    private static BlobClient signed(BlobClient blob, String signature) {
        return new BlobClientBuilder().endpoint(blob.getBlobUrl() + "?" + signature).buildClient();
    }

    static void account() throws Exception {
        String signature = Store.SERVICE.generateAccountSas(new AccountSasSignatureValues(EXPIRY,
                AccountSasPermission.parse("rl"), AccountSasService.parse("b"), AccountSasResourceType.parse("sco")));
        BlobServiceClient reader = new BlobServiceClientBuilder().endpoint(Store.SERVICE.getAccountUrl()).sasToken(signature)
                .buildClient();
        Store.written("for-all", "read");
        equal("content", reader.getBlobContainerClient("java").getBlobClient("for-all").downloadContent().toString(), "read");
        equal("containers", reader.listBlobContainers().stream().anyMatch(one -> one.getName().equals("java")), true);
        Store.refused(403, "AuthorizationPermissionMismatch", () -> reader.getBlobContainerClient("java")
                .getBlobClient("for-all").delete());
    }

    static void blobs() throws Exception {
        BlobClient blob = Store.written("signed +%ü", "signed");
        BlobServiceSasSignatureValues reading = new BlobServiceSasSignatureValues(EXPIRY, BlobSasPermission.parse("r"))
                .setContentDisposition("attachment").setContentType("text/x");
        URI url = URI.create(blob.getBlobUrl() + "?" + blob.generateSas(reading));
        HttpResponse<String> answer = HttpClient.newHttpClient().send(HttpRequest.newBuilder(url).build(),
                HttpResponse.BodyHandlers.ofString());
        equal("answer", List.of(answer.statusCode(), answer.body(), answer.headers().firstValue("content-disposition").get(),
                answer.headers().firstValue("content-type").get()), List.of(200, "signed", "attachment", "text/x"));
        Store.refused(403, "AuthorizationPermissionMismatch", () -> signed(blob, blob.generateSas(reading)).delete());
        String elsewhere = blob.generateSas(new BlobServiceSasSignatureValues(EXPIRY, BlobSasPermission.parse("r"))
                .setSasIpRange(new SasIpRange().setIpMin("192.0.2.1").setIpMax("192.0.2.9")));
        Store.refused(403, "AuthorizationSourceIPMismatch", () -> signed(blob, elsewhere).downloadContent());
        BlobClient former = blob.getSnapshotClient(blob.createSnapshot().getSnapshotId());
        String old = former.generateSas(new BlobServiceSasSignatureValues(EXPIRY, BlobSasPermission.parse("r")));
        blob.upload(BinaryData.fromString("changed"), true);
        equal("snapshot", new BlobClientBuilder().endpoint(former.getBlobUrl() + "&" + old).buildClient()
                .downloadContent().toString(),
                "signed");
        String writing = Store.BOX.generateSas(new BlobServiceSasSignatureValues(EXPIRY, BlobContainerSasPermission.parse("cw")));
        signed(Store.blob("by-container"), writing).upload(BinaryData.fromString("made"));
        equal("made", Store.blob("by-container").downloadContent().toString(), "made");
    }

    static void delegated() throws Exception {
        UserDelegationKey key = Secure.BY_TOKEN.getUserDelegationKey(null, EXPIRY);
        BlobClient blob = Store.written("delegated", "by a key");
        BlobServiceSasSignatureValues reading = new BlobServiceSasSignatureValues(EXPIRY, BlobSasPermission.parse("r"));
        equal("content", signed(blob, blob.generateUserDelegationSas(reading, key)).downloadContent().toString(), "by a key");
        BlobServiceSasSignatureValues headed = new BlobServiceSasSignatureValues(EXPIRY, BlobSasPermission.parse("r"))
                .setRequestHeaders(Map.of("x-app", "java"));
        BlobClient bare = signed(blob, blob.generateUserDelegationSas(headed, key));
        Store.refused(403, "AuthenticationFailed", bare::downloadContent);
        String other = Store.blob("delegated-other").generateUserDelegationSas(reading, key);
        Store.refused(403, "AuthenticationFailed", () -> signed(blob, other).downloadContent());
    }
}
