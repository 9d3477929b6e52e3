"""The second document of a comparison: what the Compare view shows of it, and nothing else."""

from typing import cast

from regard.look.document import Ablation, Document, Group

MAX_CELLS = 1024 * 1024  # cells of all maps of the second document; a live page requests the others


def make_against(document: Document) -> Document:
    """Return a document without the parts that a comparison does not show.

    The search, hypotheses, attribution, masks, positions and thumbnails are left out, and of sampling the steps. Maps
    stay as long as they fit into `MAX_CELLS`, the most interesting heads first.
    """
    order = list(document["blobs"])  # make_groups stores the most interesting maps first
    cells, kept = 0, set()
    sizes = {
        name: group["row_count"] * group["column_count"]
        for group in document["attention"]
        for name in group["maps"].values()
    }
    for name in sorted(sizes, key=order.index):
        cells += sizes[name]
        if cells > MAX_CELLS:
            break
        kept.add(name)
    groups = [_make_group(group, kept) for group in document["attention"]]
    mentioned = {str(token) for row in document["next"]["tokens"] for token in row} if "next" in document else set()
    sampling, ablation = document["sampling"], document["ablation"]
    short = {
        **document,
        "vocabulary": {name: info for name, info in document["vocabulary"].items() if name in mentioned},
        "attention": groups,
        "search": None,
        "sampling": None if sampling is None else {**sampling, "suppressed": [], "steps": []},
        "ablation": ablation
        and Ablation(output=ablation["output"], baseline=ablation["baseline"], delta=ablation["delta"], texts={}),
        "attribution": None,
        "hypotheses": [],
        "masks": [],
        "positions": [],
        "notes": [],
        "blobs": {name: blob for name, blob in document["blobs"].items() if name in kept},
    }
    for name in ("against", "session", "picture", "reads"):
        short.pop(name, None)
    return cast("Document", short)


def _make_group(group: Group, kept: set[str]) -> Group:
    maps = {place: name for place, name in group["maps"].items() if name in kept}
    return Group(**{**group, "thumbnails": "", "maps": maps})
