package suite;

import java.util.Arrays;
import java.util.Objects;

/** A line of JSON for each group of operations, and what judges them. */
public final class Suite {
    private static final int SAID_CHARACTERS = 300;

    /** A group of operations; it throws when something is not as it must be. */
    public interface Group {
        void run() throws Exception;
    }

    private Suite() {}

    /** A setting that the script passes in the environment. */
    public static String setting(String name) {
        return Objects.requireNonNull(System.getenv(name), name);
    }

    /** Runs a group and prints its line. */
    public static void group(String name, Group run) {
        String error = "";
        try {
            run.run();
        } catch (Throwable thrown) {
            thrown.printStackTrace();
            String text = thrown.toString();
            error = text.substring(0, Math.min(text.length(), SAID_CHARACTERS));
        }
        System.out.println("{\"group\": " + quoted(name) + ", \"error\": " + quoted(error) + "}");
    }

    /** Throws unless both are equal; arrays are compared by what is in them. */
    public static void equal(String what, Object found, Object wanted) {
        if (!Objects.deepEquals(found, wanted)) {
            throw new AssertionError(what + ": " + shown(found) + ", not " + shown(wanted));
        }
    }

    /** Content that differs from place to place. */
    public static byte[] content(int bytes) {
        byte[] data = new byte[bytes];
        for (int at = 0; at < bytes; at++) {
            data[at] = (byte) (at * 7 + (at >> 11));
        }
        return data;
    }

    private static String shown(Object value) {
        String text = value instanceof byte[] bytes
                ? bytes.length + " bytes, hash " + Arrays.hashCode(bytes)
                : value instanceof Object[] many ? Arrays.deepToString(many) : String.valueOf(value);
        return text.substring(0, Math.min(text.length(), SAID_CHARACTERS / 3));
    }

    private static String quoted(String text) {
        StringBuilder out = new StringBuilder("\"");
        for (char one : text.toCharArray()) {
            if (one == '"' || one == '\\') {
                out.append('\\').append(one);
            } else if (one < ' ' || one > '~') {
                out.append(String.format("\\u%04x", (int) one));
            } else {
                out.append(one);
            }
        }
        return out.append('"').toString();
    }
}
