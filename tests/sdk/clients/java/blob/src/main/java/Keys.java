import static suite.Suite.content;
import static suite.Suite.equal;

import com.azure.core.util.BinaryData;
import com.azure.storage.blob.BlobClient;
import com.azure.storage.blob.BlobContainerClient;
import com.azure.storage.blob.models.BlobContainerEncryptionScope;
import com.azure.storage.blob.models.CustomerProvidedKey;
import com.azure.storage.blob.specialized.AppendBlobClient;
import java.io.ByteArrayInputStream;
import java.util.List;

/** Customer-provided keys and encryption scopes. */
final class Keys {
    private Keys() {}

    static void provided() throws Exception {
        CustomerProvidedKey key = new CustomerProvidedKey(content(32));
        BlobClient plain = Secure.BY_KEY.getBlobContainerClient("java").getBlobClient("own-key");
        BlobClient blob = plain.getCustomerProvidedKeyClient(key);
        blob.upload(BinaryData.fromString("hidden"));
        equal("content", blob.downloadContent().toString(), "hidden");
        equal("hash of the key", blob.getProperties().getEncryptionKeySha256(), key.getKeySha256());
        Store.refused(409, "BlobUsesCustomerSpecifiedEncryption", plain::downloadContent);
        CustomerProvidedKey other = new CustomerProvidedKey(new byte[32]);
        Store.refused(409, "BlobCustomerSpecifiedEncryptionMismatch",
                () -> plain.getCustomerProvidedKeyClient(other).downloadContent());
        AppendBlobClient log = Secure.BY_KEY.getBlobContainerClient("java").getBlobClient("own-key-log")
                .getCustomerProvidedKeyClient(key).getAppendBlobClient();
        log.create();
        log.appendBlock(new ByteArrayInputStream(Store.bytes("log")), 3);
        equal("log", log.downloadContent().toString(), "log");
    }

    static void scopes() throws Exception {
        BlobClient blob = Store.blob("scoped").getEncryptionScopeClient("ours");
        blob.upload(BinaryData.fromString("scoped"));
        equal("scope", blob.getProperties().getEncryptionScope(), "ours");
        BlobContainerClient box = Store.builder("CONNECTION_STRING")
                .blobContainerEncryptionScope(new BlobContainerEncryptionScope()
                .setDefaultEncryptionScope("theirs").setEncryptionScopeOverridePrevented(true)).buildClient()
                .createBlobContainer("java-scoped");
        equal("of the container", List.of(box.getProperties().getDefaultEncryptionScope(),
                box.getProperties().isEncryptionScopeOverridePrevented()), List.of("theirs", true));
        BlobContainerClient same = Store.SERVICE.getBlobContainerClient("java-scoped");
        same.getBlobClient("a").upload(BinaryData.fromString("x"));
        equal("of its blob", same.getBlobClient("a").getProperties().getEncryptionScope(), "theirs");
        Store.refused(403, "RequestForbiddenByContainerEncryptionPolicy",
                () -> same.getBlobClient("b").getEncryptionScopeClient("ours").upload(BinaryData.fromString("x")));
    }
}
