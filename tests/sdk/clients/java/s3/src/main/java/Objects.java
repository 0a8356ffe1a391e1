import static suite.Suite.content;
import static suite.Suite.equal;

import java.io.ByteArrayInputStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import software.amazon.awssdk.core.ResponseBytes;
import software.amazon.awssdk.core.ResponseInputStream;
import software.amazon.awssdk.core.sync.RequestBody;
import software.amazon.awssdk.services.s3.model.ChecksumAlgorithm;
import software.amazon.awssdk.services.s3.model.ChecksumMode;
import software.amazon.awssdk.services.s3.model.CommonPrefix;
import software.amazon.awssdk.services.s3.model.CompletedPart;
import software.amazon.awssdk.services.s3.model.DeleteObjectsResponse;
import software.amazon.awssdk.services.s3.model.GetObjectAttributesResponse;
import software.amazon.awssdk.services.s3.model.GetObjectResponse;
import software.amazon.awssdk.services.s3.model.HeadObjectResponse;
import software.amazon.awssdk.services.s3.model.ListObjectsV2Response;
import software.amazon.awssdk.services.s3.model.ObjectAttributes;
import software.amazon.awssdk.services.s3.model.ObjectIdentifier;
import software.amazon.awssdk.services.s3.model.PutObjectResponse;
import software.amazon.awssdk.services.s3.model.S3Object;
import software.amazon.awssdk.services.s3.model.Tag;
import software.amazon.awssdk.services.s3.model.UploadPartResponse;

/** Objects through the client that waits. */
final class Objects {
    private static final List<ChecksumAlgorithm> ALGORITHMS = List.of(ChecksumAlgorithm.CRC32, ChecksumAlgorithm.CRC32_C,
            ChecksumAlgorithm.CRC64_NVME, ChecksumAlgorithm.SHA1, ChecksumAlgorithm.SHA256);

    private Objects() {}

    static void plain() throws Exception {
        Map<String, String> metadata = Map.of("color", "green");
        PutObjectResponse put = Aws.SYNC.putObject(with -> with.bucket(Aws.BUCKET).key("a b+ü%").metadata(metadata)
                .contentType("text/x").cacheControl("no-cache"), RequestBody.fromString("hello"));
        HeadObjectResponse head = Aws.SYNC.headObject(with -> with.bucket(Aws.BUCKET).key("a b+ü%"));
        equal("described", List.of(head.eTag(), head.metadata(), head.contentType(), head.cacheControl(), head.contentLength()),
                List.of(put.eTag(), metadata, "text/x", "no-cache", 5L));
        // A body of unknown place in memory is sent in chunks that are signed, with a trailing checksum.
        byte[] data = content(300_000);
        Aws.SYNC.putObject(with -> with.bucket(Aws.BUCKET).key("stream"),
                RequestBody.fromInputStream(new ByteArrayInputStream(data), data.length));
        try (ResponseInputStream<GetObjectResponse> in = Aws.SYNC.getObject(with -> with.bucket(Aws.BUCKET).key("stream"))) {
            equal("content", in.readAllBytes(), data);
        }
        equal("range", Aws.SYNC.getObjectAsBytes(with -> with.bucket(Aws.BUCKET).key("stream").range("bytes=1000-1099"))
                .asByteArray(), Arrays.copyOfRange(data, 1_000, 1_100));
        Aws.refused(404, "NoSuchKey", () -> Aws.read("missing"));
        Aws.refused(416, "InvalidRange",
                () -> Aws.SYNC.getObjectAsBytes(with -> with.bucket(Aws.BUCKET).key("stream").range("bytes=300000-")));
    }

    static void checksums() throws Exception {
        for (ChecksumAlgorithm algorithm : ALGORITHMS) {
            PutObjectResponse put = Aws.SYNC.putObject(with -> with.bucket(Aws.BUCKET).key("sum-" + algorithm)
                    .checksumAlgorithm(algorithm), RequestBody.fromString("summed"));
            ResponseBytes<GetObjectResponse> got = Aws.SYNC.getObjectAsBytes(
                    with -> with.bucket(Aws.BUCKET).key("sum-" + algorithm).checksumMode(ChecksumMode.ENABLED));
            equal("content", got.asUtf8String(), "summed");
            List<String> wanted = sums(put.checksumCRC32(), put.checksumCRC32C(), put.checksumCRC64NVME(), put.checksumSHA1(),
                    put.checksumSHA256());
            GetObjectResponse found = got.response();
            equal(algorithm + " of the answers", sums(found.checksumCRC32(), found.checksumCRC32C(), found.checksumCRC64NVME(),
                    found.checksumSHA1(), found.checksumSHA256()), wanted);
            equal(algorithm + " is one of them", wanted.size(), 1);
        }
        String wrong = "AAAAAA==";
        Aws.refused(400, "BadDigest", () -> Aws.SYNC.putObject(
                with -> with.bucket(Aws.BUCKET).key("wrong").checksumCRC32(wrong), RequestBody.fromString("summed")));
        GetObjectAttributesResponse facts = Aws.SYNC.getObjectAttributes(with -> with.bucket(Aws.BUCKET).key("sum-SHA256")
                .objectAttributes(ObjectAttributes.CHECKSUM, ObjectAttributes.OBJECT_SIZE, ObjectAttributes.E_TAG));
        equal("attributes", List.of(facts.checksum().checksumSHA256().length(), facts.objectSize()), List.of(44, 6L));
    }

    private static List<String> sums(String... all) {
        return Arrays.stream(all).filter(one -> one != null).toList();
    }

    static void conditions() throws Exception {
        Aws.put("conditional", "one");
        Aws.refused(412, "PreconditionFailed", () -> Aws.SYNC.putObject(
                with -> with.bucket(Aws.BUCKET).key("conditional").ifNoneMatch("*"), RequestBody.fromString("x")));
        String tag = Aws.SYNC.headObject(with -> with.bucket(Aws.BUCKET).key("conditional")).eTag();
        Aws.SYNC.putObject(with -> with.bucket(Aws.BUCKET).key("conditional").ifMatch(tag), RequestBody.fromString("two"));
        Aws.refused(412, "PreconditionFailed", () -> Aws.SYNC.putObject(
                with -> with.bucket(Aws.BUCKET).key("conditional").ifMatch(tag), RequestBody.fromString("x")));
        Aws.refused(404, "NoSuchKey", () -> Aws.SYNC.putObject(
                with -> with.bucket(Aws.BUCKET).key("missing").ifMatch(tag), RequestBody.fromString("x")));
        Aws.refused(412, "PreconditionFailed",
                () -> Aws.SYNC.deleteObject(with -> with.bucket(Aws.BUCKET).key("conditional").ifMatch(tag)));
        equal("content", Aws.read("conditional"), "two");
    }

    static void parts() throws Exception {
        byte[] data = content((int) Aws.PART + 99);
        String id = Aws.SYNC.createMultipartUpload(with -> with.bucket(Aws.BUCKET).key("parts")
                .checksumAlgorithm(ChecksumAlgorithm.CRC32)).uploadId();
        List<CompletedPart> parts = new ArrayList<>();
        for (int number = 1; number <= 2; number++) {
            int at = number, first = (number - 1) * (int) Aws.PART;
            byte[] part = Arrays.copyOfRange(data, first, Math.min(data.length, first + (int) Aws.PART));
            UploadPartResponse done = Aws.SYNC.uploadPart(with -> with.bucket(Aws.BUCKET).key("parts").uploadId(id).partNumber(at)
                    .checksumAlgorithm(ChecksumAlgorithm.CRC32), RequestBody.fromBytes(part));
            parts.add(CompletedPart.builder().partNumber(at).eTag(done.eTag()).checksumCRC32(done.checksumCRC32()).build());
        }
        equal("listed", Aws.SYNC.listPartsPaginator(with -> with.bucket(Aws.BUCKET).key("parts").uploadId(id).maxParts(1)).parts()
                .stream().map(one -> one.size()).toList(), List.of(Aws.PART, 99L));
        equal("uploads", Aws.SYNC.listMultipartUploadsPaginator(with -> with.bucket(Aws.BUCKET)).uploads().stream()
                .map(one -> one.key()).toList(), List.of("parts"));
        String tag = Aws.SYNC.completeMultipartUpload(with -> with.bucket(Aws.BUCKET).key("parts").uploadId(id)
                .multipartUpload(all -> all.parts(parts))).eTag();
        equal("tag of two parts", tag.endsWith("-2\""), true);
        equal("second part", Aws.SYNC.getObjectAsBytes(with -> with.bucket(Aws.BUCKET).key("parts").partNumber(2)).asByteArray(),
                Arrays.copyOfRange(data, (int) Aws.PART, data.length));
        String other = Aws.SYNC.createMultipartUpload(with -> with.bucket(Aws.BUCKET).key("aborted")).uploadId();
        Aws.SYNC.abortMultipartUpload(with -> with.bucket(Aws.BUCKET).key("aborted").uploadId(other));
        Aws.refused(404, "NoSuchUpload", () -> Aws.SYNC.listParts(with -> with.bucket(Aws.BUCKET).key("aborted")
                .uploadId(other)));
    }

    static void lists() {
        IntStream.range(0, 25).forEach(number -> Aws.put(String.format("list/%d/%02d", number % 2, number), "x"));
        List<ListObjectsV2Response> pages = Aws.SYNC.listObjectsV2Paginator(
                with -> with.bucket(Aws.BUCKET).prefix("list/").maxKeys(10)).stream().toList();
        equal("sizes of pages", pages.stream().map(ListObjectsV2Response::keyCount).toList(), List.of(10, 10, 5));
        equal("folders", Aws.SYNC.listObjectsV2Paginator(with -> with.bucket(Aws.BUCKET).prefix("list/").delimiter("/")
                .maxKeys(1))
                .commonPrefixes().stream().map(CommonPrefix::prefix).toList(), List.of("list/0/", "list/1/"));
        equal("after", Aws.SYNC.listObjectsV2(with -> with.bucket(Aws.BUCKET).prefix("list/").startAfter("list/1/21")).contents()
                .stream().map(S3Object::key).toList(), List.of("list/1/23"));
        List<ObjectIdentifier> all = pages.stream().flatMap(page -> page.contents().stream())
                .map(one -> ObjectIdentifier.builder().key(one.key()).build()).toList();
        DeleteObjectsResponse done = Aws.SYNC.deleteObjects(with -> with.bucket(Aws.BUCKET).delete(some -> some.objects(all)));
        equal("deleted and refused", List.of(done.deleted().size(), done.errors().size()), List.of(25, 0));
        equal("left", Aws.SYNC.listObjectsV2(with -> with.bucket(Aws.BUCKET).prefix("list/")).keyCount(), 0);
    }

    static void copiesAndTags() throws Exception {
        Aws.put("source", "copied");
        Aws.SYNC.copyObject(with -> with.sourceBucket(Aws.BUCKET).sourceKey("source").destinationBucket(Aws.BUCKET)
                .destinationKey("copy ü").metadata(Map.of("new", "1")).metadataDirective("REPLACE"));
        equal("content", Aws.read("copy ü"), "copied");
        equal("metadata", Aws.SYNC.headObject(with -> with.bucket(Aws.BUCKET).key("copy ü")).metadata(), Map.of("new", "1"));
        List<Tag> tags = List.of(Tag.builder().key("a").value("b c").build());
        Aws.SYNC.putObjectTagging(with -> with.bucket(Aws.BUCKET).key("source").tagging(all -> all.tagSet(tags)));
        equal("tags", Aws.SYNC.getObjectTagging(with -> with.bucket(Aws.BUCKET).key("source")).tagSet(), tags);
        Aws.SYNC.deleteObjectTagging(with -> with.bucket(Aws.BUCKET).key("source"));
        equal("no tags", Aws.SYNC.getObjectTagging(with -> with.bucket(Aws.BUCKET).key("source")).tagSet(), List.of());
        Aws.refused(412, "PreconditionFailed", () -> Aws.SYNC.copyObject(with -> with.sourceBucket(Aws.BUCKET).sourceKey("source")
                .destinationBucket(Aws.BUCKET).destinationKey("copy").copySourceIfMatch("\"0\"")));
    }
}
