"""Records calls as instructions of a program file."""

import contextlib
import functools
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).parent
HELPERS = (HERE, pathlib.Path(contextlib.__file__).parent)
# Operands of each instruction in order; made from crates/npu/src/ops/table.rs (a test keeps the two alike).
TABLE = json.loads((HERE / "instructions.json").read_text())
LANE, MICRO = TABLE["lane"], TABLE["micro"]


class Program:
    """A finished program: a dictionary that is the file's JSON."""

    def __init__(self, data):
        self.data = data

    def to_json(self):
        return json.dumps(self.data, indent=1)

    def save(self, path):
        pathlib.Path(path).write_text(self.to_json())
        return self


class Var:
    """A variable of a lane. Arithmetic makes new ones; comparisons make conditions for `Kernel.when`."""

    def __init__(self, owner, name):
        self._owner, self.name = owner, name

    def _binary(self, op, a, b):
        out = self._owner._fresh("v")
        self._owner._emit(op, {"out": out, "a": _plain(a), "b": _plain(b)})
        return Var(self._owner, out)

    def __add__(self, other):
        return self._binary("var_add", self, other)

    def __radd__(self, other):
        return self._binary("var_add", other, self)

    def __sub__(self, other):
        return self._binary("var_sub", self, other)

    def __rsub__(self, other):
        return self._binary("var_sub", other, self)

    def __mul__(self, other):
        return self._binary("var_mul", self, other)

    def __rmul__(self, other):
        return self._binary("var_mul", other, self)

    def __floordiv__(self, other):
        return self._binary("var_div", self, other)

    def __truediv__(self, other):
        return self._binary("var_div", self, other)

    def __mod__(self, other):
        return self._binary("var_mod", self, other)

    def __iadd__(self, other):
        self._owner._emit("var_add", {"out": self.name, "a": self.name, "b": _plain(other)})
        return self

    def _compare(self, sign, other):
        return Condition(f"{self.name} {sign} {_plain(other)}")

    def __lt__(self, other):
        return self._compare("<", other)

    def __le__(self, other):
        return self._compare("<=", other)

    def __gt__(self, other):
        return self._compare(">", other)

    def __ge__(self, other):
        return self._compare(">=", other)

    def __eq__(self, other):
        return self._compare("==", other)

    def __ne__(self, other):
        return self._compare("!=", other)

    __hash__ = None

    def __bool__(self):
        raise TypeError("a variable has no value while the kernel is written; use `with k.when(condition):`")


class Condition:
    """Text of a condition; `&`, `|` and `~` join conditions."""

    def __init__(self, text):
        self.text = text

    def __and__(self, other):
        return Condition(f"({self.text}) && ({other.text})")

    def __or__(self, other):
        return Condition(f"({self.text}) || ({other.text})")

    def __invert__(self):
        return Condition(f"!({self.text})")

    def __bool__(self):
        raise TypeError("a condition has no value while the kernel is written; use `with k.when(condition):`")


class View:
    """A tensor or a window of one; `tensor[a:b, c:d]` makes a window."""

    def __init__(self, owner, name, space, shape):
        self._owner, self.name, self.space, self.shape = owner, name, space, shape

    def __getitem__(self, key):
        keys = key if isinstance(key, tuple) else (key,)
        if len(keys) != len(self.shape):
            raise IndexError(f"`{self.name}` has {len(self.shape)} dimensions, not {len(keys)}")
        offset, span = [], []
        for part, length in zip(keys, self.shape, strict=True):
            if not isinstance(part, slice) or part.step is not None:
                raise IndexError("give ranges without a step, as in x[i:i + 4, :]")
            start = 0 if part.start is None else part.start
            offset.append(start)
            span.append(_length(start, length if part.stop is None else part.stop))
        return self.window(offset, span)

    def window(self, offset, span):
        """The window from `offset` on with `span` elements per dimension."""
        owner, view = self._owner, self._owner._fresh("view")
        where = {"view_name": view, "source_name": self.name, "offset": _plain(offset), "span": _plain(span)}
        if self.space == "gm":
            owner._emit("slice_gm_tensor", where | {"src_dim": _plain(list(self.shape))})
        else:
            owner._emit("slice_tensor", where)
        return View(owner, view, self.space, tuple(span))


def _length(start, stop):
    """`stop - start`, folded where `stop` was written as `start + number`."""
    if isinstance(stop, Var) and isinstance(start, Var):
        made = stop._owner._made.get(stop.name)
        if made and made[0] == "var_add" and made[1]["a"] == start.name:
            count = made[1]["b"]
            return Var(stop._owner, count) if isinstance(count, str) else count
    if isinstance(stop, Var) or isinstance(start, Var):
        return stop - start
    return stop - start


class Buffer:
    """One tensor per slot; `buffer[i]` is the slot of turn `i`."""

    def __init__(self, owner, slots):
        self._owner, self.slots = owner, slots

    def __getitem__(self, index):
        if isinstance(index, int):
            return self.slots[index % len(self.slots)]
        view = self._owner._fresh("slot")
        names = [slot.name for slot in self.slots]
        self._owner._emit("get_buf", {"view_name": view, "index": _plain(index), "slot_names": names})
        return View(self._owner, view, self.slots[0].space, self.slots[0].shape)


class Event:
    """An event between two pipes."""

    def __init__(self, owner, name):
        self._owner, self.name = owner, name

    def set(self):
        self._owner._emit("event_set", {"event": self.name})

    def wait(self):
        self._owner._emit("event_wait", {"event": self.name})

    def release(self):
        self._owner._emit("event_release", {"event": self.name})


def _plain(value):
    if isinstance(value, (Var, View, Event)):
        return value.name
    if isinstance(value, Condition):
        return value.text
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    return value


def _where():
    """File and line of the kernel that called."""
    frame = sys._getframe(1)
    while frame and pathlib.Path(frame.f_code.co_filename).parent in HELPERS:
        frame = frame.f_back
    return f"{pathlib.Path(frame.f_code.co_filename).name}:{frame.f_lineno}" if frame else None


class Kernel:
    """A program under construction; see the package's documentation."""

    def __init__(self, name, cores=1):
        self.cores = cores
        self._data = {
            "format": "trompe-npu-program",
            "version": 1,
            "name": name,
            "cores": cores,
            "tensors": [],
            "micros": {},
            "lanes": [],
        }
        self._instructions, self._table, self._names, self._made = None, LANE, 0, {}

    # Tensors.

    def _tensor(self, name, space, dtype, shape, **more):
        self._data["tensors"].append(
            {"name": name, "space": space, "dtype": dtype, "shape": list(shape)} | more
        )
        return View(self, name, space, shape)

    def input(self, name, dtype, *shape):
        return self._tensor(name, "gm", dtype, shape, role="input")

    def output(self, name, dtype, *shape):
        return self._tensor(name, "gm", dtype, shape, role="output")

    def inout(self, name, dtype, *shape):
        return self._tensor(name, "gm", dtype, shape, role="inout")

    def workspace(self, name, dtype, *shape):
        return self._tensor(name, "gm", dtype, shape, role="workspace")

    def local(self, name, space, dtype, *shape, **more):
        """A tensor in l1, l0a, l0b, l0c or ub; `offset=` or `view_of=` place it."""
        return self._tensor(name, space, dtype, shape, **more)

    def buffer(self, name, space, dtype, *shape, slots=2):
        """A buffer of one to four slots."""
        return Buffer(self, [self._tensor(f"{name}.{at}", space, dtype, shape) for at in range(slots)])

    # Lanes and blocks.

    @contextlib.contextmanager
    def _lane(self, lane):
        self._instructions = []
        self._data["lanes"].append({"lane": lane, "instructions": self._instructions})
        yield self
        self._instructions = None

    def cube(self):
        return self._lane("cube")

    def vec(self):
        return self._lane("vec")

    def vec0(self):
        return self._lane("vec0")

    def vec1(self):
        return self._lane("vec1")

    @contextlib.contextmanager
    def micro(self, name, *parameters):
        """A micro program; a parameter that begins with `$` is a number. Gives the parameters."""
        outside = self._instructions, self._table
        self._instructions, self._table = [], MICRO
        kinds = [("scalar", part[1:]) if part.startswith("$") else ("tensor", part) for part in parameters]
        self._data["micros"][name] = {
            "parameters": [{"name": part, "kind": kind} for kind, part in kinds],
            "instructions": self._instructions,
        }
        yield [Var(self, part) if kind == "scalar" else View(self, part, "ub", ()) for kind, part in kinds]
        self._instructions, self._table = outside

    @contextlib.contextmanager
    def _block(self, start, end, value=None):
        self._emit(start[0], start[1])
        yield value
        self._emit(end, {})

    def range(self, start, stop=None, step=1):
        """A loop; gives its variable."""
        if stop is None:
            start, stop = 0, start
        name = self._fresh("i")
        args = {"var_name": name, "start": _plain(start), "stop": _plain(stop), "step": _plain(step)}
        return self._block(("start_loop", args), "end_loop", Var(self, name))

    def when(self, condition):
        return self._block(("start_if", {"cond": _plain(condition)}), "end_if")

    def auto_sync(self):
        """A region in which events between pipes are inserted."""
        return self._block(("start_auto_sync", {}), "end_auto_sync")

    # Scalars and events.

    def var(self, value=0, dtype=None):
        name = self._fresh("v")
        args = {"var_name": name, "value": _plain(value)}
        self._emit("create_var", args | ({"dtype": dtype} if dtype else {}))
        return Var(self, name)

    def min(self, a, b):
        return Var(self, "")._binary("Min", a, b)

    def max(self, a, b):
        return Var(self, "")._binary("Max", a, b)

    def ceil_div(self, a, b):
        return Var(self, "")._binary("CeilDiv", a, b)

    def _ask(self, op):
        name = self._fresh("v")
        self._emit(op, {"out": name})
        return Var(self, name)

    def cube_index(self):
        return self._ask("GetCubeIdx")

    def cube_count(self):
        return self._ask("GetCubeNum")

    def vec_index(self):
        return self._ask("GetVecIdx")

    def vec_count(self):
        return self._ask("GetVecNum")

    def sub_block(self):
        return self._ask("GetSubBlockIdx")

    def event(self, source, target, slots=1, preset=False):
        """An event of one to four flags."""
        name = self._fresh("event")
        op = ("create_sevent", "create_devent", "create_tevent", "create_qevent")[slots - 1]
        self._emit(op, {"name": name, "src_pipe": source, "dst_pipe": target, "preset": preset})
        return Event(self, name)

    # Instructions.

    def _fresh(self, stem):
        self._names += 1
        return f"_{stem}{self._names}"

    def _emit(self, op, args, pipe=None):
        if self._instructions is None:
            raise RuntimeError(
                f"`{op}` is outside any lane; put it under `with k.cube():` or `with k.vec():`"
            )
        instruction = {"op": op, "args": args, "at": _where()}
        if pipe is not None:
            instruction["pipe"] = pipe
        if "out" in args:
            self._made[args["out"]] = (op, args)
        self._instructions.append(instruction)

    def __getattr__(self, op):
        if op.startswith("_"):
            raise AttributeError(op)
        if op not in self._table:
            raise AttributeError(f"there is no instruction `{op}`; docs/npu/instructions.md lists them")
        return functools.partial(self._call, op)

    def _call(self, op, *values, pipe=None, **named):
        operands = self._table[op]
        if len(values) > len(operands):
            raise TypeError(
                f"`{op}` takes {len(operands)} operands ({', '.join(operands)}), not {len(values)}"
            )
        args = dict(zip(operands, values, strict=False))
        for name, value in named.items():
            if name not in operands:
                raise TypeError(f"`{op}` has no operand `{name}`; it takes {', '.join(operands)}")
            if name in args:
                raise TypeError(f"`{op}` got `{name}` twice")
            args[name] = value
        self._emit(op, {name: _plain(value) for name, value in args.items()}, pipe)

    def build(self):
        return Program(self._data)


def kernel(function):
    """Turns `def name(k, …)` into a function that returns the program; `cores=` is the number of cores."""

    @functools.wraps(function)
    def build(*values, cores=1, **named):
        k = Kernel(function.__name__, cores)
        function(k, *values, **named)
        return k.build()

    return build
