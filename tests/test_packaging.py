"""What is published: a wheel of the package alone, which installs and runs."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import streamkern

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_a_wheel_holds_the_package_alone_installs_and_runs(tmp_path):
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", tmp_path, ROOT]
    subprocess.run(command, check=True, capture_output=True)
    assert len(list(tmp_path.glob("*.tar.gz"))) == 1
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
    assert {name.split("/")[0] for name in names} == {
        "streamkern",
        f"streamkern-{streamkern.__version__}.dist-info",
    }
    assert {Path(name).suffix for name in names if name.startswith("streamkern/")} == {
        *(".py", ".pyi", ".typed", ".css", ".html")
    }
    site = tmp_path / "site"
    install = [*(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps")]
    subprocess.run([*install, "--target", site, wheel], check=True)
    code = "import streamkern; print(streamkern.__file__); streamkern.RandomFeatureRidge"
    run = {"cwd": tmp_path, "env": {"PYTHONPATH": str(site)}, "capture_output": True, "text": True}
    said = subprocess.run([sys.executable, "-c", code], check=True, **run)
    assert said.stdout.startswith(str(site))
