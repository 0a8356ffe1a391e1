import static suite.Suite.group;

/** azure-storage-blob with its batch client. */
public final class Main {
    private Main() {}

    public static void main(String[] arguments) {
        group("containers: metadata, twice made, twice deleted", Containers::all);
        group("containers: lists by pages", Containers::lists);
        group("containers: stored policies, public access", Containers::policies);
        group("containers: deleted and restored", Containers::restored);
        group("leases of blobs", Leases::blobs);
        group("leases of containers", Leases::containers);
        group("block blobs: whole, headers, metadata", BlockBlobs::whole);
        group("block blobs: in parts, files, progress", BlockBlobs::inParts);
        group("block blobs: ranges", BlockBlobs::ranges);
        group("block blobs: blocks", BlockBlobs::blocks);
        group("block blobs: conditions", BlockBlobs::conditions);
        // Threads of the HTTP client would keep the program alive.
        System.exit(0);
    }
}
