"""Where `trompe profile -- COMMAND` enters a Python interpreter on a machine with a real GPU.

`trompe profile` puts this folder in front of `PYTHONPATH`. Once PyTorch has been imported, the kernels of a
few steps are recorded with PyTorch's own profiler and written as traces (`trompe_recorder`); then the
`sitecustomize` that would have been found without us is run. Whatever goes wrong on our side is one line on
stderr: the user's job goes on.
"""


def _install():
    import sys

    try:
        import trompe_recorder

        trompe_recorder.install()
    except Exception as error:  # the user's job matters more than our records
        print(f"trompe profile: nothing is recorded in this process: {error!r}", file=sys.stderr)


def _run_shadowed_sitecustomize():
    """Runs the `sitecustomize` that this file hides, if there is one."""
    import importlib.machinery
    import importlib.util
    import os
    import sys

    here = os.path.dirname(os.path.abspath(__file__))
    path = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def _first_time():
    """Whether this is not run again by a `sitecustomize` that hides us in turn."""
    import sys

    return "trompe_recorder" not in sys.modules


if _first_time():
    _install()
    _run_shadowed_sitecustomize()
