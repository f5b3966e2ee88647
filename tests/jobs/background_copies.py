"""A thread copies the weights to the host and waits for them while training goes on.

`--by thread` starts a thread for each copy, `--by pool` gives it to an executor and asks for
the copy before at the next one, `--by program` lets the training loop do it itself.
"""

import argparse
import threading
from concurrent.futures import ThreadPoolExecutor

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--by", choices=("nobody", "program", "thread", "pool"), default="thread")
parser.add_argument("--steps", type=int, default=8)
arguments = parser.parse_args()

model = torch.nn.Sequential(*(torch.nn.Linear(4096, 4096, bias=False) for _ in range(8))).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
host = [torch.empty(p.shape, dtype=p.dtype, pin_memory=True) for p in model.parameters()]
stream = torch.cuda.Stream()


def save(weights, ready):
    with torch.cuda.stream(stream):
        stream.wait_event(ready)
        for target, source in zip(host, weights, strict=True):
            target.copy_(source, non_blocking=True)
            stream.synchronize()


pool = ThreadPoolExecutor(1)
saving = None
threads = []
for step in range(arguments.steps):
    batch = torch.randn(64, 4096, device="cuda")
    model(batch).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    if arguments.by != "nobody" and step % 2 == 1:
        ready = torch.cuda.Event()
        ready.record()
        weights = [p.detach() for p in model.parameters()]
        if arguments.by == "program":
            save(weights, ready)
        elif arguments.by == "thread":
            threads.append(threading.Thread(target=save, args=(weights, ready)))
            threads[-1].start()
        else:
            if saving is not None:
                saving.result()
            saving = pool.submit(save, weights, ready)
for thread in threads:
    thread.join()
if saving is not None:
    saving.result()
print(f"{arguments.steps} steps done, weights of {sum(t.nbytes for t in host)} bytes saved by {arguments.by}")
