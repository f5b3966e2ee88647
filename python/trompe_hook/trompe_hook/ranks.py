"""Which ranks of the job exist, and the change of PyTorch's distributed package when it is imported.

`trompe run` starts only some ranks of a distributed job and tells their numbers in
`TROMPE_RANKS`. What the others would have said is answered here for everything that
Python and the CPU exchange; the preloaded library answers for NCCL, the store at
`TROMPE_STORE` for itself.
"""

import contextlib
import os
import sys
import types

from . import after_import, self_made

_MODULE = "torch.distributed.distributed_c10d"
_PLANNER = "torch.distributed.checkpoint.default_planner"
_ZERO = "deepspeed.runtime.zero.utils"


class Ranks:
    """The ranks that exist."""

    def __init__(self, text):
        self.present = sorted(int(rank) for rank in text.split(","))
        self.own = int(os.environ["TROMPE_RANK"])

    def exists(self, rank):
        return rank in self.present

    def of(self, members):
        """The members of a group that exist, in the order of the group."""
        return [rank for rank in members if rank in self.present]

    def stand_in(self, rank, members):
        """The member whose values an absent one has: the nearest existing one below, or the first."""
        if rank in self.present:
            return rank
        present = self.of(members)
        below = [other for other in present if other < rank]
        return max(below) if below else min(present)


def install():
    """Arranges for the changes: now in a rank that trompe has started, in others when they join a group."""
    if os.environ.get("TROMPE_RANKS"):
        _install()
    elif os.environ.get("TROMPE_STORE"):
        _when_loaded(_MODULE, lambda module: self_made.change(module, _install), "init_process_group")
        _when_loaded("torch.multiprocessing.spawn", self_made.watch_spawn, "start_processes")


def _install():
    ranks = Ranks(os.environ["TROMPE_RANKS"])
    if len(ranks.present) < int(os.environ["TROMPE_WORLD_SIZE"]):
        _when_loaded(_PLANNER, _accept_plans, "DefaultSavePlanner")
    if not ranks.exists(0):
        _when_loaded(_ZERO, _agree_with_rank_0, "get_lst_from_rank0")
    _when_loaded(_MODULE, lambda module: _change(module, ranks), "new_group")


def _when_loaded(name, action, last):
    """Does something with a module: now if it is loaded and has the name `last`, or when it is imported."""
    loaded = sys.modules.get(name)
    if loaded is not None and hasattr(loaded, last):
        action(loaded)
    else:
        _after(name, action)


def _after(name, action):
    """Does something with a module when it is imported."""
    nothing = lambda *_: None  # noqa: E731
    sys.meta_path.insert(0, after_import.AfterImport(name, action, nothing, nothing))


def _agree_with_rank_0(module):
    """DeepSpeed compares numbers with those of rank 0, which only rank 0 puts into a broadcast.

    The broadcasts stay; what an absent rank 0 would have sent is what this rank expects.
    """
    compare_length, receive = module.assert_lst_len_same_as_other_ranks, module.get_lst_from_rank0

    def assert_lst_len_same_as_other_ranks(numbers):
        with contextlib.suppress(RuntimeError):
            compare_length(numbers)

    def get_lst_from_rank0(numbers):
        receive(numbers)
        return list(numbers)

    module.assert_lst_len_same_as_other_ranks = assert_lst_len_same_as_other_ranks
    module.get_lst_from_rank0 = get_lst_from_rank0


def _accept_plans(module):
    """A checkpoint without the parts of absent ranks is no mistake: they are copies of others here."""
    original = getattr(module, "_validate_global_plan", None)
    if original is not None:
        module._validate_global_plan = lambda *_, **__: _nothing_wrong(original)


def _nothing_wrong(original):
    """What the check returns for a right plan: true, or no errors in newer versions."""
    return True if "bool" in str(original.__annotations__.get("return", "bool")) else []


def _change(module, ranks):
    from torch._C import _distributed_c10d as binding

    from . import groups, objects, stores

    names = (*objects.CHANGED, "barrier", "init_process_group", "split_group")
    before = {name: getattr(module, name, None) for name in names}
    # Each module takes the stores' classes from the binding.
    before |= {name: getattr(binding, name) for name in ("FileStore", "TCPStore")}
    stores.change(module)
    groups.change(module, ranks)
    objects.change(module, ranks)
    # Modules that were imported earlier hold the functions under their own names; in a rank
    # that was forked from a prepared process those of frameworks as well.
    for other in list(sys.modules.values()):
        if not isinstance(other, types.ModuleType) or other is module or other is binding:
            continue
        scope = vars(other)
        for key, original in before.items():
            if original is not None and scope.get(key) is original:
                setattr(other, key, getattr(module, key))
