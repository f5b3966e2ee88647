"""What a light module says when it is asked for something that it lacks."""


def attribute_of(module):
    """A module's `__getattr__`."""

    def missing(name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(
            f"trompe's light `{module}` has no `{name}`. Install the real module, or set "
            "TROMPE_SHIMS=off if the script can do without it."
        )

    return missing
