import static suite.Suite.equal;

import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import software.amazon.awssdk.services.s3.S3Configuration;
import software.amazon.awssdk.services.s3.presigner.S3Presigner;
import software.amazon.awssdk.services.s3.presigner.model.PresignedGetObjectRequest;
import software.amazon.awssdk.services.s3.presigner.model.PresignedPutObjectRequest;

/** Presigned requests, sent by another client. */
final class Signed {
    private static final Duration MINUTE = Duration.ofMinutes(1);

    private Signed() {}

    static void all() throws Exception {
        try (S3Presigner signer = S3Presigner.builder().endpointOverride(Aws.ENDPOINT).region(Aws.REGION)
                .credentialsProvider(Aws.CREDENTIALS)
                .serviceConfiguration(S3Configuration.builder().pathStyleAccessEnabled(true).build()).build()) {
            PresignedPutObjectRequest put = signer.presignPutObject(with -> with.signatureDuration(MINUTE)
                    .putObjectRequest(what -> what.bucket(Aws.BUCKET).key("signed +ü").contentType("text/x")));
            HttpClient other = HttpClient.newHttpClient();
            HttpRequest.Builder sent = HttpRequest.newBuilder(put.url().toURI()).header("content-type", "text/x")
                    .PUT(HttpRequest.BodyPublishers.ofString("signed"));
            equal("put", other.send(sent.build(), HttpResponse.BodyHandlers.discarding()).statusCode(), 200);
            sent.setHeader("content-type", "text/y");
            equal("another type", other.send(sent.build(), HttpResponse.BodyHandlers.discarding()).statusCode(), 403);
            PresignedGetObjectRequest get = signer.presignGetObject(with -> with.signatureDuration(MINUTE)
                    .getObjectRequest(what -> what.bucket(Aws.BUCKET).key("signed +ü").responseContentDisposition("inline")));
            HttpResponse<String> answer = other.send(HttpRequest.newBuilder(get.url().toURI()).build(),
                    HttpResponse.BodyHandlers.ofString());
            equal("get", answer.statusCode() + answer.body() + answer.headers().firstValue("content-disposition").get(),
                    "200signedinline");
        }
    }
}
