"""One server for the whole run, one fresh container for each test."""

import base64
import concurrent.futures
import pathlib
import sys
import uuid

import pytest
from azure.core.exceptions import HttpResponseError

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

# pylint: disable=wrong-import-position
from lib.cli import remember_operations
from lib.account import DEV_KEY, DEV_NAME, Account
from lib.server import Server
from lib.wire import Wire

TWO_KEYS_NAME = "twokeys"
FIRST_KEY = base64.b64encode(b"the first of two keys, 32 bytes.").decode()
SECOND_KEY = base64.b64encode(b"the second key, also 32 bytes...").decode()


def pytest_addoption(parser):
    """The program to judge."""
    parser.addoption("--binary", help="the blockyard program")
    parser.addoption("--serve-arg", action="append", default=[], help="further argument of `blockyard serve`")


@pytest.fixture(scope="session")
def server(request, tmp_path_factory):
    """A server with the development account and one that has two keys."""
    folder = tmp_path_factory.mktemp("conformance")
    extra = [f"--account={DEV_NAME}:{DEV_KEY}", f"--account={TWO_KEYS_NAME}:{FIRST_KEY}:{SECOND_KEY}",
             "--blob-domain=localhost", "--blob-domain=storage.example", *request.config.getoption("--serve-arg")]
    with Server(request.config.getoption("--binary"), [folder / "data"], folder / "server.log", extra) as made:
        made.start()
        yield made
        if made.process.poll() is not None:
            pytest.fail(f"the server died:\n{made.log_tail()}")
        remember_operations(made)
        assert made.stop() == 0


@pytest.fixture
def account(server):
    """The development account."""
    return server.account


@pytest.fixture
def two_keys(server):
    """The account with two keys, as seen with the first and with the second."""
    return [Account(server.blob_address, TWO_KEYS_NAME, key) for key in (FIRST_KEY, SECOND_KEY)]


@pytest.fixture
def service(account):
    """An SDK client of the account."""
    return account.service()


@pytest.fixture
def container(service):
    """A new container, deleted in the end."""
    client = service.create_container(f"c{uuid.uuid4().hex}")
    yield client
    try:
        client.delete_container()
    except HttpResponseError:
        pass  # The test deleted it itself.


@pytest.fixture
def wire(account):
    """A bare signing client."""
    made = Wire(account)
    yield made
    made.close()


@pytest.fixture
def blob(container):
    """A blob client of a name that nothing is stored under."""
    return container.get_blob_client("the-blob")


def block_id(number):
    """Ids of one length."""
    return base64.b64encode(f"{number:06}".encode()).decode()


def code_of(error):
    """The code of an SDK error as text; the SDK makes it an enum when it knows it."""
    return str(getattr(error.error_code, "value", error.error_code))


def refused(call, status, code):
    """Asserts that `call` is refused with this status and this code, and returns the error."""
    with pytest.raises(HttpResponseError) as caught:
        call()
    assert (caught.value.status_code, code_of(caught.value)) == (status, code)
    return caught.value


def put_many(container, names, data=b"x"):
    """Uploads one small blob under each name, a few at a time."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: container.upload_blob(name, data), names))
