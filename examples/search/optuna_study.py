"""Optuna chooses the configurations, trompe says how long a step of each takes. (`pip install optuna`)"""

import optuna
from trompe.search import Study

with Study("examples/search/space.toml", cluster="dgx-h100") as study:

    def objective(trial):
        knobs = {name: trial.suggest_categorical(name, values) for name, values in study.knobs.items()}
        return study.evaluate(knobs).loss

    search = optuna.create_study()
    search.optimize(objective, n_trials=20)
print(search.best_value, search.best_params)
