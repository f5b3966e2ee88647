"""Train the learned models that are part of trompe.

Input: tables of features as `trompe estimate features` writes them (one per family). Output: one JSON
file per model, which `trompe estimate pack` turns into the compact file that trompe reads. Features are
computed by trompe alone, in training and in use; this program only fits trees to them.

Rules. Only rows of the `train` split are used. The target is ln(time / physics). Rows weigh one over the
root of how many there are of their source, label and device, so that sources and kinds of shapes
balance. What is chosen (random forest or gradient boosting) is chosen by cross-validation over groups
(products with one weight, one set of heads, …) within the train rows. Intervals are quantiles of the
errors of left-out groups and of left-out devices.
"""

import argparse
import datetime
import json
import math
import pathlib
import time

import lightgbm
import numpy
import pandas
from sklearn.model_selection import GroupKFold

FEATURES_VERSION = 2
# Columns of a table before the features.
COLUMNS = 13
# Devices with fewer rows than this are not left out on their own.
FEWEST = 150
# Devices and kinds of operation with fewer rows than this have no intervals of their own.
OWN = 100
# The class of each family that intervals tell apart.
KINDS = {"gemm": "unit", "attention": "backward", "convolution": "direction", "streaming": "pass"}
# Doublings of the physics time, from one microsecond on, that intervals tell apart.
BUCKETS = 16

BOOSTING = {
    "objective": "regression",
    "num_leaves": 255,
    "learning_rate": 0.08,
    "min_data_in_leaf": 8,
    "feature_fraction": 0.5,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "lambda_l2": 1.0,
}
# The later rounds of boosting go by Huber's loss: measurements have outliers (a clock that changed, an
# algorithm tried first), which squares follow. The first go by squares, because Huber's steps are short.
ROBUST = {"objective": "huber", "alpha": 0.1}
SQUARES = 0.4
FOREST = {
    "objective": "regression",
    "boosting": "rf",
    "num_leaves": 2000,
    "min_data_in_leaf": 2,
    "feature_fraction_bynode": 0.4,
    "bagging_fraction": 0.65,
    "bagging_freq": 1,
}
COMMON = {"verbose": -1, "num_threads": 1, "seed": 1, "deterministic": True, "max_bin": 127}

# Per model: the family, the rows, rounds and settings other than the above.
MODELS = {
    "gemm.half": {
        "family": "gemm",
        "rows": "unit == 3",
        "rounds": 800,
        "settings": {"learning_rate": 0.05},
    },
    "gemm.lanes": {"family": "gemm", "rows": "unit == 1", "rounds": 300},
    "gemm.fp8": {
        "family": "gemm",
        "rows": "unit == 4 and not label.str.contains('fp8_block')",
        "rounds": 250,
    },
    "attention": {"family": "attention", "rows": None, "rounds": 250},
    "convolution": {
        "family": "convolution",
        "rows": None,
        "rounds": 500,
        "settings": {
            "num_leaves": 127,
            "min_data_in_leaf": 5,
            "learning_rate": 0.05,
            "feature_fraction": 0.4,
            "lambda_l2": 10.0,
        },
    },
    "streaming": {"family": "streaming", "rows": None, "rounds": 250, "settings": {"min_data_in_leaf": 20}},
}


def weights(rows):
    """One over the root of the number of rows with the same source, label and device."""
    count = rows.groupby(["source", "label", "gpu"])["target"].transform("size")
    weight = 1.0 / numpy.sqrt(count)
    return (weight / weight.mean()).to_numpy()


def fit(rows, names, settings, rounds):
    """The parts of a model, whose answers are added."""
    values, target, weight = rows[names].to_numpy(), rows["target"].to_numpy(), weights(rows)
    data = lightgbm.Dataset(values, target, weight=weight, free_raw_data=False)
    if settings.get("boosting") == "rf":
        return [lightgbm.train({**COMMON, **settings}, data, rounds)]
    squares = int(rounds * SQUARES)
    first = lightgbm.train({**COMMON, **settings}, data, squares)
    data.set_init_score(first.predict(values, num_threads=1))
    return [first, lightgbm.train({**COMMON, **settings, **ROBUST}, data, rounds - squares)]


def predict(parts, rows, names):
    values = rows[names].to_numpy()
    return sum(part.predict(values, num_threads=1) for part in parts)


def error(residual):
    """Shares by which predictions miss: residual is ln(measured / predicted)."""
    return numpy.abs(numpy.exp(-residual) - 1.0)


def out_of_fold(rows, names, settings, rounds, folds=3):
    """ln(measured / predicted) of every row, predicted without its group."""
    residual = numpy.zeros(len(rows))
    for seen, left in GroupKFold(folds).split(rows, groups=rows["group"]):
        model = fit(rows.iloc[seen], names, settings, rounds)
        residual[left] = rows["target"].to_numpy()[left] - predict(model, rows.iloc[left], names)
    return residual


def left_out_devices(rows, names, settings, rounds, most):
    """The same for each device, predicted without its rows; NaN for devices with few rows."""
    residual = numpy.full(len(rows), numpy.nan)
    for device, count in rows["sheet"].value_counts().items():
        left = (rows["sheet"] == device).to_numpy()
        if count < FEWEST or (~left).sum() < FEWEST:
            continue
        seen = rows[~left]
        model = fit(seen.sample(min(most, len(seen)), random_state=1), names, settings, rounds)
        residual[left] = rows["target"].to_numpy()[left] - predict(model, rows[left], names)
    return residual


def quantiles(rows, residual):
    """10 and 90 % quantiles of the residual by doublings of the physics time; sparse ones take their neighbours'."""  # noqa: E501
    known = ~numpy.isnan(residual)
    enough = min(100, known.sum())
    size = numpy.floor(numpy.log2(numpy.maximum(rows["physics_seconds"].to_numpy() * 1e6, 1.0)))
    size = numpy.minimum(size, BUCKETS - 1)
    result = []
    for bucket in range(BUCKETS):
        for reach in range(BUCKETS):
            near = known & (numpy.abs(size - bucket) <= reach)
            if near.sum() >= enough or reach == BUCKETS - 1:
                break
        low, high = numpy.quantile(residual[near], [0.1, 0.9])
        result.append([round(float(low), 4), round(float(high), 4)])
    return result


def known_quantiles(rows, residual, kind):
    """Quantiles of each device, and of each kind of operation on it, with at least `OWN` rows."""
    result = {}
    for device in sorted(rows["sheet"].unique()):
        own = (rows["sheet"] == device).to_numpy()
        if own.sum() < OWN:
            continue
        result[device] = quantiles(rows[own], residual[own])
        kinds = rows[kind].to_numpy().round()
        for value in sorted(set(kinds[own])):
            of_kind = own & (kinds == value)
            if OWN <= of_kind.sum() < own.sum():
                result[f"{device}/{int(value)}"] = quantiles(rows[of_kind], residual[of_kind])
    return result


def errors(rows, residual, what):
    """Lines of the card's table of errors."""
    lines = []
    for device in sorted(rows["gpu"].unique()):
        own = (rows["gpu"] == device).to_numpy() & ~numpy.isnan(residual)
        if own.sum() < 20:
            continue
        share = error(residual[own])
        line = {"what": what, "device": device, "rows": int(own.sum())}
        lines.append(line | {"mean": float(share.mean()), "median": float(numpy.median(share))})
    return lines


def trees(parts):
    """The trees of all parts with successors after their nodes, as trompe wants them."""

    def walk(node, tree):
        at = len(tree["feature"])
        for key, value in (("feature", -1), ("threshold", 0.0), ("left", 0), ("right", 0), ("value", 0.0)):
            tree[key].append(value)
        if "leaf_value" in node:
            tree["value"][at] = float(numpy.float32(node["leaf_value"]))
            return at
        if node["decision_type"] != "<=":
            raise SystemExit(f"a question of kind {node['decision_type']}, which trompe does not know")
        tree["feature"][at] = node["split_feature"]
        tree["threshold"][at] = float(numpy.float32(node["threshold"]))
        tree["left"][at] = walk(node["left_child"], tree)
        tree["right"][at] = walk(node["right_child"], tree)
        return at

    result = []
    for found in (found for part in parts for found in part.dump_model()["tree_info"]):
        tree = {"feature": [], "threshold": [], "left": [], "right": [], "value": []}
        walk(found["tree_structure"], tree)
        result.append(tree)
    return result


def train(name, tables, licences, most, date):
    spec = MODELS[name]
    rows = pandas.read_csv(tables / f"{spec['family']}.csv", engine="pyarrow")
    names = list(rows.columns[COLUMNS:])
    rows = rows[(rows["split"] == "train") & (rows["learnable"] == 1)]
    if spec["rows"]:
        rows = rows.query(spec["rows"], engine="python")
    rows = rows.reset_index(drop=True)
    begin = time.time()
    sample = rows.sample(min(most // 2, len(rows)), random_state=1).reset_index(drop=True)
    candidates = {
        "gradient boosting": ({**BOOSTING, **spec.get("settings", {})}, spec["rounds"]),
        "random forest": (FOREST, 40),
    }
    scores = {}
    for kind, (settings, rounds) in candidates.items():
        residual = out_of_fold(sample, names, settings, min(rounds, 100))
        scores[kind] = float(numpy.average(error(residual), weights=weights(sample)))
        print(
            f"{name}: {kind}: {scores[kind]:.4f} on groups left out ({len(sample)} rows, {time.time() - begin:.0f} s)"  # noqa: E501
        )
    kind = min(scores, key=scores.get)
    settings, rounds = candidates[kind]
    shapes = out_of_fold(rows, names, settings, rounds)
    devices = left_out_devices(rows, names, settings, min(rounds, 100), most)
    seen = ~numpy.isnan(devices)
    carried = float(error(devices[seen]).mean()) if seen.any() else math.inf
    physics = float(error(rows["target"].to_numpy()[seen]).mean()) if seen.any() else 0.0
    # Where physics alone does better on devices that were left out, the model is not carried over to others. Physics  # noqa: E501
    # has an advantage there that it will not have on a really new device: its constants were fitted on these rows.  # noqa: E501
    carry = carried < physics + 0.02
    print(
        f"{name}: devices left out {carried:.4f}, physics there {physics:.4f}: {'carried' if carry else 'not carried'}"  # noqa: E501
    )
    model = fit(rows, names, settings, rounds)
    print(f"{name}: {len(rows)} rows, {kind}, {time.time() - begin:.0f} s")
    lines = errors(rows, shapes, "groups of shapes left out") + errors(rows, devices, "this device left out")
    for line in lines:
        print(
            f"  {line['what']:26} {line['device']:16} {line['rows']:7} mean {line['mean']:.3f} median {line['median']:.3f}"  # noqa: E501
        )
    counts = rows.groupby(["origin", "gpu"]).size().reset_index(name="count")
    notes = [
        f"chosen between {', '.join(f'{k} {v:.4f}' for k, v in scores.items())} (weighted mean error, groups left out)"  # noqa: E501
    ]
    if not carry:
        notes.append(
            f"not carried over to other devices: {carried:.3f} on devices left out, physics alone {physics:.3f}"  # noqa: E501
        )
    used = sorted(set(rows["origin"]))
    combined = {"gradient boosting": "sum", "random forest": "mean"}[kind]
    given = json.dumps(settings)
    later = "" if kind == "random forest" else f", the later ones {json.dumps(ROBUST)}"
    return {
        "family": spec["family"],
        "features": names,
        "features_version": FEATURES_VERSION,
        "combination": combined,
        "base": 0.0,
        "trees": trees(model),
        "spreads": {
            "shapes": quantiles(rows, shapes),
            "devices": quantiles(rows, devices) if carry else [],
            "known": known_quantiles(rows, shapes, KINDS[spec["family"]]),
        },
        "card": {
            "name": name,
            "date": date,
            "trainer": f"LightGBM {lightgbm.__version__}, {kind}, {rounds} rounds, {given}{later}",
            "rows": [
                [r.origin, r.gpu, int(r.count_)]
                for r in counts.rename(columns={"count": "count_"}).itertuples()
            ],
            "licences": [licences[origin] for origin in used if origin in licences],
            "errors": lines,
            "notes": notes,
        },
    }


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tables", type=pathlib.Path, help="folder with FAMILY.csv and licences.json")
    parser.add_argument("out", type=pathlib.Path, help="folder for MODEL.json")
    parser.add_argument("models", nargs="*", choices=[*MODELS, []], help="only these models")
    parser.add_argument(
        "--most", type=int, default=30_000, help="rows for choosing and for leaving devices out"
    )
    parser.add_argument(
        "--date", default=datetime.date.today().isoformat(), help="the date for the model card"
    )
    arguments = parser.parse_args()
    licences = json.loads((arguments.tables / "licences.json").read_text())
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.models or MODELS:
        trained = train(name, arguments.tables, licences, arguments.most, arguments.date)
        (arguments.out / f"{name}.json").write_text(json.dumps(trained))


if __name__ == "__main__":
    main()
