"""Records the kernels of a few training steps of an unmodified script, once.

Steps are counted by the optimizer: after `skip` of them PyTorch's profiler records `steps` more, with
shapes, and the trace goes to `trace.RANK.json.gz` in the folder that `TROMPE_PROFILE` names. The profiler
is off before and after, so the job runs at its own speed but for those steps; with `stop` it ends there. A
job that ends earlier leaves what was recorded by then. With `whole` everything from the import of PyTorch
to the end is recorded, for short jobs without an optimizer.
"""

import atexit
import importlib.abc
import importlib.util
import json
import os
import sys
import time


def install():
    """Waits for PyTorch to be imported; does nothing in processes that are not asked to record."""
    settings = os.environ.get("TROMPE_PROFILE")
    if settings:
        sys.meta_path.insert(0, _AfterTorch(json.loads(settings)))


class _AfterTorch(importlib.abc.MetaPathFinder):
    """Lets the other finders locate `torch` and wraps its loader."""

    def __init__(self, settings):
        self._settings = settings

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        # Perhaps it is only asked for: we stay until it has been imported.
        at = sys.meta_path.index(self)
        del sys.meta_path[at]
        try:
            spec = importlib.util.find_spec("torch")
        finally:
            sys.meta_path.insert(at, self)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            if self not in sys.meta_path:
                return
            sys.meta_path.remove(self)
            try:
                Recorder(module, self._settings).install()
            except Exception as error:  # the user's job matters more
                print(f"trompe profile: nothing is recorded in this process: {error!r}", file=sys.stderr)

        spec.loader.exec_module = exec_module
        return spec


class Recorder:
    """Records in this process."""

    def __init__(self, torch, settings):
        self.torch = torch
        self.out = settings["out"]
        self.skip = settings.get("skip", 3)
        self.steps = settings.get("steps", 3)
        self.seconds = settings.get("seconds", 20)
        self.stop = settings.get("stop", False)
        self.whole = settings.get("whole", False)
        self.seen = 0
        self.profiler = None
        self.begin = None
        self.done = False
        self.counted = None

    def install(self):
        """Counts steps from now on."""
        from torch.optim import optimizer

        atexit.register(self._at_exit)
        if self.whole:
            self._start()
        else:
            optimizer.register_optimizer_step_post_hook(self._stepped)

    def _stepped(self, optimizer, args, kwargs):
        # Several optimizers step together: the first one counts.
        self.counted = self.counted or id(optimizer)
        if self.done or id(optimizer) != self.counted:
            return
        self.seen += 1
        try:
            if self.profiler is None and self.seen >= self.skip:
                self._start()
            elif self.profiler is not None:
                self.profiler.step()
                if self.seen >= self.skip + self.steps or time.monotonic() - self.begin > self.seconds:
                    self._finish()
        except Exception as error:
            self.done = True
            print(f"trompe profile: recording failed: {error!r}", file=sys.stderr)
        if self.done and self.stop:
            raise SystemExit(0)

    def _start(self):
        from torch.profiler import ProfilerAction, ProfilerActivity, profile, supported_activities

        wanted = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
        activities = [activity for activity in wanted if activity in supported_activities()]
        # Steps are only marked by a profiler with a schedule.
        always = lambda step: ProfilerAction.RECORD  # noqa: E731
        self.profiler = profile(activities=activities, record_shapes=True, schedule=always)
        self.profiler.__enter__()
        self.begin = time.monotonic()

    def _finish(self):
        profiler, self.profiler, self.done = self.profiler, None, True
        if self.torch.cuda.is_initialized():
            self.torch.cuda.synchronize()
        profiler.__exit__(None, None, None)
        rank = os.environ.get("RANK", "0")
        path = os.path.join(self.out, f"trace.{rank}.{os.getpid()}.json.gz")
        os.makedirs(self.out, exist_ok=True)
        scratch = os.path.join(self.out, f".{os.getpid()}.json.gz")
        profiler.export_chrome_trace(scratch)
        os.replace(scratch, path)
        what = "the whole run" if self.whole else f"{self.seen - self.skip} steps"
        print(f"trompe profile: recorded {what} in {path}", file=sys.stderr)

    def _at_exit(self):
        if self.profiler is not None:
            try:
                self._finish()
            except Exception as error:
                print(f"trompe profile: recording failed: {error!r}", file=sys.stderr)
        elif not self.done and self.torch.cuda.is_initialized():
            print(
                f"trompe profile: only {self.seen} optimizer steps were seen, {self.skip} are warm-up; "
                "let the job run longer, or pass `--skip 0`",
                file=sys.stderr,
            )
