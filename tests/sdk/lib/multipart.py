"""Bodies of browser forms. Nothing but the standard library."""

BOUNDARY = "----tests7MA4YWxkTrZu0gW"
KIND = f"multipart/form-data; boundary={BOUNDARY}"


def part(name, value, filename=None):
    """One part of a form."""
    file = "" if filename is None else f'; filename="{filename}"'
    value = value if isinstance(value, bytes) else value.encode()
    return f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"{file}\r\n\r\n'.encode() + value + b"\r\n"


def body(fields, file=b"content", filename="a.txt", after=(), end=f"--{BOUNDARY}--\r\n"):
    """A form: fields, the file unless it is None, fields behind it."""
    parts = [part(name, value) for name, value in fields]
    if file is not None:
        parts.append(part("file", file, filename))
    return b"".join([*parts, *(part(name, value) for name, value in after), end.encode()])
