"""Copies by raw requests."""


def copy(raw, bucket, source, key="to", **headers):
    """The raw answer to a copy; headers are written with underscores."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    return raw.call("PUT", f"/{bucket}/{key}", headers={"x-amz-copy-source": source, **sent})


def missing(raw, bucket, key="to"):
    """Whether there is no object."""
    return raw.call("HEAD", f"/{bucket}/{key}").status == 404
