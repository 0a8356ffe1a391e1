#!/usr/bin/env python3
"""One store through both protocols, against a model.

Random changes of a few blobs, each through Blob or through S3, with their refusals. After each one both protocols must show
the blob as the model has it: bytes, length, type, metadata, tags, tier, and both entity tags, of which Blob's changes with each
change and S3's with the content only. Every few steps the lists of both must have the same names. In the middle the process is
killed.
"""

import random

from lib import cli, faces_changes
from lib.faces import Faces
from lib.faces_model import MODEL_NAMES, Model, step
from lib.report import Progress, Verdicts

SMALL_STEPS, STEPS = 2_000, 100_000


def wrong_after(model, faces, key):
    """What a protocol shows of a key that the model does not have."""
    blob = model.blobs.get(key)
    secret = blob.secret if blob else None
    return [wrong for face in (faces.blob, faces.s3) for wrong in model.wrong(key, face.name, face.read(key, secret))]


def wrong_lists(model, faces):
    """Names that a list has and the model has not, or the reverse."""
    want = model.listed()
    return [f"{face.name} lists {found}, not {want}" for face in (faces.blob, faces.s3)
            if (found := face.list()) != want]


def main(options, scratch):
    verdicts = Verdicts("both protocols")
    draw, steps = random.Random(options.seed), options.steps or (SMALL_STEPS if options.small else STEPS)
    with cli.server(options, scratch, ["--split-requests", "400"]) as server:
        faces = Faces(server.account, "both")
        model = Model(MODEL_NAMES, f"{server.account.url}/both", "both")
        wrong = []
        with Progress("change", steps, "steps") as progress:
            for number in range(steps):
                key, said, refused = step(draw, model, faces)
                wrong = [f"step {number} ({said}) of {key}: {one}" for one in refused + wrong_after(model, faces, key)]
                if number % 50 == 49:
                    wrong += wrong_lists(model, faces)
                if number == steps // 2:
                    server.kill()
                    server.start()
                    faces.reconnect()
                    wrong += [f"after kill -9, {key}: {one}" for key in MODEL_NAMES for one in wrong_after(model, faces, key)]
                if wrong:
                    break
                progress.advance()
        verdicts.none("shown otherwise than the model has it", wrong)
        verdicts.equal("steps", number + 1, steps)
        verdicts.none("changes that no step made", faces_changes.unused(model))
        server.stop()
        verdicts.equal("check", server.check()[0], 0)
    return verdicts.exit_code()


if __name__ == "__main__":
    flags = cli.parser(__doc__)
    flags.add_argument("--seed", type=int, default=1, help="the history (default 1)")
    flags.add_argument("--steps", type=int, help="changes, in place of the size's own number")
    parsed = cli.parse(flags)
    cli.run(main, parsed)
