"""What real clients were found to rely on; `clients/s3_*.py` have the clients themselves."""

import base64
import email.utils
import hashlib
import hmac
import io
import time

import pytest

from lib import s3


def test_a_connection_ends_when_nobody_waited_for_its_continue(account, bucket):
    """botocore misreads the answer that follows, on the same connection, one that came in the place of `100 Continue`."""
    client = s3.client(account, max_pool_connections=1)
    for size in (0, 100, 0, 70000):
        body = b"x" * size
        put = client.put_object(Bucket=bucket, Key="k", Body=io.BytesIO(body))
        assert put["ETag"] == f'"{hashlib.md5(body).hexdigest()}"'


@pytest.mark.parametrize("size, ends", [(0, True), (5, False)])
def test_answers_in_the_place_of_continue_end_the_connection(raw, bucket, size, ends):
    answer = raw.call("PUT", f"/{bucket}/k", headers={"expect": "100-continue"}, body=b"x" * size)
    assert answer.status == 200
    assert (answer.headers.get("connection") == "close") == ends


@pytest.mark.parametrize("zone", ["GMT", "+0000", "-0000", "UTC"])
@pytest.mark.parametrize("header", ["date", "x-amz-date"])
def test_dates_of_version_2(account, raw, bucket, zone, header):
    """s3cmd writes dates as RFC 5322 does."""
    date = email.utils.formatdate(time.time(), usegmt=True).replace("GMT", zone)
    lines = ["GET", "", "", date if header == "date" else "", *([f"x-amz-date:{date}"] if header == "x-amz-date" else []), f"/{bucket}"]
    mac = hmac.new(account.key.encode(), "\n".join(lines).encode(), hashlib.sha1).digest()
    answer = raw.send("GET", f"/{bucket}", {header: date, "authorization": f"AWS {account.name}:{base64.b64encode(mac).decode()}"})
    assert answer.status == 200


@pytest.mark.parametrize("date", ["Thu, 26 Nov 2026 23:43:25 +0100", "Thu, 26 Nov 2026 23:43:25", "now +0000"])
def test_other_dates_are_refused(account, raw, bucket, date):
    answer = raw.send("GET", f"/{bucket}", {"date": date, "authorization": f"AWS {account.name}:c2lnbmF0dXJl"})
    assert (answer.status, answer.code()) == (403, "AccessDenied")


def test_a_bucket_without_locks_is_asked_for(raw, client):
    """rclone says so of every bucket that it makes."""
    name = "without-locks"
    answer = raw.call("PUT", f"/{name}", headers={"x-amz-bucket-object-lock-enabled": "false"})
    assert answer.status == 200
    client.delete_bucket(Bucket=name)


def test_checksums_in_a_presigned_url_do_not_count(raw, client, bucket):
    """The AWS SDK for JavaScript signs the checksum of an empty body, because it has none yet."""
    query = [("x-amz-checksum-crc32", "AAAAAA=="), ("x-amz-sdk-checksum-algorithm", "CRC32")]
    assert raw.send("PUT", raw.presign("PUT", f"/{bucket}/k", query), body=b"content").status == 200
    assert client.get_object(Bucket=bucket, Key="k")["Body"].read() == b"content"
