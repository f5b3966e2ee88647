"""A job made of kernels: what every device of a cluster does in a step."""

import contextlib
import json
import pathlib


class Job:
    """A job under construction; `save` writes the file that `trompe npu job` reads.

    Every rank (of a stage, in a pipeline) makes the same calls in the same order, `steps` times. Calls go to
    stream 0 unless told otherwise; kernels of one stream run one after the other, and events order streams.
    """

    def __init__(self, name, ranks=1, *, steps=3, tokens=None, samples=None):
        self.data = {
            "format": "trompe-npu-job",
            "version": 1,
            "name": name,
            "ranks": ranks,
            "steps": steps,
            "groups": {},
            "kernels": {},
            "step": [],
            "stages": [],
            "memory": {},
        }
        self._now = self.data
        self.data |= {key: value for key, value in (("tokens", tokens), ("samples", samples)) if value}

    def group(self, name, size, stride=1):
        """Ranks that work together: `size` of them, `stride` apart; gives the name back."""
        self.data["groups"][name] = {"size": size, "stride": stride}
        return name

    def kernel(self, name, program, does="other"):
        """Makes a program known under `name`; a report counts it for `does` (`gemm`, `attention`, …)."""
        self.data["kernels"][name] = {"program": program.data, "does": does}
        return name

    @contextlib.contextmanager
    def stage(self):
        """What follows is done by the next stage of a pipeline; gives its number.

        The ranks are shared out evenly: the first stage has the first ones.
        """
        if self.data["step"]:
            raise ValueError("the job has calls outside its stages")
        self.data["stages"].append({"step": [], "memory": {}})
        self._now = self.data["stages"][-1]
        try:
            yield len(self.data["stages"]) - 1
        finally:
            self._now = self.data

    def memory(self, owner, size):
        """Device memory of a rank in bytes; inside a stage, of a rank of that stage."""
        self._now["memory"][owner] = self._now["memory"].get(owner, 0) + size

    def run(self, kernel, *, stream=0, operator="", phase="forward"):
        """Runs a kernel."""
        self._call("kernel", kernel=kernel, stream=stream, operator=operator, phase=phase)

    def collective(self, kind, group, size, dtype, **where):
        """Runs a collective over `size` bytes; `where`: stream, operator, phase."""
        self._call("collective", kind=kind, group=group, bytes=size, dtype=dtype, **where)

    def all_reduce(self, group, size, dtype, **where):
        self.collective("all_reduce", group, size, dtype, **where)

    def all_gather(self, group, size, dtype, **where):
        self.collective("all_gather", group, size, dtype, **where)

    def reduce_scatter(self, group, size, dtype, **where):
        self.collective("reduce_scatter", group, size, dtype, **where)

    def send(self, to, size, dtype, **where):
        """Sends to the rank at the same place in stage `to`; `where`: stream, operator, phase."""
        self._call("send", to=to, bytes=size, dtype=dtype, **where)

    def receive(self, source, size, dtype, **where):
        """Receives from the rank at the same place in stage `source`."""
        self._call("receive", **{"from": source}, bytes=size, dtype=dtype, **where)

    def record(self, event, stream=0):
        """Records an event on a stream."""
        self._call("record", event=event, stream=stream)

    def wait(self, event, stream=0):
        """Makes a stream wait for the event's last recording."""
        self._call("wait", event=event, stream=stream)

    def synchronize(self):
        """The host waits until the device has done everything."""
        self._call("synchronize")

    def host(self, microseconds):
        """The host works for so long."""
        self._call("host", microseconds=microseconds)

    def _call(self, call, **operands):
        if self._now is self.data and self.data["stages"]:
            raise ValueError("the job has stages; make calls inside them, as in `with job.stage():`")
        self._now["step"].append({"call": call} | operands)

    def to_json(self):
        data = {key: value for key, value in self.data.items() if value or key not in ("step", "stages")}
        return json.dumps(data, indent=1)

    def save(self, path):
        pathlib.Path(path).write_text(self.to_json())
        return self
