"""Pictures of docs/images, made by the scripts that test what they show. Only with UPDATE_DOCS=1 are they written."""

import html
import os
import pathlib
import shutil

from .browser import Browser
from .ports import free_port

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "docs" / "images"
COLUMNS = 108
STYLE = """
body { margin: 0; background: #fff; }
#terminal { display: inline-block; background: #16181d; color: #d7dae0; border-radius: 8px; padding: 18px 24px; margin: 0; font: 14px/1.5
"DejaVu Sans Mono", monospace; white-space: pre; }
#terminal b { color: #fff; }
#terminal i { color: #8a919e; font-style: normal; }
"""


def wanted():
    """Whether pictures are to be written."""
    return os.environ.get("UPDATE_DOCS") == "1"


def keep(path, name):
    """Copies a picture that a script has made."""
    if wanted():
        FOLDER.mkdir(exist_ok=True)
        shutil.copyfile(path, FOLDER / name)


def terminal(command, lines, scratch, name):
    """Draws a command and what it printed, with long lines cut."""
    if not wanted() or Browser.missing():
        return
    shown = [line if len(line) <= COLUMNS else f"{line[:COLUMNS - 1]}…" for line in lines]
    body = "\n".join([f"<i>$</i> <b>{html.escape(command)}</b>", *map(html.escape, shown)])
    page = scratch / "terminal.html"
    page.write_text(f"<!doctype html><meta charset=utf-8><style>{STYLE}</style><pre id=terminal>{body}</pre>", encoding="utf-8")
    FOLDER.mkdir(exist_ok=True)
    with Browser(free_port()) as browser:
        browser.open(page.as_uri())
        browser.picture("#terminal", FOLDER / name)
