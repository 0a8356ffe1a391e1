"""One server for the whole run, one fresh bucket for each test."""

import pathlib
import sys
import uuid

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

# pylint: disable=wrong-import-position
from lib import s3
from lib.account import DEV_KEY, DEV_NAME, Account
from lib.cli import remember_operations
from lib.issuer import ISSUER, Issuer
from lib.server import Server


OTHER_NAME = "otheraccount"
OTHER_KEY = "b3RoZXIga2V5IG90aGVyIGtleSBvdGhlciBrZXkgb3RoZXIga2V5IG90aGVyIGtleSBvdGhlciBrZXkgMDAwMA=="

# A user of the configuration: name, access key id, secret.
CONFIGURED = ("configured", "CONFIGUREDKEY1", "a/secret+of=the-configuration")


def pytest_addoption(parser):
    """The program to judge."""
    parser.addoption("--binary", help="the blockyard program")
    parser.addoption("--serve-arg", action="append", default=[], help="further argument of `blockyard serve`")


@pytest.fixture(scope="session")
def issuer():
    """An issuer of tokens that the server trusts."""
    return Issuer()


@pytest.fixture(scope="session")
def server(request, tmp_path_factory, issuer):
    """A server with the development account."""
    folder = tmp_path_factory.mktemp("s3")
    (folder / "keys.json").write_text(issuer.key_set())
    extra = [f"--account={DEV_NAME}:{DEV_KEY}", f"--account={OTHER_NAME}:{OTHER_KEY}", "--blob-domain=localhost", "--rehydration-seconds=4",
             f"--user={DEV_NAME}/{':'.join(CONFIGURED)}", f"--oidc=issuer={ISSUER};jwks={folder / 'keys.json'};account={OTHER_NAME}",
             *request.config.getoption("--serve-arg")]
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
def other_account(server):
    """Another account of the store; it is closed to anonymous access."""
    return Account(server.account.address, OTHER_NAME, OTHER_KEY)


@pytest.fixture
def service(account):
    """An Azure client of the account."""
    return account.service()


@pytest.fixture
def client(account):
    """A boto3 client."""
    return s3.client(account)


@pytest.fixture
def raw(account):
    """A client that sends what it is told to."""
    return s3.Raw(account)


@pytest.fixture
def bucket(client, service):
    """A new bucket, deleted in the end with all that is in it."""
    name = f"b{uuid.uuid4().hex}"
    client.create_bucket(Bucket=name)
    yield name
    try:
        service.delete_container(name)
    except Exception:  # pylint: disable=broad-except
        pass  # The test deleted it itself.
