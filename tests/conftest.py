"""How many cases a property is tried with: HYPOTHESIS_PROFILE=long for 10,000 instead of 500."""

import os

from hypothesis import HealthCheck, settings

QUIET = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]  # a busy machine is no fault
settings.register_profile("ci", max_examples=500, deadline=None, derandomize=True, suppress_health_check=QUIET)
settings.register_profile("long", max_examples=10_000, deadline=None, suppress_health_check=QUIET)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
