"""Settings that every test shares."""

from hypothesis import settings

# No test depends on speed: the machine may be busy with something else.
settings.register_profile("lanes", deadline=None)
settings.load_profile("lanes")
