"""`python -m trompe.profile`: measures a GPU; `trompe profile --gpu` starts this."""

import argparse
import sys
from pathlib import Path


def main(arguments=None):
    """Parses the command line and measures."""
    parser = argparse.ArgumentParser(prog="python -m trompe.profile", description=__doc__)
    parser.add_argument(
        "--out", default="trompe-sweep", help="folder for what is measured; goes on with what is there"
    )
    parser.add_argument("--budget", type=float, default=600.0, help="seconds for the sweep (default 600)")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"), help="cpu: only to try the code")
    parser.add_argument("--families", default="", help="of: gemm,attention,pointwise,convolution,optimizer")
    parser.add_argument(
        "--small", action="store_true", help="a few tiny cases of each family, to try the code"
    )
    parser.add_argument("--no-host", action="store_true", help="without the costs of calls")
    parser.add_argument("--no-collectives", action="store_true", help="without collectives between GPUs")
    options = parser.parse_args(arguments)
    try:
        import torch
    except ImportError:
        print("trompe profile: PyTorch is not installed for this Python", file=sys.stderr)
        return 2
    if options.device == "cuda" and not torch.cuda.is_available():
        print(
            "trompe profile: PyTorch sees no GPU here; run it on a machine with one, or try the code with "
            "`--device cpu --small`",
            file=sys.stderr,
        )
        return 2
    from . import collectives, host, shapes
    from .sweep import Sweep

    families = tuple(name for name in options.families.split(",") if name) or tuple(shapes.FAMILIES)
    unknown = [name for name in families if name not in shapes.FAMILIES]
    if unknown:
        print(
            f"trompe profile: no family {unknown[0]}; there are {', '.join(shapes.FAMILIES)}", file=sys.stderr
        )
        return 2
    out = Path(options.out)
    sweep = Sweep(out, options.device, options.budget, options.small)
    there, wanted = sweep.run(families)
    if not options.no_host:
        (out / "host.toml").write_text(host.sheet(*host.measure(sweep.device)))
    gpus = torch.cuda.device_count() if options.device == "cuda" else 0
    if gpus > 1 and not options.no_collectives and not (out / "collectives.csv").exists():
        collectives.measure(out, gpus)
    print(f"{out}: {there} of {wanted} parts of the sweep on {sweep.gpu}")
    return 0 if there == wanted else 3


if __name__ == "__main__":
    sys.exit(main())
