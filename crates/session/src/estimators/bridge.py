"""Let trompe ask a Python function for times: one JSON request per line in, one JSON answer per line out.

The function is named by the first argument, `file.py:name` or `module:name`. It is called with a list of
operations (dictionaries) and the device (a dictionary) and returns a list with, for each operation,
seconds, a dictionary with `seconds` and perhaps `low`, `high` and `note`, or None for operations that it
leaves to trompe.
"""

import contextlib
import importlib
import importlib.util
import json
import os
import sys


def load(name):
    """The function called `name`."""
    place, _, function = name.rpartition(":")
    if not place:
        raise ValueError(f"`{name}` is not of the form file.py:function")
    if place.endswith(".py"):
        spec = importlib.util.spec_from_file_location("trompe_estimator", place)
        if spec is None or not os.path.exists(place):
            raise ValueError(f"there is no file `{place}`")
        module = importlib.util.module_from_spec(spec)
        sys.path.insert(0, os.path.dirname(os.path.abspath(place)))
        spec.loader.exec_module(module)
    else:
        sys.path.insert(0, os.getcwd())
        module = importlib.import_module(place)
    return getattr(module, function)


def main():
    answers = os.fdopen(os.dup(1), "w")
    # What the function prints is not an answer.
    with contextlib.redirect_stdout(sys.stderr):
        function, failure = None, None
        try:
            function = load(sys.argv[1])
        except Exception as error:
            failure = f"{type(error).__name__}: {error}"
        for line in sys.stdin:
            try:
                if failure:
                    raise RuntimeError(failure)
                request = json.loads(line)
                found = function(request["operations"], request["device"])
                answer = {"estimates": [{"seconds": x} if isinstance(x, (int, float)) else x for x in found]}
            except Exception as error:
                answer = {"error": failure or f"{type(error).__name__}: {error}"}
            print(json.dumps(answer), file=answers, flush=True)


main()
