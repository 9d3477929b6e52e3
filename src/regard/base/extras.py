"""Optional dependencies: imported on first use; if one is missing, the error names the extra to install."""

import importlib
from typing import Any

from regard.base.errors import RegardError


def import_optional(module: str, extra: str, purpose: str) -> Any:
    """Import an optional dependency.

    Args:
        module: The module to import.
        extra: The extra of Regard that installs it.
        purpose: The feature that needs the module; the error message starts with it.

    Raises:
        RegardError: If the module is not installed.

    >>> import_optional("no_such_module", "formats", "Reading .xyz")
    Traceback (most recent call last):
    regard.base.errors.RegardError: Reading .xyz needs the package 'no_such_module'.
      fix:   pip install 'regard[formats]'
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise RegardError(f"{purpose} needs the package '{module}'.", fix=f"pip install 'regard[{extra}]'") from error
