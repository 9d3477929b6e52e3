"""The docstrings of settings, for the reference and the JSON schema.

Pydantic can also read them, but it does so for every class at definition time, which took half of the import time of
the model settings.
"""

import ast
import inspect
import textwrap
from functools import cache
from itertools import pairwise
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema


@cache
def read_docstrings(model_class: type[BaseModel]) -> dict[str, str]:
    """Return the docstring below each field of a settings class, inherited ones included."""
    docstrings: dict[str, str] = {}
    for parent in reversed(model_class.__mro__[: model_class.__mro__.index(BaseModel)]):
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(parent))).body
        for statement, following in pairwise([*getattr(definition, "body", ()), ast.Pass()]):
            match statement, following:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    docstrings[name] = inspect.cleandoc(text)
                case ast.AnnAssign(target=ast.Name(id=name)), _:
                    docstrings.pop(name, None)  # a field that is defined again, without a docstring
    return docstrings


class DescribedSchema(GenerateJsonSchema):
    """Adds the docstrings to a JSON schema."""

    def model_schema(self, schema: Any) -> dict[str, Any]:
        """Return the schema of a class."""
        json_schema = super().model_schema(schema)
        for name, text in read_docstrings(schema["cls"]).items():
            json_schema["properties"][name].setdefault("description", text)
        return json_schema
