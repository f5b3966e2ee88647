"""A process group of CPU tensors most of whose members do not exist.

Members that exist really exchange what they give (through the store, up to
`_LARGEST` bytes a call; above, each keeps its own); an absent member gives what the
rank that stands in for it gives.
"""

import torch
from torch._C._distributed_c10d import Backend, ReduceOp, _create_work_from_future

from . import exchange

_LARGEST = 16 << 20


def _pack(tensors):
    return b"".join(_bytes(tensor) for tensor in tensors)


def _bytes(tensor):
    return bytes(tensor.detach().contiguous().cpu().reshape(-1).view(torch.uint8).numpy())


def _unpack(data, like):
    """Tensors in the shapes of `like` from their bytes."""
    found = []
    at = 0
    for tensor in like:
        length = tensor.numel() * tensor.element_size()
        if length == 0:
            found.append(torch.empty_like(tensor))
            continue
        part = bytearray(data[at : at + length].ljust(length, b"\0"))
        found.append(torch.frombuffer(part, dtype=tensor.dtype).reshape(tensor.shape))
        at += length
    return found


def _reduced(values, weights, operation):
    """The values of some members, each counted as often as it stands for members."""
    first = values[0]
    if operation in (ReduceOp.SUM, ReduceOp.AVG):
        total = sum(value * weight for value, weight in zip(values, weights, strict=True))
        if operation == ReduceOp.AVG:
            total = total / sum(weights)
        return total.to(first.dtype)
    stacked = torch.stack(values)
    if operation == ReduceOp.MIN:
        return stacked.amin(0)
    if operation == ReduceOp.MAX:
        return stacked.amax(0)
    result = first.clone()
    if operation == ReduceOp.PRODUCT:
        result = first**0
        for value, weight in zip(values, weights, strict=True):
            result = result * value**weight
        return result.to(first.dtype)
    for value in values[1:]:
        if operation == ReduceOp.BAND:
            result &= value
        elif operation == ReduceOp.BOR:
            result |= value
    if operation == ReduceOp.BXOR:
        result = torch.zeros_like(first)
        for value, weight in zip(values, weights, strict=True):
            if weight % 2:
                result ^= value
    return result


def _done(result):
    future = torch.futures.Future()
    future.set_result(result)
    return _create_work_from_future(future)


def _operation(options):
    operation = options.reduceOp
    return getattr(operation, "op", operation)


class Mirror(Backend):
    """Stands where Gloo would stand."""

    def __init__(self, store, rank, members, ranks):
        super().__init__(rank, len(members))
        self._store = store  # kept alive
        self._members = members
        self._ranks = ranks
        self._own = members[rank]
        self._present = ranks.of(members)
        self._stand_ins = [ranks.stand_in(member, members) for member in members]
        self._weights = [self._stand_ins.count(member) for member in self._present]
        # Members make equal groups in equal order.
        joined = ",".join(str(member) for member in members)
        self._name = f"gloo/{joined}/{exchange.number('mirror', joined)}"
        self._options = Backend.Options("gloo")

    # What PyTorch asks of a backend beside collectives.

    def getBackendName(self):
        return "gloo"

    @property
    def options(self):
        return self._options

    @property
    def supports_splitting(self):
        return True

    def split(self, store, places, _options):
        places = list(places)
        if self.rank() not in places:
            return None
        members = [self._members[place] for place in places]
        return Mirror(store, places.index(self.rank()), members, self._ranks)

    def set_timeout(self, _timeout):
        pass

    def _set_sequence_number_for_group(self):
        pass

    # Collectives.

    def _values(self, tensors):
        """What each existing member gives, `{rank: tensors}`."""
        size = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        if size > _LARGEST:
            return dict.fromkeys(self._present, tensors)
        data = exchange.all_values(self._name, self._own, _pack(tensors), self._present)
        return {rank: tensors if rank == self._own else _unpack(data[rank], tensors) for rank in data}

    def _reduce(self, tensors, options):
        values = self._values(tensors)
        columns = zip(*(values[rank] for rank in self._present), strict=True)
        return [_reduced(list(column), self._weights, _operation(options)) for column in columns]

    def broadcast(self, tensors, options):
        giver = self._stand_ins[options.rootRank]
        size = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        if size <= _LARGEST:
            own = _pack(tensors) if giver == self._own else b""
            data = exchange.one_value(self._name, self._own, giver, own, self._present)
            if giver != self._own:
                for tensor, value in zip(tensors, _unpack(data, tensors), strict=True):
                    tensor.copy_(value)
        return _done(tensors)

    def allreduce(self, tensors, options):
        for tensor, value in zip(tensors, self._reduce(tensors, options), strict=True):
            tensor.copy_(value)
        return _done(tensors)

    allreduce_coalesced = allreduce

    def reduce(self, tensors, options):
        values = self._reduce(tensors, options)
        if self.rank() == options.rootRank:
            for tensor, value in zip(tensors, values, strict=True):
                tensor.copy_(value)
        return _done(tensors)

    def allgather(self, outputs, inputs, _options):
        values = self._values(inputs)
        for output, giver in zip(outputs[0], self._stand_ins, strict=True):
            output.copy_(values[giver][0].reshape(output.shape))
        return _done(outputs)

    def allgather_coalesced(self, outputs, inputs, _options):
        values = self._values(inputs)
        for output, giver in zip(outputs, self._stand_ins, strict=True):
            for tensor, value in zip(output, values[giver], strict=True):
                tensor.copy_(value)
        return _done(outputs)

    def all_gather_single(self, output, own, _options=None):
        values = self._values([own])
        parts = output.reshape(-1).chunk(len(self._members))
        for part, giver in zip(parts, self._stand_ins, strict=True):
            part.copy_(values[giver][0].reshape(-1))
        return _done([output])

    _allgather_base = all_gather_single

    def gather(self, outputs, inputs, options):
        values = self._values(inputs)
        if self.rank() == options.rootRank:
            for output, giver in zip(outputs[0], self._stand_ins, strict=True):
                output.copy_(values[giver][0])
        return _done(outputs)

    def scatter(self, outputs, inputs, options):
        giver = self._stand_ins[options.rootRank]
        own = _pack(inputs[0]) if giver == self._own and inputs else b""
        data = exchange.one_value(self._name, self._own, giver, own, self._present)
        if data:
            length = outputs[0].numel() * outputs[0].element_size()
            part = data[self.rank() * length : (self.rank() + 1) * length]
            outputs[0].copy_(_unpack(part, outputs)[0])
        return _done(outputs)

    def reduce_scatter(self, outputs, inputs, options):
        values = self._reduce(inputs[0], options)
        outputs[0].copy_(values[self.rank()])
        return _done(outputs)

    def reduce_scatter_single(self, output, own, options):
        value = self._reduce([own], options)[0]
        output.copy_(value.reshape(-1).chunk(len(self._members))[self.rank()].reshape(output.shape))
        return _done([output])

    _reduce_scatter_base = reduce_scatter_single

    def alltoall(self, outputs, inputs, _options):
        data = exchange.all_values(self._name, self._own, self._sized(inputs), self._present)
        for output, giver in zip(outputs, self._stand_ins, strict=True):
            output.copy_(_unpack(self._part(data[giver]), [output])[0])
        return _done(outputs)

    def all_to_all_single(self, output, own, output_splits, input_splits, _options=None):
        count = len(self._members)
        inputs = list(own.split(input_splits) if input_splits else own.chunk(count))
        outputs = list(output.split(output_splits) if output_splits else output.chunk(count))
        return self.alltoall(outputs, inputs, None)

    alltoall_base = all_to_all_single

    @staticmethod
    def _sized(tensors):
        parts = [_bytes(tensor) for tensor in tensors]
        return b"".join(len(part).to_bytes(8, "little") + part for part in parts)

    def _part(self, data):
        """The part for this member of what `_sized` packed."""
        at = 0
        for _ in range(self.rank()):
            at += 8 + int.from_bytes(data[at : at + 8], "little")
        return data[at + 8 : at + 8 + int.from_bytes(data[at : at + 8], "little")]

    def barrier(self, _options=None):
        exchange.all_values(self._name, self._own, b"", self._present)
        return _done([])

    def send(self, tensors, place, tag):
        peer = self._members[place]
        if self._ranks.exists(peer):
            exchange.send(f"{self._name}/{tag}", self._own, peer, _pack(tensors))
        return _done(tensors)

    def recv(self, tensors, place, tag):
        peer = self._members[place]
        if self._ranks.exists(peer):
            data = exchange.receive(f"{self._name}/{tag}", self._own, peer)
            for tensor, value in zip(tensors, _unpack(data, tensors), strict=True):
                tensor.copy_(value)
        return _done(tensors)
