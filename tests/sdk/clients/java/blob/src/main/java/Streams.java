import static suite.Suite.content;
import static suite.Suite.equal;

import com.azure.core.util.BinaryData;
import com.azure.core.util.Context;
import com.azure.storage.blob.BlobClient;
import com.azure.storage.blob.models.BlobRange;
import com.azure.storage.blob.models.BlobSeekableByteChannelReadResult;
import com.azure.storage.blob.models.ConsistentReadControl;
import com.azure.storage.blob.models.ParallelTransferOptions;
import com.azure.storage.blob.options.BlobInputStreamOptions;
import com.azure.storage.blob.options.BlobSeekableByteChannelReadOptions;
import com.azure.storage.blob.options.BlockBlobOutputStreamOptions;
import com.azure.storage.blob.options.BlockBlobSeekableByteChannelWriteOptions;
import com.azure.storage.blob.options.BlockBlobSeekableByteChannelWriteOptions.WriteMode;
import com.azure.storage.blob.specialized.BlobInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.channels.SeekableByteChannel;
import java.util.Arrays;
import java.util.Map;

/** Streams and channels over blobs. */
final class Streams {
    private static final int BLOCK = 1 << 20;
    private static final byte[] DATA = content(3 * BLOCK + 77);

    private Streams() {}

    static void streams() throws Exception {
        BlobClient blob = Store.blob("stream");
        BlockBlobOutputStreamOptions options = new BlockBlobOutputStreamOptions().setMetadata(Map.of("Written", "streamed"))
                .setParallelTransferOptions(new ParallelTransferOptions().setBlockSizeLong((long) BLOCK)
                        .setMaxSingleUploadSizeLong((long) BLOCK));
        try (OutputStream out = blob.getBlockBlobClient().getBlobOutputStream(options)) {
            for (int at = 0; at < DATA.length; at += 100_000) {
                out.write(DATA, at, Math.min(100_000, DATA.length - at));
            }
        }
        equal("metadata", blob.getProperties().getMetadata(), Map.of("Written", "streamed"));
        try (BlobInputStream in = blob.openInputStream(new BlobInputStreamOptions().setBlockSize(BLOCK))) {
            in.mark(DATA.length);
            equal("content", in.readAllBytes(), DATA);
            in.reset();
            equal("skipped", in.skip(2_000_000), 2_000_000L);
            equal("rest", in.readAllBytes(), Arrays.copyOfRange(DATA, 2_000_000, DATA.length));
        }
        try (BlobInputStream in = blob.openInputStream(new BlobRange(10, 20L), null)) {
            equal("range", in.readAllBytes(), Arrays.copyOfRange(DATA, 10, 30));
        }
    }

    static void changedWhileRead() throws Exception {
        BlobClient blob = Store.blob("changed");
        blob.upload(BinaryData.fromBytes(DATA), true);
        BlobInputStreamOptions options = new BlobInputStreamOptions().setBlockSize(BLOCK)
                .setConsistentReadControl(ConsistentReadControl.ETAG);
        try (BlobInputStream in = blob.openInputStream(options)) {
            equal("first bytes", in.readNBytes(100), Arrays.copyOf(DATA, 100));
            blob.upload(BinaryData.fromBytes(content(DATA.length)), true);
            try {
                in.readAllBytes();
            } catch (IOException refusal) {
                equal("says 412", refusal.getMessage().contains("412"), true);
                return;
            }
        }
        throw new AssertionError("a stream of two states");
    }

    static void channels() throws Exception {
        BlobClient blob = Store.blob("channel");
        try (SeekableByteChannel out = blob.getBlockBlobClient().openSeekableByteChannelWrite(
                new BlockBlobSeekableByteChannelWriteOptions(WriteMode.OVERWRITE).setBlockSizeInBytes((long) BLOCK))) {
            ByteBuffer left = ByteBuffer.wrap(DATA);
            while (left.hasRemaining()) {
                out.write(left);
            }
        }
        BlobSeekableByteChannelReadResult opened = blob.openSeekableByteChannelRead(
                new BlobSeekableByteChannelReadOptions().setReadSizeInBytes(64 << 10), Context.NONE);
        equal("length", opened.getProperties().getBlobSize(), (long) DATA.length);
        try (SeekableByteChannel in = opened.getChannel()) {
            for (int at : new int[] {3 * BLOCK, 5, BLOCK - 3}) {
                ByteBuffer some = ByteBuffer.allocate(70);
                in.position(at);
                while (some.hasRemaining() && in.read(some) >= 0) {
                    // As many reads as it takes.
                }
                equal("bytes at " + at, some.array(), Arrays.copyOfRange(DATA, at, at + 70));
            }
        }
    }
}
