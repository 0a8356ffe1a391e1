import static suite.Suite.equal;
import static suite.Suite.setting;

import com.azure.core.util.BinaryData;
import com.azure.storage.blob.BlobClient;
import com.azure.storage.blob.BlobServiceClient;
import com.azure.storage.blob.BlobServiceClientBuilder;
import com.azure.storage.blob.models.AccessTier;
import com.azure.storage.blob.models.AccountKind;
import com.azure.storage.blob.models.ArchiveStatus;
import com.azure.storage.blob.models.BlobCorsRule;
import com.azure.storage.blob.models.BlobRequestConditions;
import com.azure.storage.blob.models.BlobServiceProperties;
import com.azure.storage.blob.models.GeoReplicationStatus;
import com.azure.storage.blob.models.RehydratePriority;
import com.azure.storage.blob.models.StaticWebsite;
import com.azure.storage.blob.models.TaggedBlobItem;
import com.azure.storage.blob.options.BlobParallelUploadOptions;
import com.azure.storage.blob.options.BlobSetAccessTierOptions;
import com.azure.storage.common.StorageSharedKeyCredential;
import java.util.List;
import java.util.Map;

/** Tags, tiers, and what the account says of itself. */
final class Facts {
    private Facts() {}

    static void tags() throws Exception {
        BlobClient blob = Store.blob("tagged");
        blob.uploadWithResponse(new BlobParallelUploadOptions(BinaryData.fromString("x")).setTags(Map.of("mark", "java")),
                null, null);
        Map<String, String> tags = Map.of("mark", "java", "with space", "+-./:=_ 1");
        blob.setTags(tags);
        equal("tags", blob.getTags(), tags);
        equal("count", blob.getProperties().getTagCount(), 2L);
        Store.refused(412, "ConditionNotMet", () -> blob.downloadContentWithResponse(
                null, new BlobRequestConditions().setTagsConditions("\"mark\"='other'"), null, null));
        String query = "\"mark\"='java'";
        for (int tries = 0; tries < 50 && Store.all(Store.SERVICE.findBlobsByTags(query)).isEmpty(); tries++) {
            Thread.sleep(100);
        }
        TaggedBlobItem found = Store.all(Store.SERVICE.findBlobsByTags(query)).get(0);
        equal("found", List.of(found.getContainerName(), found.getName(), found.getTags()),
                List.of("java", "tagged", Map.of("mark", "java")));
        equal("in the container", Store.BOX.findBlobsByTags(query).stream().map(TaggedBlobItem::getName).toList(),
                List.of("tagged"));
        Store.refused(400, "InvalidQueryParameterValue", () -> Store.all(Store.SERVICE.findBlobsByTags("mark ~ 1")));
    }

    static void tiers() throws Exception {
        BlobClient blob = Store.written("tiered", "x");
        equal("inferred", blob.getProperties().isAccessTierInferred(), true);
        for (AccessTier tier : List.of(AccessTier.COOL, AccessTier.COLD, AccessTier.ARCHIVE)) {
            blob.setAccessTier(tier);
            equal("tier", blob.getProperties().getAccessTier(), tier);
        }
        Store.refused(409, "BlobArchived", blob::downloadContent);
        blob.setAccessTierWithResponse(new BlobSetAccessTierOptions(AccessTier.HOT).setPriority(RehydratePriority.HIGH),
                null, null);
        for (int tries = 0; tries < 100 && blob.getProperties().getArchiveStatus() != null; tries++) {
            equal("status", blob.getProperties().getArchiveStatus(), ArchiveStatus.REHYDRATE_PENDING_TO_HOT);
            Thread.sleep(100);
        }
        equal("content", blob.downloadContent().toString(), "x");
    }

    static void tokens() throws Exception {
        BlobClient blob = Secure.BY_TOKEN.getBlobContainerClient("java").getBlobClient("by-token");
        blob.upload(BinaryData.fromString("by a token"));
        equal("content", Store.blob("by-token").downloadContent().toString(), "by a token");
        Store.refused(403, "AuthorizationPermissionMismatch", () -> blob.setTags(Map.of("a", "b")));
    }

    static void account() {
        BlobCorsRule rule = new BlobCorsRule().setAllowedOrigins("*").setAllowedMethods("GET,PUT")
                .setAllowedHeaders("x-ms-meta-*")
                .setExposedHeaders("").setMaxAgeInSeconds(60);
        BlobServiceProperties before = Store.SERVICE.getProperties();
        Store.SERVICE.setProperties(new BlobServiceProperties().setCors(List.of(rule)).setStaticWebsite(
                new StaticWebsite().setEnabled(true).setIndexDocument("index.html")));
        BlobServiceProperties found = Store.SERVICE.getProperties();
        BlobCorsRule kept = found.getCors().get(0);
        equal("rule", List.of(kept.getAllowedOrigins(), kept.getAllowedMethods(), kept.getAllowedHeaders(),
                kept.getMaxAgeInSeconds()),
                List.of("*", "GET,PUT", "x-ms-meta-*", 60));
        equal("site", List.of(found.getStaticWebsite().isEnabled(), found.getStaticWebsite().getIndexDocument()),
                List.of(true, "index.html"));
        Store.SERVICE.setProperties(before.setCors(List.of()).setStaticWebsite(new StaticWebsite().setEnabled(false)));
        equal("rules", Store.SERVICE.getProperties().getCors().size(), 0);
        equal("kind", Store.SERVICE.getAccountInfo().getAccountKind(), AccountKind.STORAGE_V2);
        StorageSharedKeyCredential key = StorageSharedKeyCredential.fromConnectionString(setting("CONNECTION_STRING"));
        BlobServiceClient secondary = new BlobServiceClientBuilder().credential(key)
                .endpoint(Store.SERVICE.getAccountUrl() + "-secondary").buildClient();
        equal("replication", secondary.getStatistics().getGeoReplication().getStatus(), GeoReplicationStatus.LIVE);
        equal("kind by a container", Store.BOX.getAccountInfo(null).getAccountKind(), AccountKind.STORAGE_V2);
    }
}
