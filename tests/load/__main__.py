"""Strike a real server: one line per proof, "0 of N" if no request, client or signal did harm.

    python -m tests.load                    # H1 to H10, about half an hour
    python -m tests.load H3 H6              # some
    python -m tests.load --quick            # 1/50 of the counts, as in CI
    python -m tests.load starts             # 20 starts and ends with CTranslate2
    python -m tests.load nginx              # a replica behind nginx is killed under load
    python -m tests.load soak --minutes 30  # mixed load: memory, descriptors, threads

Exits with code 1 if a guarantee is violated. The last line is JSON.
"""

import argparse
import asyncio
import json
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory

from regard.serve.settings import add_key
from tests.faults.verdict import Verdict
from tests.load import attacks, hostile, nginx, overload, slow, soak, starts, structured
from tests.load.server import Server, run_server

PROOFS = ("H1", "H2", "H3", "H4", "H5", "H6", "H7", "H8", "H9", "H10")
OTHERS = ("starts", "nginx", "soak")
MAX_SHOWN = 20
DEADLINES = {False: (10.0, 30.0), True: (1.0, 1.5)}  # seconds for headers and body, by `quick`


def main() -> None:
    """Run proofs and print their lines."""
    parser = argparse.ArgumentParser(prog="python -m tests.load", description=(__doc__ or "").split("\n")[0])
    known = ", ".join((*PROOFS, *OTHERS))
    parser.add_argument("proofs", nargs="*", metavar="PROOF", help=f"of {known} (default: H1 to H10)")
    parser.add_argument("--quick", action="store_true", help="1/50 of the counts, as in CI")
    parser.add_argument("--minutes", type=float, default=30.0, help="of soak")
    options = parser.parse_args()
    names = options.proofs or list(PROOFS)
    if unknown := set(names) - {*PROOFS, *OTHERS}:
        parser.error(f"unknown proof {', '.join(sorted(unknown))}; there are {known}")
    verdicts = []
    with ExitStack() as stack:
        proofs = Proofs(stack, options.quick, options.minutes)
        for name in names:
            start = time.monotonic()
            verdict = proofs.run(name)
            verdicts.append(verdict)
            sys.stdout.write(f"{verdict.line} ({time.monotonic() - start:.0f} s)\n")
            sys.stdout.writelines(f"    {violation[:1000]}\n" for violation in verdict.violations[:MAX_SHOWN])
            sys.stdout.flush()
    summary = {verdict.name: {"violations": len(verdict.violations), "of": verdict.faults} for verdict in verdicts}
    sys.stdout.write(json.dumps(summary) + "\n")
    sys.exit(any(verdict.violations for verdict in verdicts))


class Proofs:
    """Runs proofs; those that leave a server as it was share one."""

    def __init__(self, stack: ExitStack, quick: bool, minutes: float) -> None:
        self.stack, self.quick, self.minutes = stack, quick, minutes
        self._server: Server | None = None

    @property
    def server(self) -> Server:
        """The server that proofs share: default settings, in the quick form shorter deadlines."""
        if self._server is None or not self._server.is_alive:
            header, body = DEADLINES[self.quick]
            settings = (f"deadlines.headers={header}", f"deadlines.body={body}", "queue.timeout=600")
            self._server = self.stack.enter_context(run_server(*settings))
        return self._server

    def run(self, name: str) -> Verdict:
        """Run a proof by its name."""
        quick = self.quick
        if name == "H1":
            return asyncio.run(structured.prove(self.server, quick))
        if name == "H2":
            return asyncio.run(hostile.prove_mutations(self.server, quick))
        if name == "H3":
            return asyncio.run(slow.prove_slow(self.server, quick, *DEADLINES[quick]))
        if name == "H4":
            return asyncio.run(overload.prove_overload(quick))
        if name == "H5":
            return asyncio.run(slow.prove_disconnects(self.server, quick))
        if name == "H6":
            return asyncio.run(slow.prove_limits(self.server, quick))
        if name == "H7":
            return asyncio.run(overload.prove_ends(quick, self.server if quick else None))
        if name == "H8":
            return asyncio.run(hostile.prove_paths(self.server, quick))
        if name == "H9":
            return self._prove_keys()
        if name == "H10":
            return asyncio.run(attacks.prove(self.server, quick))
        if name == "starts":
            return starts.prove(quick)
        if name == "nginx":
            return asyncio.run(nginx.prove(quick))
        return asyncio.run(soak.prove(self.server, self.minutes))

    def _prove_keys(self) -> Verdict:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "keys.txt"
            key = add_key(path, "alice")
            with run_server(options=["--keys", str(path), "--reload-key", "alice"]) as server:
                return asyncio.run(hostile.prove_keys(server, key, self.quick))


if __name__ == "__main__":
    main()
