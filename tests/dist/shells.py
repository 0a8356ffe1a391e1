"""Completions, loaded by each shell, and manual pages, formatted."""

import pathlib
import shutil
import subprocess
import tempfile

from place import Skipped, done, expect, need, run

# What each shell runs: it loads the file $1 and prints the completions of `blockyard comp`, or of a flag.
BASH = r"""
set -e
source "$1"
complete -p blockyard >/dev/null
COMP_WORDS=(blockyard comp) COMP_CWORD=1
_blockyard blockyard comp blockyard
printf '%s\n' "${COMPREPLY[@]}"
COMP_WORDS=(blockyard serve --master-) COMP_CWORD=2
_blockyard blockyard --master- serve
printf '%s\n' "${COMPREPLY[@]}"
"""
# Without a terminal zsh completes nothing. It loads the function as a user's shell does, and binds it to the command.
ZSH = r"""
fpath=(${1:h} $fpath)
autoload -Uz compinit && compinit -D
[[ $_comps[blockyard] == _blockyard ]] || exit 1
autoload +X _blockyard || exit 1
print -r -- $functions[_blockyard] $functions[_blockyard_commands]
source $1 2>/dev/null
print -r -- $functions[_blockyard] $functions[_blockyard_commands]
"""
FISH = r"""
source $argv[1]
complete -C 'blockyard comp'
complete -C 'blockyard serve --master-'
"""
SHELLS = {
    "bash": (["bash", "--norc", "-c", BASH, "bash"], "blockyard"),
    "zsh": (["zsh", "-f", "-c", ZSH, "zsh"], "_blockyard"),
    "fish": (["fish", "--no-config", "-c", FISH], "blockyard.fish"),
}


def completions(program):
    """Each shell loads its completions and completes a command and a flag."""
    missing = []
    with tempfile.TemporaryDirectory(prefix="dist-") as folder:
        for shell, (command, name) in SHELLS.items():
            if not shutil.which(shell):
                missing.append(shell)
                continue
            path = pathlib.Path(folder) / shell / name
            path.parent.mkdir()
            path.write_text(subprocess.run([program, "completions", shell], capture_output=True, text=True, check=True).stdout)
            said = run([*command, str(path)])
            expect("completions" in said and "--master-key-file" in said, f"{shell} completes neither: {said}")
            done(f"{shell}: loaded; completes `blockyard completions` and `--master-key-file`")
    if missing:
        done(f"skipped: {', '.join(missing)} not installed")
    if len(missing) == len(SHELLS):
        raise Skipped("no shell is installed")


def pages(program):
    """The manual pages format without a warning, one for each command."""
    need("man", "man-db")
    need("groff", "groff-base")
    with tempfile.TemporaryDirectory(prefix="dist-") as folder:
        run([program, "man", folder])
        found = sorted(pathlib.Path(folder).iterdir())
        expect(len(found) > 40, f"only {len(found)} pages")
        for page in found:
            warnings = run(["groff", "-man", "-Tutf8", "-ww", "-z", str(page)])
            expect(not warnings, f"{page.name}: {warnings}")
        text = run(["man", "--local-file", str(pathlib.Path(folder) / "blockyard-serve.1")])
        expect("--master-key-file" in text, "the page of `serve` lacks its flags")
        done(f"{len(found)} pages, no warnings")
