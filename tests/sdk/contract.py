#!/usr/bin/env python3
"""Requests drawn from the published description by schemathesis; every answer is compared with that description.

For each operation, requests that keep to the description and requests that break it are sent to a real server, most of them
about things that exist: some drawn, some from the list that schemathesis makes of every bound of every schema. No answer may
be a 5xx, and each must be as described: status, error code, headers, content type, body. The seed is fixed; --seed and
--examples change what is drawn. `contract.py GetBlob PutPage` asks only those.
"""

import collections
import random
import warnings

from hypothesis import HealthCheck, Phase, given, seed, settings
import schemathesis
from schemathesis.generation import GenerationMode

from lib import accounts, cli, commands, openapi
from lib.fuzzing import Connection, Draft, World
from lib.report import Progress, Verdicts

# The number of requests after which the fixtures are made again: some were deleted, sealed or leased meanwhile.
WORLD_REQUESTS = 12
# Operations that never succeed on this server, and why.
NEVER = {"IncrementalCopyBlob": "no drawn source is a snapshot of a page blob",
         "RestoreContainer": "nothing deleted is kept", "AbortCopy": "copies of this size are done when they are answered",
         "GetUserDelegationKey": "needs a token", "QueryBlobContents": "no drawn text is a statement"}
# Operations that only succeed in containers with object lock. They are asked last, in such containers.
LOCKING = ("SetBlobImmutabilityPolicy", "DeleteBlobImmutabilityPolicy", "SetBlobLegalHold")


class Tally:
    """The requests and answers."""

    def __init__(self):
        self.codes, self.faults, self.sent = collections.Counter(), {}, 0
        self.successes = collections.Counter()

    def fault(self, operation, rule, what, sent, answer):
        """Records the first request of each kind of fault."""
        key = (operation, rule, what[:80])
        if key not in self.faults:
            self.faults[key] = f"{operation}: {rule}: {what}\n    {sent.shown()}\n    -> {answer.status} {answer.body[:300]!r}"


def load():
    """The description as schemathesis takes it, without signatures: those are added to each request here."""
    document = openapi.load()
    schema = schemathesis.openapi.from_dict({**document, "security": []})
    schema.config.generation.update(with_security_parameters=False)
    return document, [found.ok() for found in schema.get_all_operations()]


def definition(document, operation):
    """The operation's object, with the parameters of its path."""
    item = document["paths"][operation.path]
    own = item[operation.method]
    return {**own, "parameters": item.get("parameters", []) + own.get("parameters", [])}


def body_of(case):
    """A case's body as bytes, as its media type has it; nothing where that cannot be."""
    try:
        data = case.as_transport_kwargs("http://unused").get("data")
    except Exception:  # pylint: disable=broad-except  # Some drawn bodies cannot be written as their media type.
        return None
    return data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data if isinstance(data, bytes) else None


class Run:
    """One operation, one way of drawing."""

    def __init__(self, server, judge, tally):
        self.account, self.judge, self.tally = server.account, judge, tally
        self.connection, self.world, self.left = Connection(server.blob_address), None, 0

    def one(self, described, operation, case, rng, faithful=False):
        """Sends one request, perhaps exactly as drawn, and judges its answer."""
        if self.left == 0:
            self.world, self.left = World(self.account), WORLD_REQUESTS
        self.left -= 1
        draft = Draft(described, operation.method, operation.path, self.world, rng)
        sent = draft.faithful(case, body_of(case)) if faithful else draft.request(case, body_of(case))
        answer = self.connection.send(sent)
        if answer is None:
            return
        name = described["operationId"]
        self.tally.sent += 1
        self.tally.codes[answer.code or str(answer.status)] += 1
        if answer.status < 300 and not sent.stranger:
            self.tally.successes[name] += 1
        if name == "DeleteContainer" and answer.status < 300:
            self.left = 0
        if answer.status >= 500 and not self._may_fail(described, sent, answer):
            self.tally.fault(name, "5xx", f"{answer.status} {answer.code}", sent, answer)
        if sent.stranger:
            # Another operation may have answered.
            if answer.status < 300:
                return
            described = {**described, "x-error-codes": list(self.judge.status)}
        for rule, what in self.judge.faults(described, sent.method, answer):
            self.tally.fault(name, rule, what, sent, answer)


    @staticmethod
    def _may_fail(described, sent, answer):
        """Whether a 5xx is as described: not served, or a source that cannot be reached."""
        if answer.code == "NotImplemented":
            return sent.stranger or "NotImplemented" in described["x-error-codes"]
        return answer.status == 500 and answer.code == "CannotVerifyCopySource"


def lock(server, run):
    """From now on containers are made with object lock."""
    commands.command(server, "account", "set", accounts.DEV_NAME, "--versioning", "on", "--object-lock", "on")
    run.left = 0


def ask(run, described, operation, mode, options):
    """Draws `options.examples` requests of one mode."""
    @seed(options.seed)
    @settings(max_examples=options.examples, deadline=None, database=None, phases=[Phase.generate],
              suppress_health_check=list(HealthCheck))
    @given(operation.as_strategy(mode))
    def drawn(case):
        # Not hypothesis's own randomness: it prefers extremes, and most requests should be almost valid.
        rng = random.Random(f"{options.seed} {described['operationId']} {mode} {run.tally.sent}")
        run.one(described, operation, case, rng)

    drawn()


def ask_each(run, described, operation, options):
    """Sends the cases that schemathesis lists for an operation: each parameter and each part of the body at and past every
    bound its schema has, one at a time."""
    cases = operation.schema.iter_coverage_cases(
        operation, generation_modes=list(GenerationMode), generation_config=operation.schema.config.generation)
    for number, case in enumerate(cases):
        if number % options.stride == 0:
            run.one(described, operation, case, random.Random(f"{options.seed} {number}"), faithful=True)


def main(options, scratch):
    document, operations = load()
    wanted = [operation for operation in operations
              if not options.operations or definition(document, operation)["operationId"] in options.operations]
    wanted.sort(key=lambda operation: definition(document, operation)["operationId"] in LOCKING)
    tally, verdicts, is_locked = Tally(), Verdicts("contract"), False
    with cli.server(options, scratch, extra=[f"--account={accounts.DEV_NAME}:{accounts.DEV_KEY}"]) as server:
        run = Run(server, openapi.Judge(document), tally)
        World(server.account).allow_origins()
        with Progress("operations", len(wanted)) as progress:
            for operation in wanted:
                described = definition(document, operation)
                if described["operationId"] in LOCKING and not is_locked:
                    lock(server, run)
                    is_locked = True
                for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
                    ask(run, described, operation, mode, options)
                ask_each(run, described, operation, options)
                progress.advance()
        alive = server.running()
        server.stop()
        verdicts.sound(server)
    verdicts.check("the server lives", alive, "running", "running" if alive else "ended")
    verdicts.none("answers that break the description", list(tally.faults.values()), examples=options.show)
    names = [definition(document, operation)["operationId"] for operation in wanted]
    verdicts.none("operations that never succeeded", [name for name in names if name not in NEVER and not tally.successes[name]], examples=50)
    verdicts.figure("requests", f"{tally.sent:,}")
    verdicts.figure("operations", f"{len(names)}")
    verdicts.figure("different error codes", f"{sum(not code.isdigit() for code in tally.codes)}")
    print("answers by code: " + ", ".join(f"{code} {count}" for code, count in tally.codes.most_common()), flush=True)
    return verdicts.exit_code()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parser = cli.parser(__doc__)
    parser.add_argument("--seed", type=int, default=20261121, help="of everything that is drawn")
    parser.add_argument("--examples", type=int, help="requests of each operation and mode (default: 300, with --small 30)")
    parser.add_argument("--stride", type=int, help="which of the listed cases: every so many (default: all, with --small every 10th)")
    parser.add_argument("--show", type=int, default=40, help="faults printed at the end")
    parser.add_argument("operations", nargs="*", help="only these operations")
    arguments = cli.parse(parser)
    arguments.examples = arguments.examples or (30 if arguments.small else 300)
    arguments.stride = arguments.stride or (10 if arguments.small else 1)
    cli.run(main, arguments)
