"""Uploaded files: received and decoded for a few requests at a time, to bound memory.

Bodies of more than a megabyte are stored on disk. A single thread decodes, so decoder memory is allocated once.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from fastapi import HTTPException, Request
from pydantic import BaseModel, ValidationError
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException as StarletteHTTPException

from regard.base.errors import RegardError
from regard.serve.errors import describe_faults
from regard.serve.settings import ServeConfig
from regard.tasks.inputs.adapter import InputAdapter

MAX_FIELDS = 50
MAX_FIELD_BYTES = 10_000
Fields = TypeVar("Fields", bound=BaseModel)
Value = TypeVar("Value")


@dataclass(frozen=True)
class Upload:
    """The fields and files of a form."""

    fields: dict[str, str]
    files: list[UploadFile]

    def read_fields(self, schema: type[Fields]) -> Fields:
        """Parse the form fields into a request schema; invalid fields get a 422 response."""
        try:
            return schema.model_validate(self.fields)
        except ValidationError as error:
            raise refuse_invalid(error) from None


class Uploads:
    """Receives and decodes the files of all requests of a server."""

    def __init__(self, settings: ServeConfig) -> None:
        self._settings, self._open = settings, 0
        self._decoder = ThreadPoolExecutor(1, thread_name_prefix="decoder")

    @asynccontextmanager
    async def receive(self, request: Request) -> AsyncIterator[Upload]:
        """Receive a form with files, which exist until the end of the context.

        Raises:
            HTTPException: 429 for too many concurrent forms, 413 for too many files, 422 if there are none.
        """
        if self._open >= self._settings.queue.uploads:
            raise HTTPException(429, "Too many concurrent uploads.", {"Retry-After": "1"})
        self._open += 1
        max_files = self._settings.limits.files
        try:
            async with request.form(
                max_files=max_files + 1, max_fields=MAX_FIELDS, max_part_size=MAX_FIELD_BYTES
            ) as form:
                files = [value for value in form.getlist("file") if not isinstance(value, str)]
                if len(files) > max_files:
                    raise HTTPException(413, f"The maximum is {max_files} files per request.")
                if not files:
                    raise HTTPException(422, "A file is missing. Send it as curl does: -F file=@FILE.")
                yield Upload({name: value for name, value in form.items() if isinstance(value, str)}, files)
        except StarletteHTTPException as error:
            if error.status_code == 400 and "Too many files" in str(error.detail):  # Starlette refuses them first
                raise HTTPException(413, f"The maximum is {max_files} files per request.") from None
            raise
        except UnicodeError:  # a form may name any charset
            raise HTTPException(422, "The form cannot be decoded. Use UTF-8.") from None
        finally:
            self._open -= 1

    async def decode(self, model_input: InputAdapter[Any], files: list[UploadFile]) -> list[Any]:
        """Decode files sequentially into model inputs.

        Raises:
            HTTPException: 422 if a file cannot be read or is too large.
        """
        limits, media = self._settings.limits, list[Any]()
        decode = partial(model_input.decode, max_pixels=limits.pixels, max_vectors=limits.tokens)
        for number, file in enumerate(files, 1):
            content = await file.read()
            try:
                media.append(await self.run(partial(decode, content, "the file")))
            except RegardError as error:
                location = f"File {number}: " if len(files) > 1 else ""
                raise HTTPException(422, f"{location}{error.message} {error.hint or ''}".strip()) from None
        return media

    async def run(self, function: Callable[[], Value]) -> Value:
        """Run a function in the thread that decodes."""
        return await asyncio.get_running_loop().run_in_executor(self._decoder, function)

    def stop(self) -> None:
        """End the thread."""
        self._decoder.shutdown()


def refuse_invalid(error: ValidationError) -> HTTPException:
    """Return the response to a request with invalid fields."""
    return HTTPException(422, describe_faults(error.errors()))
