import static suite.Suite.content;
import static suite.Suite.equal;
import static suite.Suite.setting;

import com.azure.core.util.BinaryData;
import com.azure.storage.blob.BlobClient;
import com.azure.storage.blob.BlobContainerClient;
import com.azure.storage.blob.models.BlobCopyInfo;
import com.azure.storage.blob.models.BlobCopySourceTagsMode;
import com.azure.storage.blob.models.BlobRange;
import com.azure.storage.blob.models.BlobRequestConditions;
import com.azure.storage.blob.models.CopyStatusType;
import com.azure.storage.blob.models.PageRange;
import com.azure.storage.blob.options.BlobBeginCopyOptions;
import com.azure.storage.blob.options.BlobCopyFromUrlOptions;
import com.azure.storage.blob.options.BlobUploadFromUrlOptions;
import com.azure.storage.blob.sas.BlobSasPermission;
import com.azure.storage.blob.sas.BlobServiceSasSignatureValues;
import com.azure.storage.blob.specialized.AppendBlobClient;
import com.azure.storage.blob.specialized.BlockBlobClient;
import com.azure.storage.blob.specialized.PageBlobClient;
import java.io.ByteArrayInputStream;
import java.security.MessageDigest;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/** Copies from another account, and from a blob of the same one. */
final class Copies {
    private static final byte[] DATA = content(70_144);
    private static final String SOURCE = source("from/a + b%.bin");

    private Copies() {}

    private static String source(String name) {
        BlobContainerClient box = Store.SECOND.createBlobContainerIfNotExists("java-source");
        BlobClient made = box.getBlobClient(name);
        made.upload(BinaryData.fromBytes(DATA), true);
        made.setMetadata(Map.of("From", "there"));
        return made.getBlobUrl() + "?" + setting("SECOND_SAS");
    }

    private static void isCopied(BlobClient blob) {
        equal(blob.getBlobName(), blob.downloadContent().toBytes(), DATA);
    }

    static void whole() throws Exception {
        BlobClient later = Store.blob("copied/later");
        BlobCopyInfo done = later.beginCopy(new BlobBeginCopyOptions(SOURCE).setTags(Map.of("t", "1"))
                .setPollInterval(Duration.ofMillis(50))).waitForCompletion().getValue();
        equal("status", done.getCopyStatus(), CopyStatusType.SUCCESS);
        equal("id", later.getProperties().getCopyId(), done.getCopyId());
        equal("metadata", later.getProperties().getMetadata(), Map.of("From", "there"));
        equal("tags", later.getTags(), Map.of("t", "1"));
        BlobClient now = Store.blob("copied/now");
        now.copyFromUrlWithResponse(new BlobCopyFromUrlOptions(SOURCE).setMetadata(Map.of("Mine", "here")), null, null);
        equal("metadata", now.getProperties().getMetadata(), Map.of("Mine", "here"));
        BlobClient put = Store.blob("copied/put");
        byte[] md5 = MessageDigest.getInstance("MD5").digest(DATA);
        BlockBlobClient putter = put.getBlockBlobClient();
        putter.uploadFromUrlWithResponse(new BlobUploadFromUrlOptions(SOURCE).setContentMd5(md5).setCopySourceBlobProperties(true)
                .setCopySourceTagsMode(BlobCopySourceTagsMode.REPLACE).setTags(Map.of("put", "2")), null, null);
        equal("tags", put.getTags(), Map.of("put", "2"));
        for (BlobClient blob : List.of(later, now, put)) {
            isCopied(blob);
        }
        Store.refused(409, "BlobAlreadyExists", () -> putter.uploadFromUrl(SOURCE));
        Store.refused(409, "NoPendingCopyOperation", () -> later.abortCopyFromUrl(done.getCopyId()));
        BlobRequestConditions other = new BlobRequestConditions().setIfMatch("\"0x1\"");
        Store.refused(412, "SourceConditionNotMet", () -> putter.uploadFromUrlWithResponse(
                new BlobUploadFromUrlOptions(SOURCE).setSourceRequestConditions(other), null, null));
        Store.refused(412, "ConditionNotMet", () -> putter.uploadFromUrlWithResponse(
                new BlobUploadFromUrlOptions(SOURCE).setDestinationRequestConditions(other), null, null));
    }

    static void parts() throws Exception {
        BlockBlobClient blocks = Store.blob("copied/blocks").getBlockBlobClient();
        blocks.stageBlockFromUrl("MQ==", SOURCE, new BlobRange(0, 1_000L));
        blocks.stageBlockFromUrl("Mg==", SOURCE, new BlobRange(1_000));
        blocks.commitBlockList(List.of("MQ==", "Mg=="));
        isCopied(Store.blob("copied/blocks"));
        AppendBlobClient log = Store.blob("copied/log").getAppendBlobClient();
        log.create();
        log.appendBlockFromUrl(SOURCE, new BlobRange(0, 70_000L));
        log.appendBlockFromUrl(SOURCE, new BlobRange(70_000));
        isCopied(Store.blob("copied/log"));
        PageBlobClient disk = Store.blob("copied/disk").getPageBlobClient();
        disk.create(DATA.length);
        disk.uploadPagesFromUrl(new PageRange().setStart(512).setEnd(DATA.length - 1), SOURCE, 512L);
        byte[] wanted = DATA.clone();
        Arrays.fill(wanted, 0, 512, (byte) 0);
        equal("pages", disk.downloadContent().toBytes(), wanted);
    }

    static void incremental() throws Exception {
        BlobContainerClient box = Store.BOX;
        PageBlobClient disk = box.getBlobClient("copied/source-disk").getPageBlobClient();
        disk.create(DATA.length);
        disk.uploadPages(new PageRange().setStart(0).setEnd(DATA.length - 1), new ByteArrayInputStream(DATA));
        String snapshot = disk.createSnapshot().getSnapshotId();
        BlobClient copy = box.getBlobClient("copied/increments");
        String signature = disk.generateSas(new BlobServiceSasSignatureValues(
                OffsetDateTime.now(ZoneOffset.UTC).plusMinutes(10), BlobSasPermission.parse("r")));
        copy.getPageBlobClient().copyIncremental(disk.getBlobUrl() + "?" + signature, snapshot);
        for (int tries = 0; tries < 100 && copy.getProperties().getCopyStatus() != CopyStatusType.SUCCESS; tries++) {
            Thread.sleep(50);
        }
        equal("incremental", copy.getProperties().isIncrementalCopy(), true);
        isCopied(copy.getSnapshotClient(copy.getProperties().getCopyDestinationSnapshot()));
    }
}
