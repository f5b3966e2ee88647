"""Ray Tune chooses the configurations, trompe says how long their steps take. (`pip install "ray[tune]"`)"""

from ray import tune
from trompe.search import Objective

step_time = Objective("examples/search/space.toml", cluster="dgx-h100")
tuner = tune.Tuner(
    lambda knobs: {"loss": step_time(knobs)},
    param_space={name: tune.choice(values) for name, values in step_time.knobs.items()},
    tune_config=tune.TuneConfig(metric="loss", mode="min", num_samples=20, max_concurrent_trials=2),
)
print(tuner.fit().get_best_result().config)
