"""Serve a live page of two small classifiers and print its address: python look_server.py."""

import sys

import torch
from tests.look.conftest import make_encoder
from tests.tasks.factories import make_tokenizers

from regard.look.build import look_into
from regard.look.local import serve
from regard.look.session import LookSession
from regard.tasks.text_classification import Classifier

TEXT = "Two young men."


def run() -> None:
    """Serve until the process ends."""
    torch.set_num_threads(1)
    looks = []
    for name, labels in (("first", ["yes", "no", "maybe"]), ("second", ["one", "two", "three"])):
        model, settings = make_encoder({"kind": "classes", "labels": labels}, "text_classification")
        if name == "second":
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.mul_(1.5)
        classifier = Classifier(model, make_tokenizers(), settings)
        looks.append(look_into(classifier, TEXT, name=name, ablation=False))
    with serve(LookSession(looks[0].against(looks[1]))) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        server.wait()


if __name__ == "__main__":
    run()
