import static suite.Suite.content;
import static suite.Suite.equal;
import static suite.Suite.setting;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.BulkDelete;
import org.apache.hadoop.fs.EtagSource;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.MultipartUploader;
import org.apache.hadoop.fs.PartHandle;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.UploadHandle;
import org.apache.hadoop.fs.s3a.RemoteFileChangedException;
import org.apache.hadoop.fs.s3a.S3AFileSystem;

/** What S3A has beyond other file systems. */
final class More {
    private static final Map<String, String> NEW = Map.of("fs.option.create.conditional.overwrite", "true");
    private static final String SAME = "fs.option.create.conditional.overwrite.etag";

    private More() {}

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** A file that is written with an option, and over one that is there. */
    private static FSDataOutputStream created(String name, Map<String, String> options) throws Exception {
        FSDataOutputStreamBuilder<?, ?> builder = Yard.FILES.createFile(Yard.at(name));
        builder.overwrite(true);
        options.forEach(builder::must);
        return builder.build();
    }

    static void conditions() throws Exception {
        FSDataOutputStream late = created("conditional", NEW);
        late.write(bytes("late"));
        Yard.write("conditional", bytes("early"));
        Yard.refused(IOException.class, late::close);
        equal("content", new String(Yard.read("conditional"), StandardCharsets.UTF_8), "early");
        String tag = ((EtagSource) Yard.FILES.getFileStatus(Yard.at("conditional"))).getEtag();
        try (FSDataOutputStream same = created("conditional", Map.of(SAME, tag))) {
            same.write(bytes("changed"));
        }
        equal("changed", new String(Yard.read("conditional"), StandardCharsets.UTF_8), "changed");
        FSDataOutputStream other = created("conditional", Map.of(SAME, tag));
        other.write(bytes("other"));
        Yard.refused(IOException.class, other::close);
        equal("unchanged", new String(Yard.read("conditional"), StandardCharsets.UTF_8), "changed");
    }

    static void conditionsInParts() throws Exception {
        FSDataOutputStream late = created("conditional-parts", NEW);
        late.write(content(6 << 20));
        Yard.write("conditional-parts", bytes("early"));
        Yard.refused(IOException.class, late::close);
        equal("content", new String(Yard.read("conditional-parts"), StandardCharsets.UTF_8), "early");
    }

    static void bulkDeletion() throws Exception {
        List<Path> names = new ArrayList<>();
        for (int number = 0; number < 30; number++) {
            Yard.write("bulk/" + number, new byte[1]);
            names.add(Yard.at("bulk/" + number));
        }
        names.add(Yard.at("bulk/missing"));
        try (BulkDelete many = Yard.FILES.createBulkDelete(Yard.at("bulk"))) {
            equal("at once", many.pageSize() >= names.size(), true);
            equal("refused", many.bulkDelete(names.subList(0, 25)), List.of());
            equal("refused", many.bulkDelete(names.subList(25, 31)), List.of());
        }
        equal("left", Yard.FILES.exists(Yard.at("bulk")), false);
    }

    static void headers() throws Exception {
        Map<String, String> options = Map.of("fs.s3a.create.header.color", "green", "fs.s3a.create.performance", "true");
        try (FSDataOutputStream out = created("described", options)) {
            out.write(bytes("x"));
        }
        Map<String, byte[]> found = Yard.FILES.getXAttrs(Yard.at("described"));
        equal("attributes", List.of(new String(found.get("header.color"), StandardCharsets.UTF_8),
                new String(found.get("header.Content-Length"), StandardCharsets.UTF_8)), List.of("green", "1"));
    }

    static void changedWhileRead() throws Exception {
        byte[] before = content(300_000), after = Arrays.copyOf(content(300_001), 300_000);
        after[0]++;
        Yard.write("changing", before);
        Configuration settings = Yard.settings();
        // The other streams would have read all of it at once.
        settings.set("fs.s3a.input.stream.type", "classic");
        try (FileSystem files = Yard.files(settings); FSDataInputStream in = files.openFile(Yard.at("changing"))
                .opt("fs.option.openfile.read.policy", "random").build().get()) {
            byte[] some = new byte[10];
            in.readFully(0, some);
            Yard.write("changing", after);
            Yard.refused(RemoteFileChangedException.class, () -> in.readFully(200_000, some));
        }
    }

    /** Algorithms of checksums that S3A asks for itself. */
    static void checksums() throws Exception {
        for (String algorithm : List.of("CRC32", "CRC32C", "SHA1", "SHA256")) {
            Configuration settings = Yard.settings();
            settings.set("fs.s3a.create.checksum.algorithm", algorithm);
            settings.set("fs.s3a.checksum.validation", "true");
            try (FileSystem files = Yard.files(settings)) {
                Path at = Yard.at("summed-" + algorithm);
                byte[] data = content(6 << 20);
                try (FSDataOutputStream out = files.create(at)) {
                    out.write(data);
                }
                try (FSDataInputStream in = files.open(at)) {
                    equal(algorithm, in.readAllBytes(), data);
                }
            }
        }
    }

    /** Content under a key that only the client has. */
    static void ownKey() throws Exception {
        Configuration settings = Yard.settings();
        settings.set("fs.s3a.encryption.algorithm", "SSE-C");
        settings.set("fs.s3a.encryption.key", Base64.getEncoder().encodeToString(content(32)));
        try (FileSystem files = Yard.files(settings)) {
            Path at = Yard.at("own-key");
            byte[] data = content(6 << 20);
            try (FSDataOutputStream out = files.create(at)) {
                out.write(data);
            }
            files.rename(at, Yard.at("own-key-moved"));
            try (FSDataInputStream in = files.open(Yard.at("own-key-moved"))) {
                equal("content", in.readAllBytes(), data);
            }
            Yard.refused(IOException.class, () -> Yard.read("own-key-moved"));
        }
    }

    static void uploader() throws Exception {
        byte[] data = content(6 << 20);
        Path at = Yard.at("uploaded");
        try (MultipartUploader uploader = Yard.FILES.createMultipartUploader(Yard.at("")).build()) {
            UploadHandle upload = uploader.startUpload(at).get();
            int first = 5 << 20;
            PartHandle two = uploader.putPart(upload, 2, true, at, new ByteArrayInputStream(data, first, data.length - first),
                    data.length - first).get();
            PartHandle one = uploader.putPart(upload, 1, false, at, new ByteArrayInputStream(data, 0, first), first).get();
            equal("before it is complete", Yard.FILES.exists(at), false);
            uploader.complete(upload, at, Map.of(1, one, 2, two)).get();
            equal("content", Yard.read("uploaded"), data);
            UploadHandle other = uploader.startUpload(Yard.at("aborted")).get();
            uploader.abort(other, Yard.at("aborted")).get();
            equal("pending uploads", ((S3AFileSystem) Yard.FILES).listUploads("").hasNext(), false);
        }
    }

    static void localFiles() throws Exception {
        java.nio.file.Path folder = java.nio.file.Files.createTempDirectory(java.nio.file.Path.of(setting("SCRATCH")), "local");
        java.nio.file.Files.createDirectories(folder.resolve("a/b"));
        java.nio.file.Files.write(folder.resolve("a/b/c"), content(7 << 20));
        java.nio.file.Files.writeString(folder.resolve("a/d"), "d");
        Yard.FILES.copyFromLocalFile(new Path(folder.resolve("a").toUri()), Yard.at("local"));
        equal("copied", Yard.below("local"), List.of("b/c", "d"));
        Yard.FILES.copyToLocalFile(false, Yard.at("local"), new Path(folder.resolve("back").toUri()), true);
        equal("content", java.nio.file.Files.readAllBytes(folder.resolve("back/b/c")), content(7 << 20));
    }
}
