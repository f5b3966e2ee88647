"""Runs torchtitan's own entry, `torchtitan.train`, with the two assets that its debug model names.

They are made here: a tokenizer trained on made-up text, and that text as the `c4_test` data
set. Arguments are torchtitan's.
"""

import json
import os
import random
import runpy
import sys
import tempfile

import common
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

STEPS = 3
ASSETS = "tests/assets"


def text(lines):
    """Sentences of random words."""
    random.seed(0)
    words = ["".join(random.choices("etaoinshrdlu", k=random.randint(2, 8))) for _ in range(800)]
    return [" ".join(random.choices(words, k=200)) for _ in range(lines)]


def write_assets(lines):
    os.makedirs(f"{ASSETS}/tokenizer")
    os.makedirs(f"{ASSETS}/c4_test")
    with open(f"{ASSETS}/c4_test/data.json", "w") as file:
        file.writelines(json.dumps({"text": line}) + "\n" for line in lines)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    tokenizer.decoder = decoders.ByteLevel()
    marks = {"bos_token": "<|begin_of_text|>", "eos_token": "<|end_of_text|>"}
    trainer = trainers.BpeTrainer(vocab_size=2000, special_tokens=list(marks.values()), show_progress=False)
    tokenizer.train_from_iterator(lines, trainer)
    tokenizer.save(f"{ASSETS}/tokenizer/tokenizer.json")
    with open(f"{ASSETS}/tokenizer/tokenizer_config.json", "w") as file:
        json.dump(marks, file)


folder = tempfile.mkdtemp()
os.environ.setdefault("HF_HOME", folder)
os.chdir(folder)
write_assets(text(500))
sys.argv = ["train.py", *sys.argv[1:], "--training.steps", str(STEPS)]
runpy.run_module("torchtitan.train", run_name="__main__")
common.finish(STEPS)
