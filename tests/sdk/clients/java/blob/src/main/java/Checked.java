import static com.azure.storage.common.ContentValidationAlgorithm.CRC64;
import static suite.Suite.content;
import static suite.Suite.equal;

import com.azure.core.http.HttpHeaderName;
import com.azure.core.http.HttpPipelineCallContext;
import com.azure.core.http.HttpPipelineNextPolicy;
import com.azure.core.http.HttpRequest;
import com.azure.core.http.HttpResponse;
import com.azure.core.util.BinaryData;
import com.azure.storage.blob.BlobClient;
import com.azure.storage.blob.BlobContainerClient;
import com.azure.storage.blob.models.BlobRange;
import com.azure.storage.blob.models.PageRange;
import com.azure.storage.blob.models.ParallelTransferOptions;
import com.azure.storage.blob.options.AppendBlobAppendBlockOptions;
import com.azure.storage.blob.options.BlobDownloadContentOptions;
import com.azure.storage.blob.options.BlobDownloadStreamOptions;
import com.azure.storage.blob.options.BlobParallelUploadOptions;
import com.azure.storage.blob.options.BlockBlobSimpleUploadOptions;
import com.azure.storage.blob.options.BlockBlobStageBlockOptions;
import com.azure.storage.blob.options.PageBlobUploadPagesOptions;
import java.io.ByteArrayOutputStream;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import reactor.core.publisher.Mono;

/** Content with CRC-64s, which the client sends and asks for as structured messages when it is long. */
final class Checked {
    private static final byte[] DATA = content((9 << 20) + 5);
    private static final HttpHeaderName STRUCTURED = HttpHeaderName.fromString("x-ms-structured-body");
    private static final AtomicInteger SENT = new AtomicInteger();
    private static final AtomicInteger ANSWERED = new AtomicInteger();
    private static final BlobContainerClient BOX = Store.builder("CONNECTION_STRING").addPolicy(Checked::counted).buildClient()
            .getBlobContainerClient("java");

    private Checked() {}

    /** Counts structured messages in both directions. */
    private static Mono<HttpResponse> counted(HttpPipelineCallContext context, HttpPipelineNextPolicy next) {
        return next.process().doOnNext(answer -> {
            HttpRequest request = context.getHttpRequest();
            if (request.getBody() == null && answer.getHeaders().get(STRUCTURED) != null) {
                ANSWERED.incrementAndGet();
            } else if (request.getBody() != null && request.getHeaders().get(STRUCTURED) != null) {
                SENT.incrementAndGet();
            }
        });
    }

    private static byte[] read(BlobClient blob, BlobRange range) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        blob.downloadStreamWithResponse(
                out, new BlobDownloadStreamOptions().setRange(range).setContentValidationAlgorithm(CRC64), null, null);
        return out.toByteArray();
    }

    static void blocks() {
        BlobClient whole = BOX.getBlobClient("checked/whole");
        whole.getBlockBlobClient().uploadWithResponse(
                new BlockBlobSimpleUploadOptions(BinaryData.fromBytes(DATA)).setContentValidationAlgorithm(CRC64), null, null);
        equal("whole", read(whole, null), DATA);
        equal("range", read(whole, new BlobRange(70_000, 5_000_000L)), Arrays.copyOfRange(DATA, 70_000, 5_070_000));
        equal("at once", whole.downloadContentWithResponse(new BlobDownloadContentOptions().setContentValidationAlgorithm(CRC64),
                null, null).getValue().toBytes(), DATA);
        equal("length without the frame of a message", whole.getProperties().getBlobSize(), (long) DATA.length);
        BlobClient parts = BOX.getBlobClient("checked/parts");
        ParallelTransferOptions blocks = new ParallelTransferOptions().setBlockSizeLong(5L << 20).setMaxSingleUploadSizeLong(1L);
        parts.uploadWithResponse(new BlobParallelUploadOptions(BinaryData.fromBytes(DATA)).setParallelTransferOptions(blocks)
                .setContentValidationAlgorithm(CRC64), null, null);
        equal("in parts", parts.downloadContent().toBytes(), DATA);
        BlobClient block = BOX.getBlobClient("checked/block");
        block.getBlockBlobClient().stageBlockWithResponse(
                new BlockBlobStageBlockOptions("MQ==", BinaryData.fromBytes(DATA)).setContentValidationAlgorithm(CRC64),
                null, null);
        block.getBlockBlobClient().commitBlockList(List.of("MQ=="));
        equal("a block", block.downloadContent().toBytes(), DATA);
        equal("structured messages", List.of(SENT.get() > 0, ANSWERED.get() > 0), List.of(true, true));
    }

    static void others() {
        BlobClient log = BOX.getBlobClient("checked/log");
        log.getAppendBlobClient().create();
        byte[] some = Arrays.copyOf(DATA, 4_000_000);
        for (int times = 0; times < 2; times++) {
            log.getAppendBlobClient().appendBlockWithResponse(
                    new AppendBlobAppendBlockOptions(BinaryData.fromBytes(some)).setContentValidationAlgorithm(CRC64),
                    null, null);
        }
        equal("second append", read(log, new BlobRange(4_000_000)), some);
        BlobClient disk = BOX.getBlobClient("checked/disk");
        disk.getPageBlobClient().create(4 << 20);
        byte[] pages = Arrays.copyOf(DATA, 1 << 20);
        PageRange range = new PageRange().setStart(512).setEnd(512 + pages.length - 1);
        disk.getPageBlobClient().uploadPagesWithResponse(
                new PageBlobUploadPagesOptions(range, BinaryData.fromBytes(pages)).setContentValidationAlgorithm(CRC64),
                null, null);
        equal("pages", read(disk, new BlobRange(512, (long) pages.length)), pages);
    }
}
