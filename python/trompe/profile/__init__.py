"""Measures a real GPU so that trompe can learn from it; needs PyTorch and nothing else.

    python -m trompe.profile --out sweep     # about 2,000 shapes in 10 minutes; goes on when interrupted
    trompe profile --gpu --out sweep         # the same, and what was measured becomes your calibration
    trompe profile -- python train.py        # records the kernels of your own job once

What is measured, by file in the output folder:

* `FAMILY-NN.json.gz`: profiler traces of the sweep, the source of truth (`trompe calibrate --kineto`):
  every kernel with its shapes, forward and backward;
* `gemm.csv`, `attention.csv`, `convolution.csv`, `pointwise.csv`: the operations of it that are one kernel,
  in the columns of docs/estimators.md (`trompe calibrate --csv`);
* `collectives.csv`: with several GPUs (`trompe network fit`, `trompe calibrate --nccl-tests`);
* `host.toml`: a host sheet with the costs of calls into CUDA here (`trompe run --host host.toml`).

`shapes` says what is measured, `operations` makes it runnable, `sweep` runs and times it.
"""
