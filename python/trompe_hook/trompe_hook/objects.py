"""Collectives of Python objects.

PyTorch sends objects as tensors whose sizes it reads back from the device, where no
kernel has computed them. The objects of the ranks that exist go through the store
instead; absent ranks have the objects of the rank that stands in for them.
"""

import functools
import inspect
import pickle

from . import exchange, library

CHANGED = (
    "all_gather_object",
    "gather_object",
    "broadcast_object_list",
    "scatter_object_list",
    "send_object_list",
    "recv_object_list",
    "monitored_barrier",
)


class AbsentRank(RuntimeError):
    """The job needs something that only a rank which does not run would know."""


class _Call:
    """One call: its arguments by name, and who takes part."""

    def __init__(self, module, ranks, arguments):
        self._module = module
        self._ranks = ranks
        self.arguments = arguments
        group = arguments.get("group")
        self.group = group if group is not None else module._get_default_group()
        self.outside = group is not None and module._rank_not_in_group(group)
        if self.outside:
            return
        self.members = module.get_process_group_ranks(self.group)
        self.own = module.get_rank()
        self.present = ranks.of(self.members)
        self.name = f"objects/{self.group.group_name}"

    def rank(self, name):
        """The global rank that `name` or `group_name` gives; the first member when neither does."""
        if self.arguments.get(f"group_{name}") is not None:
            return self.members[self.arguments[f"group_{name}"]]
        given = self.arguments.get(name)
        return self.members[0] if given is None else given

    def stand_in(self, rank):
        return self._ranks.stand_in(rank, self.members)

    def all_values(self, value):
        """The objects of all members, in the order of the group."""
        values = exchange.all_values(self.name, self.own, pickle.dumps(value), self.present)
        return [pickle.loads(values[self.stand_in(rank)]) for rank in self.members]

    def one_value(self, source, value):
        """The object of `source`."""
        giver = self.stand_in(source)
        data = pickle.dumps(value) if giver == self.own else b""
        return pickle.loads(exchange.one_value(self.name, self.own, giver, data, self.present))

    def check_exists(self, rank):
        if not self._ranks.exists(rank):
            exchange.client().set(f"trompe/wanted/{self.own}-{rank}", b"")
            chosen = ",".join(str(one) for one in sorted({*self._ranks.present, rank}))
            raise AbsentRank(
                f"rank {self.own} waits for an object of rank {rank}, which does not run under trompe; "
                f"let it run too: --ranks {chosen}"
            )


def _all_gather_object(call):
    call.arguments["object_list"][:] = call.all_values(call.arguments["obj"])


def _gather_object(call):
    values = call.all_values(call.arguments["obj"])
    if call.own == call.rank("dst"):
        call.arguments["object_gather_list"][:] = values


def _broadcast_object_list(call):
    values = call.arguments["object_list"]
    values[:] = call.one_value(call.rank("src"), list(values))


def _scatter_object_list(call):
    source = call.rank("src")
    values = call.one_value(source, call.arguments.get("scatter_object_input_list"))
    if values is None:
        call.check_exists(source)
    call.arguments["scatter_object_output_list"][0] = values[call.members.index(call.own)]


def _send_object_list(call):
    peer = call.rank("dst")
    if peer in call.present:
        exchange.send(call.name, call.own, peer, pickle.dumps(list(call.arguments["object_list"])))


def _recv_object_list(call):
    peer = call.rank("src")
    call.check_exists(peer)
    call.arguments["object_list"][:] = pickle.loads(exchange.receive(call.name, call.own, peer))
    return peer


def _monitored_barrier(call):
    exchange.all_values(call.name, call.own, b"", call.present)


def change(module, ranks):
    """Replaces the functions in PyTorch's module."""
    target = library.find()
    actions = {
        "all_gather_object": _all_gather_object,
        "gather_object": _gather_object,
        "broadcast_object_list": _broadcast_object_list,
        "scatter_object_list": _scatter_object_list,
        "send_object_list": _send_object_list,
        "recv_object_list": _recv_object_list,
        "monitored_barrier": _monitored_barrier,
    }
    for name, action in actions.items():
        original = getattr(module, name, None)
        if original is not None:
            setattr(module, name, _replacement(original, action, (module, ranks, target)))


def _replacement(original, action, context):
    module, ranks, target = context
    signature = inspect.signature(original)

    @functools.wraps(original)
    def replaced(*arguments, **options):
        bound = signature.bind(*arguments, **options)
        bound.apply_defaults()
        call = _Call(module, ranks, bound.arguments)
        if call.outside:
            return original(*arguments, **options)
        if target is not None:
            target.marker(library.INSTANT, original.__name__)
        return action(call)

    return replaced
