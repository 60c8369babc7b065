"""Settings of all tests: hypothesis without deadlines, because two busy cores make any deadline a coin toss."""

from hypothesis import HealthCheck, settings

settings.register_profile("loupe", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("loupe")
