import static suite.Suite.setting;

import com.azure.core.credential.AccessToken;
import com.azure.core.http.netty.NettyAsyncHttpClientBuilder;
import com.azure.storage.blob.BlobServiceClient;
import com.azure.storage.blob.BlobServiceClientBuilder;
import java.io.File;
import java.time.OffsetDateTime;
import reactor.core.publisher.Mono;
import reactor.netty.http.Http11SslContextSpec;
import reactor.netty.http.client.HttpClient;

/** The account over https: the client sends keys and tokens over nothing else. */
final class Secure {
    private static final Http11SslContextSpec TRUST = Http11SslContextSpec.forClient()
            .configure(builder -> builder.trustManager(new File(setting("AUTHORITY"))));
    private static final com.azure.core.http.HttpClient HTTP =
            new NettyAsyncHttpClientBuilder(HttpClient.create().secure(with -> with.sslContext(TRUST))).build();
    static final BlobServiceClient BY_KEY = Store.builder("SECURE").httpClient(HTTP).buildClient();
    static final BlobServiceClient BY_TOKEN = new BlobServiceClientBuilder().endpoint(BY_KEY.getAccountUrl()).httpClient(HTTP)
            .credential(request -> Mono.just(new AccessToken(setting("TOKEN"), OffsetDateTime.now().plusMinutes(30)))).buildClient();

    private Secure() {}
}
