"""Recipes of low-precision training: kept; products are those of delayed scaling whatever they say."""

import enum


class Format(enum.Enum):
    """Formats of fp8."""

    E4M3 = "e4m3"
    E5M2 = "e5m2"
    HYBRID = "hybrid"


class Recipe:
    """Any recipe."""

    def __init__(self, **settings):
        vars(self).update(settings)


class DelayedScaling(Recipe):
    """Scales from earlier steps."""


class Float8CurrentScaling(Recipe):
    """Scales of the tensor itself."""


class Float8BlockScaling(Recipe):
    """Scales of blocks."""


class MXFP8BlockScaling(Recipe):
    """Scales of blocks of 32."""
