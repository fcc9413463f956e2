"""Fit the last files of a series: python jobs/window.py KEPT MODEL.h5 LAST FILE... [-- OPTION...].

The moments of every file are kept in the folder KEPT, one file each, so that only new files are
read, which those are whose size or time is another; those of the last files are merged and solved
anew, so no rounding builds up.  The first file decides length scale, standardisation and classes.
Options are those of `streamkern moments`, as --components 512 or --classify; KEPT is of one set of
options.
"""

import argparse
import re
import sys
from hashlib import sha256
from pathlib import Path

from streamkern.cli import main as commands


def streamkern(*words: str | Path) -> None:
    commands([*map(str, words)], standalone_mode=False)


def main(kept: Path, model: str, last: int, files: list[str], options: list[str]) -> None:
    kept.mkdir(exist_ok=True)
    ours = [path for path in kept.glob("*.h5") if re.search("-[0-9a-f]{16}$", path.stem)]
    before = sorted(ours, key=lambda path: path.stat().st_mtime_ns)
    first, window = before[0] if before else None, []
    for file in files[-last:]:
        path, stored = Path(file).resolve(), Path(file).stat()
        version = f"{path} {stored.st_size} {stored.st_mtime_ns}"
        moments = kept / f"{path.stem}-{sha256(version.encode()).hexdigest()[:16]}.h5"
        if not moments.exists():
            like = [*(["--classify"] if "--classify" in options else []), "--like", first]
            made = options if first is None else like
            streamkern("moments", file, "--out", moments, "--force", "--quiet", *made)
        first = first or moments
        window.append(moments)
    merged = kept / "merged" / "moments.h5"
    merged.parent.mkdir(exist_ok=True)
    if len(window) > 1:
        streamkern("merge", *window, "--repeated-rows", "--out", merged, "--force")
    streamkern("solve", merged if len(window) > 1 else window[0], "--out", model, "--force")
    # The first is what others are like, so it stays.
    for path in {*before} - {*window, first}:
        path.unlink()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kept", type=Path)
    parser.add_argument("model")
    parser.add_argument("last", type=int)
    words = sys.argv[1:]
    end = words.index("--") if "--" in words else len(words)
    parser.add_argument("files", nargs="+")
    main(**vars(parser.parse_args(words[:end])), options=words[end + 1 :])
