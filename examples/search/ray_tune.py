"""Ray Tune chooses the configurations, trompe says how long their steps take. (`pip install "ray[tune]"`)"""

from pathlib import Path

from ray import tune
from trompe.search import Study

SPACE = Path("examples/search/space.toml").resolve()


def objective(knobs):
    with Study(SPACE, cluster="dgx-h100", out="study") as study:
        return {"loss": study.evaluate(knobs).loss}


knobs = {"tp": [1, 2], "shard": [4, 8], "micro_batch": [1, 4, 16], "checkpoint": [False, True]}
tuner = tune.Tuner(
    objective,
    param_space={name: tune.choice(values) for name, values in knobs.items()},
    tune_config=tune.TuneConfig(metric="loss", mode="min", num_samples=20, max_concurrent_trials=1),
)
print(tuner.fit().get_best_result().config)
