"""Packages that are not part of the core install: imported where they are used, or an error that names the extra."""

import importlib
from typing import Any

from regard.base.errors import RegardError


def import_optional(module: str, extra: str, purpose: str) -> Any:
    """The module, if it is installed.

    >>> import_optional("no_such_module", "formats", "Reading .xyz")
    Traceback (most recent call last):
    regard.base.errors.RegardError: Reading .xyz needs the package 'no_such_module'.
      fix:   pip install 'regard[formats]'
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise RegardError(f"{purpose} needs the package '{module}'.", fix=f"pip install 'regard[{extra}]'") from error
