import static suite.Suite.equal;

import com.azure.core.http.netty.NettyAsyncHttpClientBuilder;
import com.azure.core.util.BinaryData;
import com.azure.storage.blob.BlobContainerClient;
import java.util.concurrent.atomic.AtomicInteger;
import reactor.netty.http.client.HttpClient;
import reactor.netty.resources.ConnectionProvider;

/** HTTP/1.1 connections are used again, after refusals too. */
final class Connections {
    private Connections() {}

    static void kept() throws Exception {
        AtomicInteger made = new AtomicInteger();
        HttpClient counting = HttpClient.create(ConnectionProvider.create("java", 1))
                .doOnChannelInit((observer, channel, address) -> made.incrementAndGet());
        BlobContainerClient box = Store.builder("CONNECTION_STRING").httpClient(new NettyAsyncHttpClientBuilder(counting).build())
                .buildClient().getBlobContainerClient("java");
        for (int number = 0; number < 20; number++) {
            int at = number;
            box.getBlobClient("kept").upload(BinaryData.fromString("x" + at), true);
            equal("content", box.getBlobClient("kept").downloadContent().toString(), "x" + at);
            Store.refused(404, "BlobNotFound", () -> box.getBlobClient("not-kept").downloadContent());
            Store.refused(409, "BlobAlreadyExists", () -> box.getBlobClient("kept")
                    .upload(BinaryData.fromBytes(new byte[100_000])));
        }
        equal("connections", made.get(), 1);
    }
}
