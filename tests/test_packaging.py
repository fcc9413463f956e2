"""What is published: a wheel of the package alone, which installs and runs."""

import subprocess
import sys
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

import streamkern

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT]
    subprocess.run(command, check=True, capture_output=True)
    assert len(list(folder.glob("*.tar.gz"))) == 1
    (path,) = folder.glob("*.whl")
    return path


def test_a_wheel_holds_the_package_and_nothing_that_only_tests_or_readers_need(wheel):
    with zipfile.ZipFile(wheel) as file:
        names = file.namelist()
    assert {name.split("/")[0] for name in names} == {
        "streamkern",
        f"streamkern-{streamkern.__version__}.dist-info",
    }
    assert {Path(name).suffix for name in names if name.startswith("streamkern/")} == {
        *(".py", ".typed", ".css", ".html")
    }


def test_a_wheel_says_where_its_home_is_and_what_its_extras_are(wheel):
    with zipfile.ZipFile(wheel) as file:
        (name,) = [each for each in file.namelist() if each.endswith("/METADATA")]
        about = message_from_bytes(file.read(name))
    urls = {each.split(",")[0] for each in about.get_all("Project-URL")}
    assert urls == {"Changelog", "Documentation", "Issues", "Source"}
    assert "Programming Language :: Python :: 3.11" in about.get_all("Classifier")
    assert {"all", "dashboard", "docs", "s3", "test"} <= set(about.get_all("Provides-Extra"))
    assert "# streamkern" in about.get_payload()


def test_a_wheel_installs_and_runs(wheel, tmp_path):
    target = tmp_path / "site"
    install = [*(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps")]
    subprocess.run([*install, "--target", target, wheel], check=True)
    code = "import streamkern; print(streamkern.__file__); streamkern.RandomFeatureRidge"
    said = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(target)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.startswith(str(target))
