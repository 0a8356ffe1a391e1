#!/usr/bin/env python3
"""blobfuse2 from its Go module, mounted with the file cache and with the block cache.

`BLOBFUSE2` names a program that is already there. Where neither it nor the module can be had, every row says so.
"""

import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

# pylint: disable=wrong-import-position
from lib import cli, mounted
from lib.install import Unavailable, cache, debian
from lib.judged import Judged, NotRun, parse

MODULE, VERSION = "github.com/Azure/azure-storage-fuse/v2", "v2.5.1"
BUILD_SECONDS = 900
# blobfuse2 takes the account from the host name, so its addresses are host-style. The server knows this domain.
DOMAIN = "blob.localhost"
COMMON = """\
logging:
  type: base
  level: log_warning
libfuse:
  attribute-expiration-sec: 0
  entry-expiration-sec: 0
attr_cache:
  timeout-sec: 0
azstorage:
  type: block
  mode: key
  account-name: {name}
  account-key: {key}
  endpoint: http://{name}.{domain}:{port}
  container: {container}
"""
MODES = {
    "file cache": "components: [libfuse, file_cache, attr_cache, azstorage]\nfile_cache:\n  path: {cache}\n  timeout-sec: 0\n",
    "block cache": "components: [libfuse, block_cache, attr_cache, azstorage]\nblock_cache:\n  block-size-mb: 4\n  mem-size-mb: 256\n",
}


def program():
    """The program: named, on the path, or built."""
    found = os.environ.get("BLOBFUSE2") or shutil.which("blobfuse2")
    if found:
        return pathlib.Path(found)
    target = cache() / f"sdk-go-{VERSION}"
    built = target / "v2"
    if built.exists():
        return built
    if not shutil.which("go"):
        raise Unavailable("no blobfuse2 and no go to build it")
    debian(["libfuse3-dev", "fuse3", "gcc"])
    done = subprocess.run(["go", "install", "-tags", "fuse3", f"{MODULE}@{VERSION}"], env={**os.environ, "GOBIN": str(target)},
                          capture_output=True, text=True, timeout=BUILD_SECONDS)
    if done.returncode:
        said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        refused = next((line for line in said if "403" in line or "404" in line), said[-1] if said else "")
        raise Unavailable(f"go install {MODULE}@{VERSION}: {refused.rsplit(': ', 1)[-1]}")
    return built


def main(options, scratch):
    judged = Judged("blobfuse2", VERSION.lstrip("v"), options)
    try:
        binary = program()
    except Unavailable as missing:
        for mode in MODES:
            judged.not_run(mode, str(missing))
        return judged.exit_code()
    with cli.server(options, scratch, extra=[f"--blob-domain={DOMAIN}"]) as server:
        account, port = server.account, server.blob_address.split(":")[1]
        for mode, text in MODES.items():
            label = mode.replace(" ", "-")
            account.service().create_container(label)
            settings = scratch / f"{label}.yaml"
            settings.write_text((text + COMMON).format(name=account.name, key=account.key, domain=DOMAIN, port=port,
                                                       container=label, cache=scratch / f"{label}-cache"))
            command = [binary, "mount", scratch / label, f"--config-file={settings}", "--foreground",
                       "--disable-version-check=true"]
            # Its log and its state go below HOME; nothing of the person who runs this is read or written.
            home = {**os.environ, "HOME": str(scratch)}
            try:
                with mounted.at(scratch / label, command, home, scratch / f"{label}.log") as point:
                    mounted.groups(judged, point, scratch, mode)
            except NotRun as missing:
                judged.not_run(mode, str(missing))
            except AssertionError as error:
                with judged.group(mode):
                    raise error
    return judged.exit_code()


if __name__ == "__main__":
    cli.run(main, parse(__doc__))
