"""Where trompe enters a Python interpreter.

`trompe run` puts this folder in front of `PYTHONPATH`; Python imports
`sitecustomize` at start-up, before the user's script. Nothing happens here but
registering an action for "PyTorch has been imported" (microseconds, so that
helper processes without PyTorch do not pay), and then the `sitecustomize` that
would have been found without us is run, as if we were not there.

Whatever goes wrong on our side is one line on stderr: the interpreter and the
user's script go on.
"""


def _install_hook():
    import sys

    try:
        from trompe_hook import after_import

        after_import.install()
        after_import.install_shims()
    except Exception as error:  # the user's job matters more than our records
        print(f"trompe: the Python hook is off in this process: {error!r}", file=sys.stderr)


def _run_shadowed_sitecustomize():
    """Runs the `sitecustomize` that this file hides, if there is one."""
    # The frozen modules behind `importlib`, which itself costs 5 ms at start-up.
    import os
    import sys
    from _frozen_importlib import module_from_spec
    from _frozen_importlib_external import PathFinder

    here = os.path.dirname(os.path.abspath(__file__))
    path = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != here]
    spec = PathFinder.find_spec("sitecustomize", path)
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    ours = sys.modules.get("sitecustomize")
    sys.modules["sitecustomize"] = module
    try:
        # An exception goes on to `site`, which reports it as it always does.
        spec.loader.exec_module(module)
    except BaseException:
        if ours is not None:
            sys.modules["sitecustomize"] = ours
        raise


_install_hook()
_run_shadowed_sitecustomize()
