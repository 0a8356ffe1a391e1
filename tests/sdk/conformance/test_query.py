"""Query Blob Contents with the Python client: formats, statements, errors, and what may be queried."""

import io
import json
import uuid

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobBlock, BlobClient, DelimitedJsonDialect, DelimitedTextDialect, generate_blob_sas
from conftest import block_id, refused
from test_encryption import key

CSV = b"Service,Package,Version\r\nApp Configuration,azure-data,1.0.1\r\nEvent Hubs,azure-event,5.0.1\r\n"
NUMBERS = b"100,200,300,400\n300,400,500,600\n"


def fill(blob, content):
    """A block blob with this content."""
    blob.upload_blob(content, overwrite=True)
    return blob


def test_a_statement_selects_rows_and_columns(blob):
    fill(blob, NUMBERS)
    assert blob.query_blob("SELECT * FROM BlobStorage").readall() == NUMBERS
    assert blob.query_blob("SELECT _2 from BlobStorage WHERE _1 > 250").readall() == b"400\n"
    assert blob.query_blob("SELECT _2, _1 from BlobStorage LIMIT 1").readall() == b"200,100\n"
    assert blob.query_blob("SELECT COUNT(*) from BlobStorage").readall() == b"2\n"
    assert blob.query_blob("SELECT * FROM BlobStorage WHERE _1 = 'none'").readall() == b""


def test_the_first_record_can_be_a_header(blob):
    fill(blob, CSV)
    with_header = DelimitedTextDialect(has_header=True)
    plain = DelimitedTextDialect(has_header=False)
    reader = blob.query_blob("SELECT Package FROM BlobStorage WHERE Version LIKE '5%'",
                             blob_format=with_header, output_format=plain)
    assert reader.readall() == b"azure-event\n"
    assert len(reader) == len(CSV)


def test_records_are_read_one_by_one(blob):
    fill(blob, NUMBERS)
    reader = blob.query_blob("SELECT _1 FROM BlobStorage")
    # The client takes what follows the last separator for a record.
    assert [record for record in reader.records() if record] == [b"100", b"300"]
    out = io.BytesIO()
    blob.query_blob("SELECT _1 FROM BlobStorage").readinto(out)
    assert out.getvalue() == b"100\n300\n"


def test_text_becomes_json_and_json_becomes_text(blob):
    fill(blob, b"name,age\nann,5\nbob,7\n")
    header = DelimitedTextDialect(has_header=True)
    lines = blob.query_blob("SELECT * FROM BlobStorage", blob_format=header,
                            output_format=DelimitedJsonDialect(delimiter="\n")).readall().splitlines()
    assert [json.loads(line) for line in lines] == [{"name": "ann", "age": "5"}, {"name": "bob", "age": "7"}]
    fill(blob, b'{"name":"owner","at":{"x":[1,2]}}\n{"name":"other","at":{"x":[3]}}\n')
    reader = blob.query_blob("SELECT name, at.x[0] FROM BlobStorage WHERE at.x[0] > 1",
                             blob_format=DelimitedJsonDialect(delimiter="\n"),
                             output_format=DelimitedTextDialect(delimiter=";", quotechar="'", lineterminator="."))
    assert reader.readall() == b"other;3."


def test_json_stays_json(blob):
    fill(blob, b'{"name":"owner"}\n{"name":"other"}\n')
    for output in (None, DelimitedJsonDialect(delimiter="\n")):
        options = {"output_format": output} if output else {}
        got = blob.query_blob("SELECT name FROM BlobStorage", blob_format=DelimitedJsonDialect(delimiter="\n"), **options)
        assert [json.loads(line) for line in got.readall().splitlines()] == [{"name": "owner"}, {"name": "other"}]


def test_records_are_split_over_blocks(blob):
    rows = b"".join(b"%d,\"row %d, with a comma\",%s\n" % (n, n, b"x" * (n % 90)) for n in range(60_000))
    cuts = [rows[at:at + 777_777] for at in range(0, len(rows), 777_777)]
    for number, part in enumerate(cuts):
        blob.stage_block(block_id(number), part)
    blob.commit_block_list([BlobBlock(block_id(number)) for number in range(len(cuts))])
    reader = blob.query_blob("SELECT _1 FROM BlobStorage WHERE _2 LIKE 'row %9, with a comma'")
    assert reader.readall() == b"".join(b"%d\n" % n for n in range(60_000) if n % 10 == 9)
    everything = blob.query_blob("SELECT COUNT(*), MAX(CAST(_1 AS INT)) FROM BlobStorage")
    assert everything.readall() == b"60000,59999\n"


def test_faults_of_the_blob_are_reported_in_the_answer(blob):
    fill(blob, b"{name: owner}\n{name2: owner2}\n")
    errors = []
    reader = blob.query_blob("SELECT * from BlobStorage", on_error=errors.append,
                             blob_format=DelimitedJsonDialect(delimiter="\n"))
    assert reader.readall() == b""
    assert [(error.is_fatal, error.position) for error in errors] == [(True, 0)]
    fill(blob, b"1,a\nx,b\n3,c\n")
    errors.clear()
    reader = blob.query_blob("SELECT _2 FROM BlobStorage WHERE CAST(_1 AS INT) > 0", on_error=errors.append)
    assert reader.readall() == b"a\nc\n"
    assert [(error.error, error.is_fatal, error.position) for error in errors] == [("InvalidTypeConversion", False, 4)]


def test_wrong_statements_are_refused(blob):
    fill(blob, NUMBERS)
    for statement in ("SELECT", "SELECT * FROM Other", "SELECT * FROM BlobStorage ORDER BY _1", "DROP TABLE BlobStorage"):
        refused(lambda: blob.query_blob(statement), 400, "InvalidInput")
    assert blob.query_blob("SELECT _1 FROM BlobStorage").readall() == b"100\n300\n"


def test_snapshots_and_versions_are_queried(blob):
    fill(blob, b"old\n")
    snapshot = blob.create_snapshot()["snapshot"]
    fill(blob, b"new\n")
    old = BlobClient.from_blob_url(f"{blob.url}?snapshot={snapshot}", credential=blob.credential)
    assert old.query_blob("SELECT * FROM BlobStorage").readall() == b"old\n"
    assert blob.query_blob("SELECT * FROM BlobStorage").readall() == b"new\n"


def test_conditions_and_leases_are_those_of_a_read(blob):
    etag = fill(blob, NUMBERS).get_blob_properties().etag
    statement = "SELECT _1 FROM BlobStorage"
    assert blob.query_blob(statement, etag=etag, match_condition=MatchConditions.IfNotModified).readall() == b"100\n300\n"
    with pytest.raises(HttpResponseError) as caught:
        blob.query_blob(statement, etag="\"0x1\"", match_condition=MatchConditions.IfNotModified)
    assert (caught.value.status_code, caught.value.error_code) == (412, "ConditionNotMet")
    lease = blob.acquire_lease()
    assert blob.query_blob(statement, lease=lease).readall() == b"100\n300\n"
    assert blob.query_blob(statement).readall() == b"100\n300\n"
    with pytest.raises(HttpResponseError) as caught:
        blob.query_blob(statement, lease="00000000-0000-0000-0000-000000000001")
    assert caught.value.status_code == 412


def test_other_kinds_of_blobs_are_refused(container):
    log, disk = container.get_blob_client("log"), container.get_blob_client("disk")
    log.create_append_blob()
    disk.create_page_blob(512)
    for blob in (log, disk):
        refused(lambda: blob.query_blob("SELECT * FROM BlobStorage"), 409, "InvalidBlobType")
    refused(lambda: container.get_blob_client("none").query_blob("SELECT * FROM BlobStorage"), 404, "BlobNotFound")
    cold = fill(container.get_blob_client("cold"), NUMBERS)
    cold.set_standard_blob_tier("Archive")
    refused(lambda: cold.query_blob("SELECT * FROM BlobStorage"), 409, "BlobArchived")


def test_a_query_needs_the_right_to_read(account, container):
    fill(container.get_blob_client("b"), NUMBERS)
    url = f"{container.url}/b"
    for permission, status in (("r", 200), ("w", 403)):
        token = generate_blob_sas(account.name, container.container_name, "b", account_key=account.key,
                                  permission=permission, expiry="2099-01-01")
        client = BlobClient.from_blob_url(f"{url}?{token}")
        if status == 200:
            assert client.query_blob("SELECT _1 FROM BlobStorage").readall() == b"100\n300\n"
        else:
            refused(lambda: client.query_blob("SELECT _1 FROM BlobStorage"), 403, "AuthorizationPermissionMismatch")


def test_an_empty_blob_has_no_rows(blob):
    fill(blob, b"")
    assert blob.query_blob("SELECT * FROM BlobStorage").readall() == b""
    assert blob.query_blob("SELECT COUNT(*) FROM BlobStorage").readall() == b"0\n"


def test_the_answer_is_streamed_as_avro(blob, wire):
    fill(blob, NUMBERS)
    body = (b"<QueryRequest><QueryType>SQL</QueryType><Expression>SELECT * FROM BlobStorage</Expression></QueryRequest>")
    answer = wire.request("POST", f"/{blob.container_name}/{blob.blob_name}", {"comp": "query"}, {}, body)
    assert answer.status == 200
    assert answer.headers["content-type"] == "avro/binary"
    assert answer.headers["transfer-encoding"] == "chunked"
    assert answer.headers["x-ms-blob-type"] == "BlockBlob"
    assert "content-length" not in answer.headers
    assert answer.body.startswith(b"Obj\x01")


def test_a_blob_under_a_key_is_queried_with_it(blob):
    blob.upload_blob(NUMBERS, headers=key(1))
    assert blob.query_blob("SELECT _1 FROM BlobStorage", headers=key(1)).readall() == b"100\n300\n"
    refused(lambda: blob.query_blob("SELECT _1 FROM BlobStorage"), 409, "BlobUsesCustomerSpecifiedEncryption")


def test_anonymous_callers_query_public_blobs_only(service, account):
    for access, status in ((None, 401), ("blob", 200), ("container", 200)):
        container = service.create_container(f"c{uuid.uuid4().hex}", public_access=access)
        fill(container.get_blob_client("b"), NUMBERS)
        client = BlobClient.from_blob_url(f"{account.url}/{container.container_name}/b")
        if status == 200:
            assert client.query_blob("SELECT _1 FROM BlobStorage").readall() == b"100\n300\n"
        else:
            refused(lambda client=client: client.query_blob("SELECT _1 FROM BlobStorage"), 401, "NoAuthenticationInformation")
        container.delete_container()


def test_a_header_is_written_even_if_the_first_record_fails(blob):
    fill(blob, b"x\n1\n")
    with_header = DelimitedTextDialect(has_header=True)
    reader = blob.query_blob("SELECT CAST(_1 AS INT) AS n FROM BlobStorage", blob_format=DelimitedTextDialect(),
                             output_format=with_header, on_error=lambda _: None)
    assert reader.readall() == b"n\n1\n"
