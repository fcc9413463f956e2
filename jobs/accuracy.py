"""How well maps, kernels and metrics predict real sets: python jobs/accuracy.py FOLDER...

Every set is a folder with `data.npz`: X, y and, where a split is published, test_mask, whose first
column is held out, else a random tenth.  A contender is MAP/KERNEL or MAP/KERNEL/METRIC, each of
which may be `auto`, or one of scikit-learn's.  Errors are root mean squares on the rows held out,
over the standard deviation of the target.  One run gives a table, a picture and a JSON file:

    python jobs/accuracy.py ../shared/data/uci_pol --contenders orthogonal/gaussian,boosting-tuned
    python jobs/accuracy.py FOLDER... --components 1024,4096 --seeds 0,1,2 --name sizes
    python jobs/accuracy.py --draw accuracy/sizes.json
"""

import argparse
import json
from itertools import product
from pathlib import Path
from typing import Any

from accuracies.contenders import OTHERS, outcome
from accuracies.picture import draw
from accuracies.sets import read

from streamkern.kernels import separated

CONTENDERS = (
    *("orthogonal/gaussian", "orthogonal/matern32", "nystroem/gaussian", "nystroem/matern32"),
    *("orthogonal/gaussian/learn", "auto/auto/learn", *OTHERS),
)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("sets", nargs="*", type=Path, help="folders with data.npz")
    add("--contenders", default=",".join(CONTENDERS), help="with commas between")
    add("--components", default="4096", help="D, several with commas between")
    add("--seeds", default="0", help="of maps and samples, several with commas between")
    add("--out", type=Path, default=Path("accuracy"), help="folder of results")
    add("--name", default="accuracy", help="of the results' files")
    add("--draw", type=Path, nargs="+", metavar="JSON", help="table and picture of earlier runs")
    return parser.parse_args()


def numbers(text: str) -> list[int]:
    """Return whole numbers with commas between them."""
    return [int(part) for part in text.split(",")]


def measured(given: argparse.Namespace) -> list[dict[str, Any]]:
    """Fit every contender to every set, and say at once what came of it."""
    found = []
    cases = list(product(separated(given.contenders), numbers(given.components)))
    print(HEADER, flush=True)
    for folder in given.sets:
        rows = read(folder)
        for (name, components), seed in product(cases, numbers(given.seeds)):
            done = outcome(name, rows, components, seed)
            found.append(
                {"set": rows.name, "rows": len(rows.X), "inputs": rows.X.shape[1]}
                | {"contender": name, "components": components, "seed": seed}
                | done._asdict()
            )
            print(line(found[-1]), flush=True)
            (given.out / f"{given.name}.json").write_text(json.dumps(found, indent=1))
    return found


HEADER = (
    f"{'set':18}{'contender':32}{'D':>7}{'seed':>5}{'error':>8}{'kernel error':>13}{'seconds':>9}"
    "  chosen"
)


def line(one: dict[str, Any]) -> str:
    """Return a line of the table."""
    apart = "" if one["kernel_error"] is None else f"{one['kernel_error']:.1e}"
    return (
        f"{one['set']:18}{one['contender']:32}{one['components']:>7,}{one['seed']:>5}"
        f"{one['error']:>8.4f}{apart:>13}{one['seconds']:>9.1f}  {one['chosen']}"
    )


def main() -> None:
    given = options()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.draw:
        found = [one for path in given.draw for one in json.loads(path.read_text())]
        print(HEADER, *map(line, found), sep="\n")
    else:
        found = measured(given)
    path = given.out / f"{given.name}.json"
    draw(found, path.with_suffix(".svg"))
    draw(found, path.with_suffix(".png"))
    print(f"{path}, with .svg and .png beside it")


if __name__ == "__main__":
    main()
