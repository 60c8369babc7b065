"""Pictures of results: tables and self-contained HTML."""

from loupe.lazily import callable_package

callable_package(__name__, "loupe.api.reports:report")
