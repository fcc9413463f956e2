"""What a checkpoint costs: python jobs/checkpoint_cost.py --rows 1000000 --components 2048.

Fits on two workers with a checkpoint and without, in turns, and says what share of the time the
checkpoint takes, of the whole fit and of the pass over the rows.  Fails above 3% of the pass.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from chaos import write_rows

import streamkern
from streamkern.parameters import chunking


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--inputs", type=int, default=90)
    parser.add_argument("--components", type=int, default=2048)
    parser.add_argument("--shard-rows", type=int, default=65_536)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--alpha", default="1.0", help="a number, or cv")
    given = parser.parse_args()
    alpha = "cv" if given.alpha == "cv" else float(given.alpha)
    chunking._SHARD_ROWS = (given.shard_rows, given.shard_rows)  # noqa: SLF001  the plan's own choice
    with tempfile.TemporaryDirectory() as name:
        write_rows(Path(name) / "rows.h5", given.rows, given.inputs)
        source = streamkern.open_hdf5(Path(name) / "rows.h5")
        seconds: dict[str, list[tuple[float, float]]] = {"without": [], "with": []}
        with streamkern.connect(n_workers=2):
            for i in range(given.repeats):
                for kind, found in seconds.items():
                    model = streamkern.RandomFeatureRidge(
                        n_components=given.components, alpha=alpha
                    )
                    checkpoint = Path(name) / f"saved-{i}" if kind == "with" else None
                    begun = time.perf_counter()
                    model.fit(source, checkpoint=checkpoint)
                    whole = time.perf_counter() - begun
                    found.append((whole, model.report_["seconds"]["pass"]))
                    print(
                        f"{kind}: {whole:.1f} s, of these {found[-1][1]:.1f} in the pass",
                        flush=True,
                    )
                if checkpoint:
                    size = sum(path.stat().st_size for path in checkpoint.iterdir())
    for part, called in enumerate(("the whole fit", "the pass")):
        without, with_it = (
            statistics.median(each[part] for each in seconds[kind]) for kind in ("without", "with")
        )
        cost = f"{with_it:.1f} s with a checkpoint: {with_it / without - 1:+.1%}"
        print(f"{called}: {without:.1f} s, {cost}")
    print(f"{size / 1e6:.0f} MB in the folder at the end")
    raise SystemExit(with_it > 1.03 * without)


if __name__ == "__main__":
    main()
