"""Optuna chooses the configurations, trompe says how long a step of each takes. (`pip install optuna`)"""

import optuna
from trompe.search import Objective

step_time = Objective("examples/search/space.toml", cluster="dgx-h100")


def objective(trial):
    return step_time(
        {name: trial.suggest_categorical(name, values) for name, values in step_time.knobs.items()}
    )


search = optuna.create_study()
search.optimize(objective, n_trials=20)
print(search.best_value, search.best_params)
