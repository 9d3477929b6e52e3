"""R10: SIGKILL of a proof of `regard blame`: continued, it gives the same answer, to the last digit."""

import os
import random
import shutil
import signal
import time
import traceback
from dataclasses import asdict
from pathlib import Path

from regard.blame.candidates import CandidateSearch
from regard.blame.evidence import find_causes
from regard.blame.question import ask
from regard.blame.replays import Replays
from regard.blame.run import open_run
from regard.config.codec import RUN_FILES
from regard.training.run import fit
from tests.blame.runs import QUESTION, make_planted_run
from tests.faults.frozen import make_scratch_folder
from tests.faults.verdict import Verdict

KILLS, QUICK_KILLS = 30, 3
STEPS = {"train.steps": 12, "train.save_every": 4, "validation.every_steps": 12}
MAX_KILLS_PER_PROOF = 6


def prove(quick: bool = False) -> Verdict:
    """Kill proofs 30 times at random moments; or, quick, 3 times."""
    verdict, rng = Verdict("R10", "kills of a proof changed its answer"), random.Random(3)
    total = QUICK_KILLS if quick else KILLS
    with make_scratch_folder() as folder:
        run = folder / "run"
        fit(RUN_FILES.change(make_planted_run(folder / "corpus"), STEPS), run)
        began = time.monotonic()
        expected = answer_question(run)
        seconds, unfinished = time.monotonic() - began, 0
        while verdict.faults < total:
            shutil.rmtree(run / "blame")
            for _ in range(min(MAX_KILLS_PER_PROOF, total - verdict.faults)):
                child = _start(run)
                time.sleep(rng.uniform(0, seconds / 3))
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                unfinished += len(list((run / "blame").glob("*.run")))
                verdict.add_fault("a kill", [])
            verdict.require(f"another answer after kill {verdict.faults}", answer_question(run) == expected)
            verdict.require("an unfinished replay remains", not list((run / "blame").glob("*.run")))
    verdict.require("no kill hit a replay", unfinished > 0)
    verdict.notes.append(f"{unfinished} during a replay")
    return verdict


def answer_question(run: Path) -> str:
    """Prove what taught the model a word, or continue; return the answer with all log-odds."""
    pipeline, shards = open_run(run)
    question = ask(pipeline, QUESTION, "Brot", output="Hund findet Brot")
    candidates = CandidateSearch(shards, pipeline.make_scorer(1.0)).find(question, 3)
    (result,) = find_causes([question], [candidates], Replays(run, count=2), shards)
    return repr(asdict(result))


def _start(run: Path) -> int:
    child = os.fork()
    if child == 0:
        try:
            answer_question(run)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    return child
