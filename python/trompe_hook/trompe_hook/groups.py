"""Process groups of which some members do not exist.

- The members of each group are told to the store, which puts them into the unique ids
  of NCCL's communicators, and to the preloaded library when a communicator is split:
  NCCL itself would learn them from the other members.
- Gloo, which connects all members by sockets, is replaced by `mirror.Mirror` unless
  all ranks of the job exist.
- A barrier also waits for the other ranks that exist.
"""

import ctypes
import functools
import inspect
import os

from . import exchange


def change(module, ranks):
    """Changes PyTorch's module."""
    hint = _split_hint()
    _tell_members(module, hint)
    _tell_splits(module, hint)
    if len(ranks.present) < int(os.environ["TROMPE_WORLD_SIZE"]):
        _replace_gloo(module, ranks)
    _meet_at_barriers(module, ranks)


def _split_hint():
    """Tells the preloaded library who will be in what this thread splits next; nobody: forget it."""
    try:
        function = ctypes.CDLL(None).trompe_split_hint
    except AttributeError:
        return lambda members, place: None
    function.restype = None
    function.argtypes = [ctypes.c_uint32, ctypes.c_uint32, ctypes.POINTER(ctypes.c_uint32)]

    def hint(members, place):
        function(len(members), place, (ctypes.c_uint32 * len(members))(*members))

    return hint


def _tell_members(module, hint):
    original = module._new_process_group_helper
    signature = inspect.signature(original)

    @functools.wraps(original)
    def helper(*arguments, **options):
        bound = signature.bind(*arguments, **options).arguments
        size, place = bound["group_size"], bound["group_rank"]
        members = list(bound["global_ranks_in_group"]) or list(range(size))
        default = module.GroupMember.WORLD
        if default is not None and default.rank() not in members:
            return original(*arguments, **options)
        prefixed = module.PrefixStore(f"{bound['group_name']}/", bound["store"])
        prefixed.set("trompe_members", ",".join(str(rank) for rank in members))
        hint(members, place if place is not None else members.index(default.rank()))
        try:
            return original(*arguments, **options)
        finally:
            hint([], 0)

    module._new_process_group_helper = helper


def _tell_splits(module, hint):
    """`split_group` names the members of all parts by their places in the parent."""
    original = getattr(module, "split_group", None)
    if original is None:
        return
    signature = inspect.signature(original)

    @functools.wraps(original)
    def split_group(*arguments, **options):
        bound = signature.bind(*arguments, **options).arguments
        parent = bound.get("parent_pg") or module._get_default_group()
        place = parent.rank()
        own = next((part for part in bound.get("split_ranks") or () if place in part), None)
        if own is None:
            return original(*arguments, **options)
        ranks = module.get_process_group_ranks(parent)
        hint([ranks[other] for other in own], list(own).index(place))
        try:
            return original(*arguments, **options)
        finally:
            hint([], 0)

    module.split_group = split_group


def _replace_gloo(module, ranks):
    from .mirror import Mirror

    def create(options, _backend_options=None):
        members = list(options.global_ranks_in_group) or list(range(options.group_size))
        return Mirror(options.store, options.group_rank, members, ranks)

    plugins = module.Backend._plugins
    plugins["GLOO"] = module.Backend._BackendPlugin(create, True)


def _meet_at_barriers(module, ranks):
    original = module.barrier
    signature = inspect.signature(original)

    @functools.wraps(original)
    def barrier(*arguments, **options):
        work = original(*arguments, **options)
        group = signature.bind(*arguments, **options).arguments.get("group")
        group = group if group is not None else module._get_default_group()
        if group is not module.GroupMember.NON_GROUP_MEMBER:
            present = ranks.of(module.get_process_group_ranks(group))
            exchange.all_values(f"barrier/{group.group_name}", module.get_rank(), b"", present)
        return work

    module.barrier = barrier
