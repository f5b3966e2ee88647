"""Choices that nobody computes: which expert a token goes to.

On an emulated device the scores of a router are not computed, so trompe makes up which
alternatives `topk`, `argmax`, `sort` and `multinomial` find in them: every one equally
often, unless told otherwise here or with `trompe run --routing`. Outside of a job that
runs under trompe nothing here does anything.
"""

import contextlib
import functools

_SHAPED = ("zipf", "dirichlet")


def gate(distribution="balanced", *, shape=None, seed=0):
    """Says how choices are made up inside of a `with` block, a function or a module.

    distribution  "balanced" (every alternative equally often), "uniform" (drawn, all
                  equally likely), "zipf" (rank r weighs 1 / r**shape) or "dirichlet"
                  (weights drawn from a symmetric Dirichlet distribution of this shape)
    shape         the distribution's parameter, 1.0 by default
    seed          another seed draws other choices

    What it gives is a context manager, a decorator for functions, and for modules and
    their classes a decorator of `forward`:

        with trompe.gate("zipf", shape=1.2):
            loss = model(batch)

        @trompe.gate("dirichlet", shape=0.3, seed=layer)
        def route(scores): ...

        layer.router = trompe.gate("zipf")(layer.router)

    Decorate what is computed again in the backward pass (activation checkpointing) from
    inside, so that it chooses the same again.
    """
    if distribution not in ("balanced", "uniform", *_SHAPED):
        raise ValueError(f"no distribution {distribution!r}: balanced, uniform, zipf or dirichlet")
    if shape is not None and (distribution not in _SHAPED or not shape > 0):
        raise ValueError(f"{distribution} takes no shape {shape!r}: zipf and dirichlet take one above zero")
    parts = [distribution]
    if distribution in _SHAPED:
        parts.append(repr(float(1.0 if shape is None else shape)))
    if distribution != "balanced":
        parts.append(str(int(seed)))
    return _Gate(":".join(parts))


class _Gate(contextlib.ContextDecorator):
    def __init__(self, text):
        self._text = text
        self._pushed = []

    def __enter__(self):
        observer = _observer()
        self._pushed.append(observer)
        if observer is not None:
            observer.push_routing(self._text)
        return self

    def __exit__(self, *error):
        observer = self._pushed.pop()
        if observer is not None:
            observer.pop_routing()
        return False

    def _recreate_cm(self):
        return _Gate(self._text)

    def __call__(self, target):
        forward = getattr(target, "forward", None)
        if forward is None:
            return super().__call__(target)

        @functools.wraps(forward)
        def gated(*arguments, **options):
            with self._recreate_cm():
                return forward(*arguments, **options)

        target.forward = gated
        return target


def _observer():
    """The hook's observer in a job that runs under trompe."""
    try:
        from trompe_hook import observer
    except ImportError:
        return None
    return observer.current()
