"""One server for the whole run, one fresh bucket for each test; what several files of tests use."""

import datetime
import pathlib
import sys
import uuid

import botocore
import botocore.exceptions
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

# pylint: disable=wrong-import-position
from lib import commands, s3, s3_users
from lib.account import DEV_KEY, DEV_NAME, Account
from lib.cli import remember_operations
from lib.issuer import ISSUER, Issuer
from lib.s3_forms import Form
from lib.server import Server


OTHER_NAME = "otheraccount"
OTHER_KEY = "b3RoZXIga2V5IG90aGVyIGtleSBvdGhlciBrZXkgb3RoZXIga2V5IG90aGVyIGtleSBvdGhlciBrZXkgMDAwMA=="

# A user of the configuration: name, access key id, secret.
CONFIGURED = ("configured", "CONFIGUREDKEY1", "a/secret+of=the-configuration")


def refusal(call, **arguments):
    """Status and code of a boto3 call that has to be refused."""
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        call(**arguments)
    return s3.code(caught.value)


def outcome(answer):
    """Status and code of an answer."""
    return answer.status, answer.code()


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
    """A client that sends requests as given."""
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


@pytest.fixture
def user(server, account):
    """A user without a role."""
    made = s3_users.create(server, account)
    yield made
    commands.run(server, "user", "delete", made.place)


@pytest.fixture
def second(server, account):
    """Another user without a role."""
    made = s3_users.create(server, account)
    yield made
    commands.run(server, "user", "delete", made.place)


@pytest.fixture
def own(user, service):
    """A bucket that the user owns."""
    name = f"o{uuid.uuid4().hex}"
    user.client().create_bucket(Bucket=name)
    yield name
    try:
        service.delete_container(name)
    except Exception:  # pylint: disable=broad-except
        pass  # The test deleted it itself.


@pytest.fixture
def subject(server, account):
    """A subject of the issuer that reads the account."""
    name = f"s-{uuid.uuid4().hex}"
    commands.command(server, "account", "grant", account.name, "reader", name)
    yield name
    commands.run(server, "account", "ungrant", account.name, "reader", name)


@pytest.fixture
def sts(account):
    """A client that does not sign."""
    return s3_users.keyed(account, "unused", "unused", service="sts", signature_version=botocore.UNSIGNED)


@pytest.fixture
def form(account, bucket):
    """A form for the key `k`."""
    return Form(account, bucket)


@pytest.fixture(name="made")
def fixture_made(client, bucket):
    """An object with everything that a copy may take over."""
    return client.put_object(
        Bucket=bucket, Key="from", Body=b"hello", ContentType="text/plain", ContentEncoding="identity",
        ContentLanguage="de", ContentDisposition="inline", CacheControl="no-cache", Metadata={"k": "v"},
        Expires=datetime.datetime(2030, 1, 1), WebsiteRedirectLocation="/there", StorageClass="STANDARD_IA")


@pytest.fixture(scope="module")
def shared(server):
    """A bucket of all tests of a file, with one object, which none of them changes."""
    client = s3.client(server.account)
    name = f"b{uuid.uuid4().hex}"
    client.create_bucket(Bucket=name)
    client.put_object(Bucket=name, Key="k", Body=b"content")
    yield name
    assert client.get_object(Bucket=name, Key="k")["Body"].read() == b"content"
    assert [one["Key"] for one in client.list_objects_v2(Bucket=name)["Contents"]] == ["k"], "a refused request stored"
