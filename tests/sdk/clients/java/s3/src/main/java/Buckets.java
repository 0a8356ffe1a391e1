import static suite.Suite.equal;

import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.stream.Stream;
import software.amazon.awssdk.core.sync.RequestBody;
import software.amazon.awssdk.services.s3.model.Bucket;
import software.amazon.awssdk.services.s3.model.BucketVersioningStatus;
import software.amazon.awssdk.services.s3.model.DeleteMarkerEntry;
import software.amazon.awssdk.services.s3.model.ListObjectVersionsResponse;
import software.amazon.awssdk.services.s3.model.ObjectIdentifier;
import software.amazon.awssdk.services.s3.model.ObjectLockLegalHoldStatus;
import software.amazon.awssdk.services.s3.model.ObjectLockRetentionMode;
import software.amazon.awssdk.services.s3.model.ObjectVersion;

/** Buckets, versions of objects, and object lock. */
final class Buckets {
    private Buckets() {}

    static void made() throws Exception {
        String bucket = Aws.BUCKET + "-made";
        Aws.SYNC.createBucket(with -> with.bucket(bucket));
        equal("exists", Aws.SYNC.waiter().waitUntilBucketExists(with -> with.bucket(bucket)).matched().response()
                .isPresent(), true);
        equal("listed", Aws.SYNC.listBucketsPaginator(with -> with.prefix(bucket)).buckets().stream().map(Bucket::name).toList(),
                List.of(bucket));
        Aws.SYNC.putObject(with -> with.bucket(bucket).key("a"), RequestBody.fromString("x"));
        Aws.refused(409, "BucketNotEmpty", () -> Aws.SYNC.deleteBucket(with -> with.bucket(bucket)));
        Aws.SYNC.deleteObject(with -> with.bucket(bucket).key("a"));
        Aws.SYNC.deleteBucket(with -> with.bucket(bucket));
        Aws.refused(404, "NoSuchBucket", () -> Aws.SYNC.listObjectsV2(with -> with.bucket(bucket)));
    }

    static void versions() {
        String bucket = Aws.BUCKET + "-versions";
        Aws.SYNC.createBucket(with -> with.bucket(bucket));
        Aws.SYNC.putBucketVersioning(with -> with.bucket(bucket)
                .versioningConfiguration(how -> how.status(BucketVersioningStatus.ENABLED)));
        String first = Aws.SYNC.putObject(with -> with.bucket(bucket).key("v"), RequestBody.fromString("one")).versionId();
        Aws.SYNC.putObject(with -> with.bucket(bucket).key("v"), RequestBody.fromString("two"));
        equal("first", Aws.SYNC.getObjectAsBytes(with -> with.bucket(bucket).key("v").versionId(first)).asUtf8String(), "one");
        equal("a marker", Aws.SYNC.deleteObject(with -> with.bucket(bucket).key("v")).deleteMarker(), true);
        ListObjectVersionsResponse found = Aws.SYNC.listObjectVersions(with -> with.bucket(bucket));
        equal("versions", found.versions().stream().map(ObjectVersion::isLatest).toList(), List.of(false, false));
        equal("markers", found.deleteMarkers().stream().map(DeleteMarkerEntry::isLatest).toList(), List.of(true));
        List<ObjectIdentifier> all = Stream.concat(
                found.versions().stream().map(one -> named(one.key(), one.versionId())),
                found.deleteMarkers().stream().map(one -> named(one.key(), one.versionId())))
                .toList();
        equal("deleted", Aws.SYNC.deleteObjects(with -> with.bucket(bucket).delete(some -> some.objects(all))).deleted()
                .size(), 3);
        Aws.SYNC.deleteBucket(with -> with.bucket(bucket));
    }

    private static ObjectIdentifier named(String key, String version) {
        return ObjectIdentifier.builder().key(key).versionId(version).build();
    }

    static void locks() throws Exception {
        String bucket = Aws.BUCKET + "-locked";
        Aws.SYNC.createBucket(with -> with.bucket(bucket).objectLockEnabledForBucket(true));
        Instant until = Instant.now().plus(1, ChronoUnit.HOURS).truncatedTo(ChronoUnit.SECONDS);
        String version = Aws.SYNC.putObject(with -> with.bucket(bucket).key("held").objectLockMode("GOVERNANCE")
                .objectLockRetainUntilDate(until).objectLockLegalHoldStatus("ON"), RequestBody.fromString("x")).versionId();
        equal("retention", Aws.SYNC.getObjectRetention(with -> with.bucket(bucket).key("held")).retention()
                .retainUntilDate(), until);
        equal("hold", Aws.SYNC.getObjectLegalHold(with -> with.bucket(bucket).key("held")).legalHold().status(),
                ObjectLockLegalHoldStatus.ON);
        Aws.refused(403, "AccessDenied", () -> Aws.SYNC.deleteObject(with -> with.bucket(bucket).key("held").versionId(version)));
        Aws.SYNC.putObjectLegalHold(with -> with.bucket(bucket).key("held").legalHold(how -> how.status("OFF")));
        Aws.refused(403, "AccessDenied", () -> Aws.SYNC.deleteObject(with -> with.bucket(bucket).key("held").versionId(version)));
        Aws.SYNC.putObjectRetention(with -> with.bucket(bucket).key("held").bypassGovernanceRetention(true).retention(
                how -> how.mode(ObjectLockRetentionMode.GOVERNANCE).retainUntilDate(until.minusSeconds(60))));
        Aws.SYNC.deleteObject(with -> with.bucket(bucket).key("held").versionId(version).bypassGovernanceRetention(true));
        equal("left", Aws.SYNC.listObjectVersions(with -> with.bucket(bucket)).versions().size(), 0);
    }
}
