import static suite.Suite.content;
import static suite.Suite.equal;
import static suite.Suite.setting;

import io.minio.BucketExistsArgs;
import io.minio.ComposeObjectArgs;
import io.minio.ComposeSource;
import io.minio.CopyObjectArgs;
import io.minio.CopySource;
import io.minio.GetObjectArgs;
import io.minio.GetPresignedObjectUrlArgs;
import io.minio.ListObjectsArgs;
import io.minio.MinioClient;
import io.minio.PutObjectArgs;
import io.minio.RemoveObjectsArgs;
import io.minio.Result;
import io.minio.SetObjectTagsArgs;
import io.minio.GetObjectTagsArgs;
import io.minio.StatObjectArgs;
import io.minio.StatObjectResponse;
import io.minio.errors.ErrorResponseException;
import io.minio.http.Method;
import io.minio.messages.DeleteError;
import io.minio.messages.DeleteObject;
import io.minio.messages.Item;
import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/** minio-java. */
final class Minio {
    private static final MinioClient CLIENT = MinioClient.builder().endpoint(setting("ENDPOINT")).region("us-east-1")
            .credentials(setting("KEY_ID"), setting("SECRET")).build();
    private static final byte[] LARGE = content((11 << 20) + 3);

    private Minio() {}

    private static byte[] read(GetObjectArgs what) throws Exception {
        try (InputStream in = CLIENT.getObject(what)) {
            return in.readAllBytes();
        }
    }

    private static GetObjectArgs.Builder at(String key) {
        return GetObjectArgs.builder().bucket(Aws.BUCKET).object(key);
    }

    static void objects() throws Exception {
        equal("bucket", CLIENT.bucketExists(BucketExistsArgs.builder().bucket(Aws.BUCKET).build()), true);
        for (long size : new long[] {LARGE.length, -1}) {
            CLIENT.putObject(PutObjectArgs.builder().bucket(Aws.BUCKET).object("minio/of " + size)
                    .userMetadata(Map.of("color", "green"))
                    .stream(new ByteArrayInputStream(LARGE), size, Aws.PART).contentType("text/x").build());
            equal("content", read(at("minio/of " + size).build()), LARGE);
        }
        equal("range", read(at("minio/of -1").offset(100L).length(50L).build()), Arrays.copyOfRange(LARGE, 100, 150));
        StatObjectResponse facts = CLIENT.statObject(StatObjectArgs.builder().bucket(Aws.BUCKET).object("minio/of -1").build());
        equal("described", List.of(facts.size(), facts.contentType(), facts.userMetadata().get("color")),
                List.of((long) LARGE.length, "text/x", "green"));
        try {
            read(at("minio/missing").build());
            throw new AssertionError("a missing object is read");
        } catch (ErrorResponseException refusal) {
            equal("code", refusal.errorResponse().code(), "NoSuchKey");
        }
    }

    static void rest() throws Exception {
        CLIENT.setObjectTags(SetObjectTagsArgs.builder().bucket(Aws.BUCKET).object("minio/of -1").tags(Map.of("a", "b")).build());
        equal("tags", CLIENT.getObjectTags(GetObjectTagsArgs.builder().bucket(Aws.BUCKET).object("minio/of -1").build()).get(),
                Map.of("a", "b"));
        CLIENT.copyObject(CopyObjectArgs.builder().bucket(Aws.BUCKET).object("minio/copy")
                .source(CopySource.builder().bucket(Aws.BUCKET).object("minio/of -1").build()).build());
        CLIENT.composeObject(ComposeObjectArgs.builder().bucket(Aws.BUCKET).object("minio/composed").sources(List.of(
                ComposeSource.builder().bucket(Aws.BUCKET).object("minio/copy").build(),
                ComposeSource.builder().bucket(Aws.BUCKET).object("minio/copy").offset(10L).length(20L).build())).build());
        byte[] composed = read(at("minio/composed").build());
        equal("composed", Arrays.copyOfRange(composed, LARGE.length, composed.length), Arrays.copyOfRange(LARGE, 10, 30));
        String url = CLIENT.getPresignedObjectUrl(GetPresignedObjectUrlArgs.builder().method(Method.GET).bucket(Aws.BUCKET)
                .object("minio/copy").expiry(60).build());
        HttpResponse<byte[]> answer = HttpClient.newHttpClient().send(HttpRequest.newBuilder(URI.create(url)).build(),
                HttpResponse.BodyHandlers.ofByteArray());
        equal("presigned", answer.body(), LARGE);
        List<DeleteObject> names = new ArrayList<>();
        for (Result<Item> one : CLIENT.listObjects(ListObjectsArgs.builder().bucket(Aws.BUCKET).prefix("minio/")
                .maxKeys(2).build())) {
            names.add(new DeleteObject(one.get().objectName()));
        }
        equal("listed", names.size(), 4);
        for (Result<DeleteError> failed : CLIENT.removeObjects(
                RemoveObjectsArgs.builder().bucket(Aws.BUCKET).objects(names).build())) {
            throw new AssertionError("not removed: " + failed.get().objectName());
        }
        equal("left", CLIENT.listObjects(ListObjectsArgs.builder().bucket(Aws.BUCKET).prefix("minio/").build()).iterator()
                .hasNext(),
                false);
    }
}
