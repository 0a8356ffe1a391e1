import static suite.Suite.equal;

import com.azure.core.util.BinaryData;
import com.azure.storage.blob.BlobClientBuilder;
import com.azure.storage.blob.BlobContainerClient;
import com.azure.storage.blob.models.BlobAccessPolicy;
import com.azure.storage.blob.models.BlobContainerItem;
import com.azure.storage.blob.models.BlobContainerListDetails;
import com.azure.storage.blob.models.BlobErrorCode;
import com.azure.storage.blob.models.BlobSignedIdentifier;
import com.azure.storage.blob.models.ListBlobContainersOptions;
import com.azure.storage.blob.models.PublicAccessType;
import com.azure.storage.blob.options.BlobContainerCreateOptions;
import com.azure.storage.blob.sas.BlobServiceSasSignatureValues;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.Map;

/** Containers: made, described, listed, opened, deleted and restored. */
final class Containers {
    private Containers() {}

    static void all() throws Exception {
        Map<String, String> metadata = Map.of("Color", "green", "size_1", "b");
        BlobContainerClient made = Store.SERVICE.getBlobContainerClient("java-made");
        equal("made", made.createIfNotExistsWithResponse(new BlobContainerCreateOptions().setMetadata(metadata), null, null)
                .getStatusCode(), 201);
        equal("made again", made.createIfNotExists(), false);
        Store.refused(409, BlobErrorCode.CONTAINER_ALREADY_EXISTS.toString(), made::create);
        equal("metadata", made.getProperties().getMetadata(), metadata);
        made.setMetadata(Map.of("c", "d"));
        equal("new metadata", made.getProperties().getMetadata(), Map.of("c", "d"));
        equal("exists", made.exists(), true);
        made.delete();
        equal("exists", made.exists(), false);
        equal("deleted again", made.deleteIfExists(), false);
        Store.refused(404, "ContainerNotFound", made::getProperties);
    }

    static void lists() {
        for (int number = 0; number < 7; number++) {
            Store.SERVICE.createBlobContainerWithResponse("java-list-" + number, Map.of("n", "" + number), null, null);
        }
        ListBlobContainersOptions some = new ListBlobContainersOptions().setPrefix("java-list-").setMaxResultsPerPage(3)
                .setDetails(new BlobContainerListDetails().setRetrieveMetadata(true));
        List<Integer> pages = Store.SERVICE.listBlobContainers(some, null).streamByPage().map(page -> page.getValue().size())
                .toList();
        equal("sizes of pages", pages, List.of(3, 3, 1));
        List<BlobContainerItem> found = Store.all(Store.SERVICE.listBlobContainers(some, null));
        equal("metadata", found.get(6).getMetadata(), Map.of("n", "6"));
        found.forEach(one -> Store.SERVICE.deleteBlobContainer(one.getName()));
        equal("left", Store.all(Store.SERVICE.listBlobContainers(some, null)).size(), 0);
    }

    static void policies() throws Exception {
        BlobContainerClient open = Store.SERVICE.createBlobContainer("java-open");
        open.getBlobClient("a").upload(BinaryData.fromString("open"));
        OffsetDateTime start = OffsetDateTime.now(ZoneOffset.UTC).truncatedTo(ChronoUnit.SECONDS).minusMinutes(5);
        BlobAccessPolicy reading = new BlobAccessPolicy().setPermissions("r").setStartsOn(start).setExpiresOn(start.plusHours(1));
        open.setAccessPolicy(PublicAccessType.BLOB,
                List.of(new BlobSignedIdentifier().setId("reading").setAccessPolicy(reading)));
        BlobSignedIdentifier found = open.getAccessPolicy().getIdentifiers().get(0);
        equal("public access", open.getAccessPolicy().getBlobAccessType(), PublicAccessType.BLOB);
        equal("policy", List.of(found.getId(), found.getAccessPolicy().getPermissions(), found.getAccessPolicy().getStartsOn()),
                List.of("reading", "r", start));
        String url = open.getBlobClient("a").getBlobUrl();
        equal("anonymous", new BlobClientBuilder().endpoint(url).buildClient().downloadContent().toString(), "open");
        open.setAccessPolicy(null, List.of(found));
        String signed = url + "?" + open.generateSas(new BlobServiceSasSignatureValues("reading"));
        equal("signed", new BlobClientBuilder().endpoint(signed).buildClient().downloadContent().toString(), "open");
        Store.refused(403, "AuthorizationPermissionMismatch", () -> new BlobClientBuilder().endpoint(signed).buildClient()
                .delete());
        open.setAccessPolicy(null, List.of());
        Store.refused(403, "AuthenticationFailed",
                () -> new BlobClientBuilder().endpoint(signed).buildClient().downloadContent());
        open.delete();
    }

    static void restored() throws Exception {
        BlobContainerClient made = Store.LOCKING.createBlobContainer("java-restored");
        made.delete();
        ListBlobContainersOptions deleted = new ListBlobContainersOptions().setPrefix("java-restored")
                .setDetails(new BlobContainerListDetails().setRetrieveDeleted(true));
        BlobContainerItem found = Store.all(Store.LOCKING.listBlobContainers(deleted, null)).get(0);
        equal("deleted", found.isDeleted(), true);
        Store.LOCKING.undeleteBlobContainer(found.getName(), found.getVersion());
        equal("exists", made.exists(), true);
    }
}
