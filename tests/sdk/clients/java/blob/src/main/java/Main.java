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
        group("streams with mark, skip and ranges", Streams::streams);
        group("streams of a blob that changes", Streams::changedWhileRead);
        group("seekable channels", Streams::channels);
        group("CRC-64: block blobs", Checked::blocks);
        group("CRC-64: append and page blobs", Checked::others);
        group("listing: pages, folders, details", Listing::pages);
        group("listing in columns", Listing::columns);
        group("queries: delimited text", Queries::delimited);
        group("queries: JSON", Queries::json);
        group("queries: Parquet", Queries::parquet);
        group("queries: Arrow", Queries::arrow);
        group("queries: progress and errors", Queries::consumers);
        group("queries: refusals", Queries::refusals);
        group("append blobs", OtherTypes::appends);
        group("page blobs: ranges and changes", OtherTypes::pages);
        group("page blobs: sequence numbers, streams", OtherTypes::sequenceNumbers);
        group("snapshots", States::snapshots);
        group("versions", States::versions);
        group("soft delete", States::deleted);
        group("immutability, legal hold", States::held);
        group("copies: later, now, by put", Copies::whole);
        group("copies: blocks, appends, pages", Copies::parts);
        group("copies: incremental", Copies::incremental);
        group("tags", Facts::tags);
        group("tiers", Facts::tiers);
        group("tokens over https", Facts::tokens);
        group("account: properties, kind", Facts::account);
        group("customer-provided keys", Keys::provided);
        group("encryption scopes", Keys::scopes);
        group("batches: tiers, deletions", Batches::all);
        group("batches: single answers and refusals", Batches::mixed);
        group("signatures of the account", Signatures::account);
        group("signatures of blobs, snapshots, containers", Signatures::blobs);
        group("signatures by a user delegation key", Signatures::delegated);
        group("connections are kept", Connections::kept);
        // Threads of the HTTP client would keep the program alive.
        System.exit(0);
    }
}
