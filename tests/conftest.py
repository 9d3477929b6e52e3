"""Number of Hypothesis examples per property: 500, or 10,000 with HYPOTHESIS_PROFILE=long."""

import os

from hypothesis import HealthCheck, settings

SUPPRESSED = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]  # a busy machine is not a failure
settings.register_profile("ci", max_examples=500, deadline=None, derandomize=True, suppress_health_check=SUPPRESSED)
settings.register_profile("long", max_examples=10_000, deadline=None, suppress_health_check=SUPPRESSED)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
