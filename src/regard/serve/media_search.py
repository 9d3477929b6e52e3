"""What the routes that turn files into texts share: the search that a form asks for, within the limits."""

from fastapi import HTTPException

from regard.pipeline.image_captioner import ImageCaptioner
from regard.pipeline.transcriber import Transcriber
from regard.serve.model import Options
from regard.serve.schemas import MediaSearchRequest
from regard.serve.settings import LimitsConfig


def make_options(
    fields: MediaSearchRequest, limits: LimitsConfig, pipeline: ImageCaptioner | Transcriber, adapter: str | None
) -> Options:
    """Return the options of a model's beam search with the alternatives of a form.

    Raises:
        HTTPException: 422: more beams or alternatives than a request may have.
    """
    n_best = fields.alternatives + 1
    for name, value, limit in (("beams", fields.beam_size or 1, limits.beam_size), ("alternatives", n_best, limits.n)):
        if value > limit:
            raise HTTPException(422, f"A request may have {limit:,} {name}, this one has {value:,}.")
    return Options(pipeline.make_search(fields.beam_size, n_best=n_best), n_best, adapter=adapter)
