import static suite.Suite.content;
import static suite.Suite.equal;

import com.azure.core.http.HttpRange;
import com.azure.core.util.BinaryData;
import com.azure.storage.blob.BlobClient;
import com.azure.storage.blob.models.AppendBlobItem;
import com.azure.storage.blob.models.AppendBlobRequestConditions;
import com.azure.storage.blob.models.BlobProperties;
import com.azure.storage.blob.models.BlobRange;
import com.azure.storage.blob.models.PageBlobRequestConditions;
import com.azure.storage.blob.models.PageRange;
import com.azure.storage.blob.models.PageRangeItem;
import com.azure.storage.blob.models.SequenceNumberActionType;
import com.azure.storage.blob.options.AppendBlobAppendBlockOptions;
import com.azure.storage.blob.options.ListPageRangesOptions;
import com.azure.storage.blob.options.PageBlobUploadPagesOptions;
import com.azure.storage.blob.specialized.AppendBlobClient;
import com.azure.storage.blob.specialized.PageBlobClient;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.OutputStream;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;

/** Append blobs and page blobs. */
final class OtherTypes {
    private static final int PAGE = 512;

    private OtherTypes() {}

    static void appends() throws Exception {
        AppendBlobClient log = Store.blob("append").getAppendBlobClient();
        log.create();
        Store.refused(409, "BlobAlreadyExists", log::create);
        equal("made again", log.createIfNotExistsWithResponse(null, null, null).getStatusCode(), 409);
        log.appendBlock(new ByteArrayInputStream(Store.bytes("one,")), 4);
        AppendBlobAppendBlockOptions second = new AppendBlobAppendBlockOptions(BinaryData.fromString("two,"))
                .setRequestConditions(new AppendBlobRequestConditions().setAppendPosition(4L));
        AppendBlobItem done = log.appendBlockWithResponse(second, null, null).getValue();
        equal("offset and blocks", List.of(done.getBlobAppendOffset(), done.getBlobCommittedBlockCount()), List.of("4", 2));
        Store.refused(412, "AppendPositionConditionNotMet", () -> log.appendBlockWithResponse(second, null, null));
        Store.refused(412, "MaxBlobSizeConditionNotMet", () -> log.appendBlockWithResponse(
                new AppendBlobAppendBlockOptions(BinaryData.fromString("x")).setRequestConditions(
                        new AppendBlobRequestConditions().setMaxSize(8L)), null, null));
        try (OutputStream out = log.getBlobOutputStream()) {
            out.write(Store.bytes("three"));
        }
        log.seal();
        Store.refused(409, "BlobIsSealed", () -> log.appendBlock(new ByteArrayInputStream(new byte[1]), 1));
        equal("content", log.downloadContent().toString(), "one,two,three");
        equal("sealed", log.getProperties().isSealed(), true);
    }

    static void pages() throws Exception {
        PageBlobClient disk = Store.blob("page").getPageBlobClient();
        disk.create(8 * PAGE);
        byte[] data = content(4 * PAGE);
        disk.uploadPages(range(1, 4), new ByteArrayInputStream(data));
        disk.clearPages(range(2, 1));
        equal("ranges", ranges(disk.listPageRanges(new BlobRange(0)).stream()), List.of("1-1", "3-4"));
        equal("ranges of a part", ranges(disk.listPageRanges(new BlobRange(4 * PAGE, 4L * PAGE)).stream()), List.of("4-4"));
        long pages = disk.listPageRanges(new ListPageRangesOptions(new BlobRange(0)).setMaxResultsPerPage(1), null, null)
                .streamByPage().count();
        equal("pages of ranges", pages, 2L);
        BlobClient former = Store.blob("page").getSnapshotClient(disk.createSnapshot().getSnapshotId());
        disk.uploadPages(range(6, 1), new ByteArrayInputStream(data, 0, PAGE));
        disk.clearPages(range(3, 1));
        equal("changes", ranges(disk.listPageRangesDiff(new BlobRange(0), former.getSnapshotId()).stream()),
                List.of("6-6", "cleared 3-3"));
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        disk.downloadStream(out);
        byte[] wanted = new byte[8 * PAGE];
        System.arraycopy(data, 0, wanted, PAGE, PAGE);
        System.arraycopy(data, 3 * PAGE, wanted, 4 * PAGE, PAGE);
        System.arraycopy(data, 0, wanted, 6 * PAGE, PAGE);
        equal("content", out.toByteArray(), wanted);
        equal("content of the snapshot", Arrays.copyOfRange(former.downloadContent().toBytes(), 3 * PAGE, 4 * PAGE),
                Arrays.copyOfRange(data, 2 * PAGE, 3 * PAGE));
        Store.refused(416, "InvalidPageRange", () -> disk.uploadPages(range(8, 1), new ByteArrayInputStream(data, 0, PAGE)));
    }

    static void sequenceNumbers() throws Exception {
        PageBlobClient disk = Store.blob("numbered").getPageBlobClient();
        disk.create(2 * PAGE);
        disk.updateSequenceNumber(SequenceNumberActionType.UPDATE, 5L);
        disk.updateSequenceNumber(SequenceNumberActionType.INCREMENT, null);
        PageBlobUploadPagesOptions late = new PageBlobUploadPagesOptions(range(0, 1), BinaryData.fromBytes(new byte[PAGE]))
                .setRequestConditions(new PageBlobRequestConditions().setIfSequenceNumberLessThan(6L));
        Store.refused(412, "SequenceNumberConditionNotMet", () -> disk.uploadPagesWithResponse(late, null, null));
        disk.resize(4 * PAGE);
        BlobProperties found = disk.getProperties();
        equal("number and length", List.of(found.getBlobSequenceNumber(), found.getBlobSize()), List.of(6L, 4L * PAGE));
        try (OutputStream out = disk.getBlobOutputStream(range(1, 2))) {
            out.write(content(2 * PAGE));
        }
        equal("ranges", ranges(disk.listPageRanges(new BlobRange(0)).stream()), List.of("1-2"));
    }

    private static PageRange range(int first, int pages) {
        return new PageRange().setStart(first * PAGE).setEnd((first + pages) * PAGE - 1);
    }

    private static List<String> ranges(Stream<PageRangeItem> items) {
        return items.map(item -> {
            HttpRange found = item.getRange();
            long first = found.getOffset() / PAGE;
            return (item.isClear() ? "cleared " : "") + first + "-" + (first + found.getLength() / PAGE - 1);
        }).toList();
    }
}
