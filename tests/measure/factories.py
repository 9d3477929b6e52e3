"""Label fixtures of scikit-learn and seqeval, which `make_label_fixtures` froze."""

import json
from pathlib import Path
from typing import Any

CASES: dict[str, list[dict[str, Any]]] = json.loads((Path(__file__).parent / "label_fixtures.json").read_text())
