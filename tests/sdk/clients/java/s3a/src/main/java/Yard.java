import static suite.Suite.equal;
import static suite.Suite.setting;

import java.io.IOException;
import java.net.URI;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.LocatedFileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RemoteIterator;

/** The file system over the bucket, and what all groups need. */
final class Yard {
    static final String ROOT = "s3a://" + setting("BUCKET");
    static final FileSystem FILES = files(settings());

    private Yard() {}

    static Configuration settings() {
        Configuration made = new Configuration();
        made.set("fs.s3a.endpoint", setting("ENDPOINT"));
        made.set("fs.s3a.endpoint.region", "us-east-1");
        made.set("fs.s3a.path.style.access", "true");
        made.set("fs.s3a.connection.ssl.enabled", "false");
        made.set("fs.s3a.access.key", setting("KEY_ID"));
        made.set("fs.s3a.secret.key", setting("SECRET"));
        made.set("fs.s3a.aws.credentials.provider", "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider");
        made.set("fs.s3a.multipart.size", "5M");
        made.set("fs.s3a.multipart.threshold", "5M");
        made.set("fs.s3a.fast.upload.buffer", "bytebuffer");
        made.set("fs.s3a.buffer.dir", setting("SCRATCH") + "/s3a");
        made.set("fs.s3a.etag.checksum.enabled", "true");
        made.set("fs.s3a.committer.magic.enabled", "true");
        made.set("fs.s3a.paging.maximum", "10");
        made.set("fs.s3a.attempts.maximum", "1");
        made.set("fs.s3a.retry.limit", "1");
        return made;
    }

    static FileSystem files(Configuration settings) {
        try {
            return FileSystem.newInstance(URI.create(ROOT), settings);
        } catch (IOException wrong) {
            throw new IllegalStateException(wrong);
        }
    }

    static Path at(String name) {
        return new Path(ROOT + "/" + name);
    }

    static void write(String name, byte[] data) throws IOException {
        try (FSDataOutputStream out = FILES.create(at(name))) {
            out.write(data);
        }
    }

    static byte[] read(String name) throws IOException {
        try (FSDataInputStream in = FILES.open(at(name))) {
            return in.readAllBytes();
        }
    }

    /** The names of all files below a folder. */
    static List<String> below(String name) throws IOException {
        List<String> found = new ArrayList<>();
        RemoteIterator<LocatedFileStatus> all = FILES.listFiles(at(name), true);
        while (all.hasNext()) {
            found.add(all.next().getPath().toString().substring(at(name).toString().length() + 1));
        }
        return found.stream().sorted().toList();
    }

    /** Something that is refused. */
    interface Refused {
        void run() throws Exception;
    }

    /** Throws unless the call throws this. */
    static void refused(Class<? extends Exception> wanted, Refused call) {
        try {
            call.run();
        } catch (Exception refusal) {
            equal("refusal", wanted.isInstance(refusal) ? wanted : refusal, wanted);
            return;
        }
        throw new AssertionError("not refused");
    }
}
