import static suite.Suite.content;
import static suite.Suite.equal;

import java.io.FileNotFoundException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.EtagSource;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.FileChecksum;
import org.apache.hadoop.fs.FileRange;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.PathIsNotEmptyDirectoryException;

/** Files and folders. */
final class Files {
    private static final byte[] LARGE = content((12 << 20) + 7);

    private Files() {}

    static void small() throws Exception {
        equal("made", Yard.FILES.mkdirs(Yard.at("dir/inner")), true);
        equal("a folder", Yard.FILES.getFileStatus(Yard.at("dir/inner")).isDirectory(), true);
        Yard.write("dir/with space +%ü", "hello".getBytes(StandardCharsets.UTF_8));
        equal("content", new String(Yard.read("dir/with space +%ü"), StandardCharsets.UTF_8), "hello");
        FileStatus found = Yard.FILES.getFileStatus(Yard.at("dir/with space +%ü"));
        equal("described", List.of(found.isFile(), found.getLen()), List.of(true, 5L));
        Yard.refused(FileAlreadyExistsException.class, () -> Yard.FILES.create(Yard.at("dir/with space +%ü"), false));
        Yard.refused(FileAlreadyExistsException.class, () -> Yard.FILES.create(Yard.at("dir/inner")));
        Yard.refused(FileAlreadyExistsException.class, () -> Yard.FILES.mkdirs(Yard.at("dir/with space +%ü")));
        Yard.refused(UnsupportedOperationException.class, () -> Yard.FILES.append(Yard.at("dir/with space +%ü")));
        Yard.refused(FileNotFoundException.class, () -> Yard.FILES.open(Yard.at("missing")));
        equal("of Blob", new String(Yard.read("from-blob"), StandardCharsets.UTF_8), "of Blob");
    }

    static void inParts() throws Exception {
        try (FSDataOutputStream out = Yard.FILES.create(Yard.at("large"))) {
            for (int at = 0; at < LARGE.length; at += 1 << 20) {
                out.write(LARGE, at, Math.min(1 << 20, LARGE.length - at));
            }
        }
        equal("content", Yard.read("large"), LARGE);
        FileStatus found = Yard.FILES.getFileStatus(Yard.at("large"));
        String tag = ((EtagSource) found).getEtag().replace("\"", "");
        equal("tag of three parts", tag.endsWith("-3"), true);
        FileChecksum sum = Yard.FILES.getFileChecksum(Yard.at("large"));
        equal("checksum", new String(sum.getBytes(), StandardCharsets.UTF_8).replace("\"", ""), tag);
    }

    /** Reads with one of the kinds of streams that S3A has. */
    static void streams(String kind) throws Exception {
        Configuration settings = Yard.settings();
        settings.set("fs.s3a.input.stream.type", kind);
        try (FileSystem files = Yard.files(settings); FSDataInputStream in = files.open(Yard.at("large"))) {
            byte[] some = new byte[1_000];
            in.seek(9_000_000);
            in.readFully(some);
            equal("after a seek", some, Arrays.copyOfRange(LARGE, 9_000_000, 9_001_000));
            in.readFully(5, some);
            equal("at a position", some, Arrays.copyOfRange(LARGE, 5, 1_005));
            List<FileRange> ranges = new ArrayList<>();
            for (int at : new int[] {10, 5_000, 3_000_000, 11_999_000}) {
                ranges.add(FileRange.createFileRange(at, 700));
            }
            in.readVectored(ranges, ByteBuffer::allocate);
            for (FileRange range : ranges) {
                byte[] found = new byte[range.getLength()];
                range.getData().get().get(found);
                int first = (int) range.getOffset();
                equal("range at " + first, found, Arrays.copyOfRange(LARGE, first, first + 700));
            }
            in.seek(0);
            equal("content", in.readAllBytes(), LARGE);
        }
    }

    static void lists() throws Exception {
        for (int number = 0; number < 23; number++) {
            Yard.write("list/" + number % 3 + "/" + number, new byte[number]);
        }
        FileStatus[] folders = Yard.FILES.listStatus(Yard.at("list"));
        equal("folders", Stream.of(folders).map(one -> one.getPath().getName() + one.isDirectory()).sorted().toList(),
                List.of("0true", "1true", "2true"));
        equal("below", Yard.below("list").size(), 23);
        equal("by a pattern", Yard.FILES.globStatus(Yard.at("list/*/1?")).length, 10);
        equal("bytes", Yard.FILES.getContentSummary(Yard.at("list")).getLength(), 253L);
    }

    static void renames() throws Exception {
        equal("renamed", Yard.FILES.rename(Yard.at("list"), Yard.at("moved")), true);
        equal("what is left", Yard.FILES.exists(Yard.at("list")), false);
        List<String> found = Yard.below("moved");
        equal("what has moved", List.of(found.size(), found.get(0), found.get(22)), List.of(23, "0/0", "2/8"));
        equal("length", Yard.FILES.getFileStatus(Yard.at("moved/1/22")).getLen(), 22L);
        Yard.FILES.rename(Yard.at("large"), Yard.at("renamed"));
        equal("content", Yard.read("renamed"), LARGE);
        Yard.write("large", LARGE);
        equal("deleted", Yard.FILES.delete(Yard.at("moved"), true), true);
        equal("left", Yard.FILES.exists(Yard.at("moved")), false);
        Yard.write("kept/a", new byte[1]);
        Yard.refused(PathIsNotEmptyDirectoryException.class, () -> Yard.FILES.delete(Yard.at("kept"), false));
        equal("deleted again", Yard.FILES.delete(Yard.at("moved"), true), false);
    }
}
