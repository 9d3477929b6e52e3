"""Training: from the settings of a run to the folder of a trained model.

The package can be called: `regard.train(...)` is `regard.train.start.train(...)`.
"""

import inspect
import sys
from types import ModuleType

from regard.train.start import train


class _TrainPackage(ModuleType):
    """A package of the name `train` would hide a function of this name, so the package itself is the function."""

    __call__ = staticmethod(train)


sys.modules[__name__].__class__ = _TrainPackage
# For `help(regard.train)`, notebooks and editors:
__signature__ = inspect.signature(train)
__doc__ = f"{__doc__}\n{inspect.getdoc(train)}\n"
