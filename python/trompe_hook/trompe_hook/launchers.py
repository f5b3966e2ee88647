"""Launchers that the command starts in the end, however it does.

`trompe run` recognises `torchrun` and its like by the command line. A command that only
comes to one later (`accelerate launch`, a shell script, a framework's own program) is
met here, in the launcher's process, at the moment when it would start its ranks: it
tells trompe what it would have started and with which environment, and waits to be
ended. trompe then starts the ranks in its place.
"""

import json
import os
import sys
import time

from . import after_import

_TORCHRUN = "torch.distributed.launcher.api"
_DEEPSPEED = "deepspeed.launcher.runner"


def install():
    """Arranges for launchers to be met, in a process that is no rank."""
    folder = os.environ.get("TROMPE_LAUNCH")
    if not folder or os.environ.get("TROMPE_RANKS"):
        return
    _after(_TORCHRUN, lambda module: _meet_torchrun(module, folder))
    _after(_DEEPSPEED, lambda module: _meet_deepspeed(module, folder))


def _after(name, action):
    nothing = lambda *_: None  # noqa: E731
    if name in sys.modules:
        action(sys.modules[name])
    else:
        sys.meta_path.insert(0, after_import.AfterImport(name, action, nothing, nothing))


def _meet_torchrun(module, folder):
    original = module.launch_agent

    def launch_agent(config, entrypoint, args, *rest, **options):
        if not isinstance(entrypoint, str):  # a function, for a notebook: those processes join by themselves
            return original(config, entrypoint, args, *rest, **options)
        # Without a number of nodes the command would be typed on every node.
        nodes_given = (
            config.max_nodes > 1
            or "PET_NNODES" in os.environ
            or _is_accelerate()
            or any(word.startswith(("--nnodes", "--standalone")) for word in sys.argv)
        )
        hand_over(
            folder,
            command=[entrypoint, *args],
            per_node=config.nproc_per_node,
            nodes=config.max_nodes if nodes_given else None,
        )

    module.launch_agent = launch_agent


def _is_accelerate():
    """Whether `accelerate launch` has come here, which counts the processes of all nodes."""
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    name = "accelerate.commands.launch"
    return name in sys.modules or (main is not None and main.name == name)


def _meet_deepspeed(module, folder):
    original = module.main

    def main(args=None):
        words = sys.argv[1:] if args is None else args
        if not words or "-h" in words or "--help" in words:
            return original(args)
        hand_over(folder, command=["deepspeed", *words])

    module.main = main


def hand_over(folder, **request):
    """Tells trompe what to start, and waits for the end."""
    ours = ("TROMPE_",)
    request["environment"] = {
        name: value for name, value in os.environ.items() if not name.startswith(ours) and name != "_"
    }
    request["directory"] = os.getcwd()
    request["python"] = sys.executable
    path = os.path.join(folder, "launch.json")
    draft = f"{path}.{os.getpid()}"
    with open(draft, "w") as file:
        json.dump(request, file)
    os.replace(draft, path)
    while True:
        time.sleep(60)
