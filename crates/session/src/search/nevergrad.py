"""An optimizer of nevergrad behind ask and tell, one JSON object a line.

    -> {"ready": "CMA"}
    <- {"ask": 1}                    -> {"vector": [0.5, ...]}
    <- {"tell": 1, "loss": -0.3}

Arguments: the optimizer's name, the number of dimensions, the seed, how many points may
be under way.
"""

import json
import sys
import warnings

import nevergrad
import numpy

warnings.simplefilter("ignore")


def main(name, dimensions, seed, width):
    if name not in nevergrad.optimizers.registry:
        sys.exit(f"nevergrad has no optimizer `{name}`")
    box = nevergrad.p.Array(init=numpy.full(dimensions, 0.5), lower=0.0, upper=1.0)
    box.random_state.seed(seed)
    optimizer = nevergrad.optimizers.registry[name](parametrization=box, budget=10_000, num_workers=width)
    asked = {}
    print(json.dumps({"ready": name}), flush=True)
    for line in sys.stdin:
        message = json.loads(line)
        if "ask" in message:
            asked[message["ask"]] = point = optimizer.ask()
            print(json.dumps({"vector": point.value.tolist()}), flush=True)
        else:
            point = asked.pop(message["tell"], None)
            if point is not None:
                optimizer.tell(point, message["loss"])


main(sys.argv[1], *(int(number) for number in sys.argv[2:]))
