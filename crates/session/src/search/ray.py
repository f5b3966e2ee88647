"""Runs trials as tasks of a Ray cluster, one JSON object a line.

    -> {"ready": null}
    <- an order                      -> {"reply": ...} or {"lost": {"number": n, "reason": "..."}}

The argument is a JSON object: the cluster's address, the program, its folders.
A node that dies loses nothing: Ray runs its tasks again elsewhere.
"""

import json
import os
import subprocess
import sys
import threading

# Ray writes to standard output whenever it likes; answers have a stream of their own.
ANSWERS = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)

import ray  # noqa: E402
from ray.exceptions import RayError  # noqa: E402

SETTING = json.loads(sys.argv[1])
# Nodes were started with environments of their own; what finds programs and packages is the driver's.
NAMES = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "TROMPE_LIB", "XDG_CACHE_HOME")
SETTING["environment"] = {name: os.environ[name] for name in NAMES if name in os.environ}


@ray.remote(num_cpus=1, max_retries=5, scheduling_strategy="SPREAD")
def trial(setting, line):
    """One trial in a worker of its own, in a folder that no other task of this node has."""
    folder = os.path.join(setting["work"], f"{os.uname().nodename}-{os.getpid()}")
    os.makedirs(folder, exist_ok=True)
    log = os.path.join(folder, "log")
    files = os.path.join(folder, "files", "")
    variables = {
        name: value.replace("@trial@/", files) for name, value in json.loads(line)["environment"].items()
    }
    command = [setting["program"], "search", "worker", "--folder", folder, "--log", log]
    command += ["--traces", setting["traces"]]
    with open(log, "a") as output:
        done = subprocess.run(
            command,
            check=False,
            input=line + "\n",
            stdout=subprocess.PIPE,
            stderr=output,
            cwd=setting["directory"],
            env={**os.environ, **setting["environment"], **variables},
            text=True,
        )
    if not done.stdout.strip():
        raise RuntimeError(f"the worker ended with exit code {done.returncode}; its output is in {log}")
    return done.stdout.strip().splitlines()[-1]


def main():
    said = threading.Lock()

    def say(message):
        with said:
            print(json.dumps(message), file=ANSWERS, flush=True)

    ray.init(address=SETTING["address"], log_to_driver=False, logging_level="error")
    say({"ready": None})
    waiting = {}
    changed = threading.Event()
    over = threading.Event()

    def hand_back():
        while not over.is_set():
            if not waiting:
                changed.wait(0.2)
                changed.clear()
                continue
            done, _ = ray.wait(list(waiting), num_returns=1, timeout=0.2)
            for reference in done:
                number = waiting.pop(reference)
                try:
                    say({"reply": json.loads(ray.get(reference))})
                except (RayError, RuntimeError, ValueError) as error:
                    say({"lost": {"number": number, "reason": str(error).strip().splitlines()[-1]}})

    threading.Thread(target=hand_back, daemon=True).start()
    for line in sys.stdin:
        waiting[trial.remote(SETTING, line.strip())] = json.loads(line)["number"]
        changed.set()
    over.set()


main()
