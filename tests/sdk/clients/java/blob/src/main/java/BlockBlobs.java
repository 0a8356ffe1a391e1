import static suite.Suite.content;
import static suite.Suite.equal;
import static suite.Suite.setting;

import com.azure.core.util.BinaryData;
import com.azure.core.util.Context;
import com.azure.storage.blob.BlobClient;
import com.azure.storage.blob.models.AccessTier;
import com.azure.storage.blob.models.Block;
import com.azure.storage.blob.models.BlobHttpHeaders;
import com.azure.storage.blob.models.BlobProperties;
import com.azure.storage.blob.models.BlobRange;
import com.azure.storage.blob.models.BlobRequestConditions;
import com.azure.storage.blob.models.BlockList;
import com.azure.storage.blob.models.BlockListType;
import com.azure.storage.blob.models.DownloadRetryOptions;
import com.azure.storage.blob.models.ParallelTransferOptions;
import com.azure.storage.blob.options.BlobDownloadToFileOptions;
import com.azure.storage.blob.options.BlobParallelUploadOptions;
import com.azure.storage.blob.options.BlobUploadFromFileOptions;
import com.azure.storage.blob.options.BlockBlobStageBlockOptions;
import com.azure.storage.blob.specialized.BlockBlobClient;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;

/** Block blobs: whole, in parts, by blocks, and under conditions. */
final class BlockBlobs {
    private static final long MIB = 1 << 20;
    private static final byte[] LARGE = content((9 << 20) + 7);

    private BlockBlobs() {}

    private static ParallelTransferOptions parts() {
        return new ParallelTransferOptions().setBlockSizeLong(MIB).setMaxSingleUploadSizeLong(MIB).setMaxConcurrency(4);
    }

    static void whole() throws Exception {
        BlobClient blob = Store.blob("dir/with space+%41 ü.txt");
        BlobHttpHeaders headers = new BlobHttpHeaders().setContentType("text/x").setContentLanguage("de")
                .setCacheControl("no-cache")
                .setContentDisposition("inline").setContentEncoding("identity");
        Map<String, String> metadata = Map.of("CamelCase", "v", "lower", "with space");
        blob.uploadWithResponse(new BlobParallelUploadOptions(BinaryData.fromString("hello")).setHeaders(headers)
                .setMetadata(metadata).setTier(AccessTier.COOL).setComputeMd5(true), null, null);
        equal("content", blob.downloadContent().toString(), "hello");
        BlobProperties found = blob.getProperties();
        equal("headers", List.of(found.getContentType(), found.getContentLanguage(), found.getCacheControl(),
                found.getContentDisposition(), found.getContentEncoding()),
                List.of("text/x", "de", "no-cache", "inline", "identity"));
        equal("metadata", found.getMetadata(), metadata);
        equal("MD5", found.getContentMd5(), MessageDigest.getInstance("MD5").digest(Store.bytes("hello")));
        equal("tier", found.getAccessTier(), AccessTier.COOL);
        blob.setHttpHeaders(new BlobHttpHeaders().setContentType("text/y"));
        blob.setMetadata(Map.of("Other", "w"));
        found = blob.getProperties();
        equal("changed", Arrays.asList(found.getContentType(), found.getContentLanguage(), found.getMetadata()),
                Arrays.asList("text/y", null, Map.of("Other", "w")));
        equal("empty", Store.written("empty", "").downloadContent().getLength(), 0L);
    }

    static void inParts() throws Exception {
        BlobClient blob = Store.blob("large");
        AtomicLong sent = new AtomicLong();
        blob.uploadWithResponse(new BlobParallelUploadOptions(new ByteArrayInputStream(LARGE)).setParallelTransferOptions(
                parts().setProgressListener(sent::set)), null, null);
        equal("progress", sent.get(), (long) LARGE.length);
        BlockList blocks = blob.getBlockBlobClient().listBlocks(BlockListType.ALL);
        equal("blocks", List.of(blocks.getCommittedBlocks().size(), blocks.getUncommittedBlocks().size()), List.of(10, 0));
        Path file = Files.createTempFile(Path.of(setting("SCRATCH")), "large", "");
        blob.downloadToFileWithResponse(
                new BlobDownloadToFileOptions(file.toString()).setParallelTransferOptions(
                        new com.azure.storage.common.ParallelTransferOptions().setBlockSizeLong(MIB).setMaxConcurrency(4))
                        .setOpenOptions(Set.of(StandardOpenOption.WRITE)), null, null);
        equal("file", Files.readAllBytes(file), LARGE);
        BlobClient again = Store.blob("from-file");
        again.uploadFromFileWithResponse(new BlobUploadFromFileOptions(file.toString())
                .setParallelTransferOptions(parts()), null, null);
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        again.downloadStreamWithResponse(out, null, new DownloadRetryOptions().setMaxRetryRequests(3), null, false, null, null);
        equal("content from a file", out.toByteArray(), LARGE);
        Files.delete(file);
    }


    static void ranges() throws Exception {
        BlobClient blob = Store.blob("ranges");
        blob.upload(BinaryData.fromBytes(LARGE), true);
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        byte[] wanted = Arrays.copyOfRange(LARGE, 1_000, 1_100);
        byte[] md5 = blob.downloadStreamWithResponse(out, new BlobRange(1_000, 100L), null, null, true, null, Context.NONE)
                .getDeserializedHeaders().getContentMd5();
        equal("range", out.toByteArray(), wanted);
        equal("MD5 of the range", md5, MessageDigest.getInstance("MD5").digest(wanted));
        out.reset();
        blob.downloadStreamWithResponse(out, new BlobRange(LARGE.length - 5L), null, null, false, null, Context.NONE);
        equal("last bytes", out.toByteArray(), Arrays.copyOfRange(LARGE, LARGE.length - 5, LARGE.length));
        Store.refused(416, "InvalidRange", () -> blob.downloadStreamWithResponse(
                new ByteArrayOutputStream(), new BlobRange(LARGE.length + 1L), null, null, false, null, Context.NONE));
    }

    static void blocks() throws Exception {
        BlockBlobClient blob = Store.blob("blocks").getBlockBlobClient();
        String one = id("one"), two = id("two");
        blob.stageBlock(one, BinaryData.fromString("1"));
        byte[] md5 = MessageDigest.getInstance("MD5").digest(Store.bytes("22"));
        blob.stageBlockWithResponse(new BlockBlobStageBlockOptions(two, BinaryData.fromString("22")).setContentMd5(md5),
                null, null);
        Store.refused(400, "Md5Mismatch", () -> blob.stageBlockWithResponse(
                new BlockBlobStageBlockOptions(two, BinaryData.fromString("33")).setContentMd5(md5), null, null));
        Store.refused(404, "BlobNotFound", blob::downloadContent);
        equal("staged", names(blob.listBlocks(BlockListType.UNCOMMITTED).getUncommittedBlocks()), List.of(one, two));
        blob.commitBlockList(List.of(two, one, two));
        equal("content", blob.downloadContent().toString(), "22122");
        equal("committed", names(blob.listBlocks(BlockListType.COMMITTED).getCommittedBlocks()), List.of(two, one, two));
        Store.refused(400, "InvalidBlockList", () -> blob.commitBlockList(List.of(id("six")), true));
        Store.refused(409, "BlobAlreadyExists", () -> blob.commitBlockList(List.of(one)));
    }

    private static String id(String text) {
        return Base64.getEncoder().encodeToString(Store.bytes(text));
    }

    private static List<String> names(List<Block> blocks) {
        return blocks.stream().map(Block::getName).toList();
    }

    static void conditions() throws Exception {
        BlobClient blob = Store.written("conditions", "one");
        BlobProperties found = blob.getProperties();
        Store.refused(409, "BlobAlreadyExists", () -> blob.upload(BinaryData.fromString("x")));
        BlobRequestConditions same = new BlobRequestConditions().setIfMatch(found.getETag());
        BlobRequestConditions later = new BlobRequestConditions().setIfModifiedSince(found.getLastModified());
        BlobRequestConditions other = new BlobRequestConditions().setIfNoneMatch(found.getETag());
        equal("same", blob.downloadContentWithResponse(null, same, null, null).getValue().toString(), "one");
        Store.refused(304, "ConditionNotMet", () -> blob.downloadContentWithResponse(null, later, null, null));
        Store.refused(304, "ConditionNotMet", () -> blob.getPropertiesWithResponse(other, null, null));
        BlobParallelUploadOptions change = new BlobParallelUploadOptions(BinaryData.fromString("two")).setRequestConditions(same);
        blob.uploadWithResponse(change, null, null);
        Store.refused(412, "ConditionNotMet", () -> blob.uploadWithResponse(change, null, null));
        Store.refused(412, "ConditionNotMet", () -> blob.deleteWithResponse(null, same, null, null));
        equal("content", blob.downloadContent().toString(), "two");
    }
}
