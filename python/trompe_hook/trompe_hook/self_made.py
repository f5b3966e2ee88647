"""Ranks that a script starts itself: `torch.multiprocessing.spawn`, `multiprocessing`, a
framework's own launcher, or a shell loop.

Nobody knows that such a process is a rank until it joins a process group. Then it is
told to the preloaded library and to trompe's store, and everything that PyTorch's ranks
exchange is answered as in ranks that trompe has started: the ranks of this node run,
those of other nodes are absent.
"""

import functools
import inspect
import os
import sys
from urllib.parse import parse_qsl, urlparse

from . import exchange, library

_SPAWNED = "TROMPE_SPAWNED"


def change(module, become_rank):
    """Has `init_process_group` make this process a rank first; `become_rank(ranks)` does the rest."""
    original = module.init_process_group
    signature = inspect.signature(original)

    @functools.wraps(original)
    def init_process_group(*arguments, **options):
        if not os.environ.get("TROMPE_RANKS"):
            try:
                bound = signature.bind(*arguments, **options)
                bound.apply_defaults()
                place = place_of(bound.arguments, os.environ)
            except (TypeError, ValueError):
                place = None  # the original says what is wrong
            if place is not None and place[1] > 1:
                _tell(*place)
                become_rank()
                # As the rank that this is now has it.
                return module.init_process_group(*arguments, **options)
        return original(*arguments, **options)

    _replace(original, init_process_group)


def _replace(original, replacement):
    """Puts a function in another's place wherever PyTorch's modules hold it."""
    name = original.__name__
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("torch.") and vars(module).get(name) is original:
            setattr(module, name, replacement)


def place_of(arguments, environment):
    """Rank and number of ranks that `init_process_group` will find, or `None`."""
    rank, world = arguments.get("rank", -1), arguments.get("world_size", -1)
    method = arguments.get("init_method")
    if method and (rank < 0 or world < 0):
        query = dict(parse_qsl(urlparse(method).query))
        rank, world = int(query.get("rank", rank)), int(query.get("world_size", world))
    if rank < 0 and "RANK" in environment:
        rank = int(environment["RANK"])
    if world < 0 and "WORLD_SIZE" in environment:
        world = int(environment["WORLD_SIZE"])
    return (rank, world) if 0 <= rank < world else None


def present_of(rank, world, started):
    """The ranks that run: the block of as many as are started on a node."""
    block = min(max(started, 1), world)
    first = rank // block * block
    return range(first, min(first + block, world))


def _tell(rank, world):
    import torch

    started = int(os.environ.get(_SPAWNED, "0")) or torch.cuda.device_count() or world
    present = ",".join(str(other) for other in present_of(rank, world, started))
    os.environ.update(TROMPE_RANK=str(rank), TROMPE_WORLD_SIZE=str(world), TROMPE_RANKS=present)
    exchange.client().set("trompe/world", f"{world}:{present}")
    target = library.find()
    if target is not None:
        target.meta("job.rank", str(rank))
        target.meta("job.world", str(world))


def watch_spawn(module):
    """Notes how many processes `torch.multiprocessing` starts together, for those to know."""
    original = module.start_processes

    @functools.wraps(original)
    def start_processes(fn, args=(), nprocs=1, *rest, **options):
        os.environ[_SPAWNED] = str(nprocs)
        return original(fn, args, nprocs, *rest, **options)

    _replace(original, start_processes)
