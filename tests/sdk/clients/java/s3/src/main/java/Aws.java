import static suite.Suite.equal;
import static suite.Suite.setting;

import java.net.URI;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.core.sync.RequestBody;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.retries.DefaultRetryStrategy;
import software.amazon.awssdk.services.s3.S3AsyncClient;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.s3.model.S3Exception;
import suite.Suite.Group;

/** The clients of the AWS SDK, and what all groups need. */
final class Aws {
    static final URI ENDPOINT = URI.create(setting("ENDPOINT"));
    static final String BUCKET = setting("BUCKET");
    /** The least size of a part but the last. */
    static final long PART = 5 << 20;
    static final Region REGION = Region.US_EAST_1;
    static final StaticCredentialsProvider CREDENTIALS =
            StaticCredentialsProvider.create(AwsBasicCredentials.create(setting("KEY_ID"), setting("SECRET")));
    /** One try for each request, so that its answer is the server's. */
    static final S3Client SYNC = S3Client.builder().endpointOverride(ENDPOINT).region(REGION).credentialsProvider(CREDENTIALS)
            .forcePathStyle(true).overrideConfiguration(with -> with.retryStrategy(DefaultRetryStrategy.doNotRetry())).build();
    /** Splits long objects in parts by itself. */
    static final S3AsyncClient ASYNC = S3AsyncClient.builder().endpointOverride(ENDPOINT).region(REGION)
            .credentialsProvider(CREDENTIALS).forcePathStyle(true).multipartEnabled(true)
            .multipartConfiguration(with -> with.minimumPartSizeInBytes(PART).thresholdInBytes(PART))
            .overrideConfiguration(with -> with.retryStrategy(DefaultRetryStrategy.doNotRetry())).build();

    private Aws() {}

    static void put(String key, String text) {
        SYNC.putObject(with -> with.bucket(BUCKET).key(key), RequestBody.fromString(text));
    }

    static String read(String key) {
        return SYNC.getObjectAsBytes(with -> with.bucket(BUCKET).key(key)).asUtf8String();
    }

    /** Throws unless the service refuses with this status and code. */
    static void refused(int status, String code, Group call) throws Exception {
        try {
            call.run();
        } catch (S3Exception refusal) {
            equal("refusal", refusal.statusCode() + " " + refusal.awsErrorDetails().errorCode(), status + " " + code);
            return;
        }
        throw new AssertionError("not refused with " + code);
    }
}
