"""What is common to TransformerEngine's front ends."""

from . import recipe

__all__ = ["recipe"]
