import static suite.Suite.equal;

import com.azure.core.util.BinaryData;
import com.azure.storage.blob.BlobContainerClient;
import com.azure.storage.blob.models.AccessTier;
import com.azure.storage.blob.models.BlobHttpHeaders;
import com.azure.storage.blob.models.BlobItem;
import com.azure.storage.blob.models.BlobItemProperties;
import com.azure.storage.blob.models.BlobListDetails;
import com.azure.storage.blob.models.ListBlobsOptions;
import com.azure.storage.blob.models.StorageResponseSerializationFormat;
import com.azure.storage.blob.options.BlobParallelUploadOptions;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/** Lists of blobs as XML and in columns (Arrow), which the client can ask for since 12.37. */
final class Listing {
    private static final BlobContainerClient BOX = Store.SERVICE.createBlobContainerIfNotExists("java-listing");
    private static final BlobListDetails DETAILS = new BlobListDetails().setRetrieveMetadata(true).setRetrieveTags(true)
            .setRetrieveSnapshots(true).setRetrieveCopy(true);

    private Listing() {}

    private static ListBlobsOptions under(String prefix) {
        return new ListBlobsOptions().setPrefix(prefix);
    }

    static void fill() {
        for (int number = 0; number < 12; number++) {
            BOX.getBlobClient("l/" + number % 3 + "/" + number).upload(BinaryData.fromString("x"));
        }
        BOX.getBlobClient("l/1/ä & <tagged>").uploadWithResponse(new BlobParallelUploadOptions(BinaryData.fromString("four"))
                .setMetadata(Map.of("Key", "v")).setTags(Map.of("t", "1")).setTier(AccessTier.COOL)
                .setHeaders(new BlobHttpHeaders().setContentType("a/b")), null, null);
        BOX.getBlobClient("l/1/ä & <tagged>").createSnapshot();
    }

    static void pages() {
        fill();
        List<Integer> sizes = BOX.listBlobs(under("l/").setMaxResultsPerPage(5), null).streamByPage()
                .map(page -> page.getValue().size()).toList();
        equal("sizes of pages", sizes, List.of(5, 5, 3));
        String token = BOX.listBlobs(under("l/").setMaxResultsPerPage(5), null).streamByPage().findFirst().get()
                .getContinuationToken();
        equal("from the second page on", Store.all(BOX.listBlobs(under("l/"), token, null)).size(), 8);
        equal("folders", BOX.listBlobsByHierarchy("l/").stream().map(BlobItem::getName).toList(),
                List.of("l/0/", "l/1/", "l/2/"));
        equal("prefixes", BOX.listBlobsByHierarchy("l/").stream().allMatch(BlobItem::isPrefix), true);
        BlobItem found = BOX.listBlobs(under("l/1/ä").setDetails(DETAILS), null).stream().findFirst().get();
        equal("described", List.of(found.getName(), found.getMetadata(), found.getTags(), found.getProperties().getContentType(),
                found.getProperties().getAccessTier(), found.getSnapshot() != null),
                List.of("l/1/ä & <tagged>", Map.of("Key", "v"), Map.of("t", "1"), "a/b", AccessTier.COOL, true));
    }

    static void columns() {
        ListBlobsOptions wanted = under("l/").setDetails(DETAILS).setMaxResultsPerPage(5);
        List<List<Object>> xml = facts(wanted.setStorageResponseSerializationFormat(StorageResponseSerializationFormat.XML));
        List<List<Object>> arrow = facts(wanted.setStorageResponseSerializationFormat(StorageResponseSerializationFormat.ARROW));
        equal("number", arrow.size(), 14);
        for (int at = 0; at < 14; at++) {
            equal("item " + at, arrow.get(at), xml.get(at));
        }
        ListBlobsOptions bounded = under("l/").setStorageResponseSerializationFormat(StorageResponseSerializationFormat.ARROW)
                .setStartFrom("l/1/").setEndBefore("l/1/7");
        equal("bounded", BOX.listBlobs(bounded, null).stream().map(BlobItem::getName).toList(),
                List.of("l/1/1", "l/1/10", "l/1/4"));
        ListBlobsOptions folded = under("l/").setStorageResponseSerializationFormat(StorageResponseSerializationFormat.ARROW);
        equal("folders", BOX.listBlobsByHierarchy("/", folded, null).stream().map(BlobItem::getName).toList(),
                List.of("l/0/", "l/1/", "l/2/"));
        equal("prefixes", BOX.listBlobsByHierarchy("/", folded, null).stream().allMatch(BlobItem::isPrefix), true);
    }

    /** What an item says; the formats differ in whether nothing is null or empty. */
    private static List<List<Object>> facts(ListBlobsOptions options) {
        List<List<Object>> all = new ArrayList<>();
        for (BlobItem item : BOX.listBlobs(options, null)) {
            BlobItemProperties found = item.getProperties();
            all.add(Arrays.asList(item.getName(), item.getSnapshot(), orEmpty(item.getMetadata()), orEmpty(item.getTags()),
                    found.getContentLength(), found.getContentType(), found.getETag(), Arrays.toString(found.getContentMd5()),
                    found.getLastModified(), found.getCreationTime(), found.getBlobType(), found.getAccessTier(),
                    Boolean.TRUE.equals(found.isAccessTierInferred()), found.getLeaseState(), found.getLeaseStatus(),
                    found.isServerEncrypted(), found.getTagCount()));
        }
        return all;
    }

    private static Map<String, String> orEmpty(Map<String, String> found) {
        return found == null ? Map.of() : found;
    }
}
