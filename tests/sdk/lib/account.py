"""The account a script speaks to, and SDK clients for it."""

import dataclasses
import threading

from azure.storage.blob import BlobServiceClient

# Public by design: every emulator of this service ships the same pair, and servers accept it on loopback only.
DEV_NAME = "devstoreaccount1"
DEV_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@dataclasses.dataclass(frozen=True)
class Account:
    """One account at one endpoint. `address` is host:port, the addressing is path-style."""

    address: str
    name: str = DEV_NAME
    key: str = DEV_KEY

    @property
    def url(self):
        """The endpoint with the account in its path, without a slash at the end."""
        return f"http://{self.address}/{self.name}"

    @property
    def connection_string(self):
        """What a person would paste."""
        return (f"DefaultEndpointsProtocol=http;AccountName={self.name};AccountKey={self.key};"
                f"BlobEndpoint={self.url};")

    def service(self, retries=0, **options):
        """An SDK client. Without retries by default, so that one call is one request and its answer is the server's."""
        options.setdefault("connection_timeout", 10)
        options.setdefault("read_timeout", 120)
        return BlobServiceClient.from_connection_string(
            self.connection_string, retry_total=retries, logging_enable=False, **options)


class PerThread:
    """One SDK container client for each thread, because each holds a pool of few connections."""

    def __init__(self, account, container, **options):
        self._account, self._container, self._options = account, container, options
        self._local = threading.local()

    def container(self):
        """This thread's container client."""
        client = getattr(self._local, "client", None)
        if client is None:
            client = self._account.service(**self._options).get_container_client(self._container)
            self._local.client = client
        return client

    def blob(self, name):
        """A blob client of this thread's container client."""
        return self.container().get_blob_client(name)
