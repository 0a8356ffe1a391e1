#!/usr/bin/env python3
"""Runs the S3 suite in s3/ against a server started for it. Further arguments go to pytest."""

import logging
import pathlib
import sys

import pytest

from lib import cli

if __name__ == "__main__":
    flags = cli.parser(__doc__)
    flags.add_argument("pytest", nargs="*", help="arguments for pytest, after `--`")
    parsed = cli.parse(flags)
    logging.captureWarnings(True)
    folder = pathlib.Path(__file__).parent / "s3"
    arguments = ["-q", "-p", "no:cacheprovider", "--rootdir", str(folder), f"--binary={parsed.binary}",
                 *(f"--serve-arg={argument}" for argument in parsed.serve_arg)]
    sys.exit(pytest.main(arguments + (parsed.pytest or [str(folder)])))
