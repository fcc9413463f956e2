"""Credentials of stores reach the workers, and nothing that anybody reads."""

import numpy as np
import pytest
from commandline import invoke, write
from commandline import streamkern as command
from distributed import Client
from rows_read import store
from servers import KEY, SECRET, late_proxy

import streamkern
from streamkern.errors import DataError

N = 4000


@pytest.fixture
def url(tmp_path, bucket):
    return put(bucket, tmp_path / "rows.h5")


def put(bucket, path, seed=0):
    X = np.random.default_rng(seed).standard_normal((N, 3))
    return bucket.put(store(path, X, np.sin(X[:, 0]), chunks=(500, 3)))


@pytest.fixture
def environment(bucket, monkeypatch):
    """Credentials and endpoint where the libraries of the store look for them."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{bucket.server}")
    type(bucket.store).clear_instance_cache()


def test_every_command_reads_from_a_store_and_shows_none(
    url, bucket, environment, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    more = put(bucket, tmp_path / "more.h5", seed=1)
    fast = ("--components", 16, "--kernel", "gaussian", "--quiet")
    results = [
        command(*words)
        for words in (
            ("inspect", url),
            ("inspect", url, "--json"),
            ("fit", url, "--out", "model.h5", "--report", "report.html", *fast),
            ("fit", url, "--out", "again.h5", *fast, "--json"),
            ("tune", url, "--out", "tuned.h5", *fast),
            ("predict", "model.h5", url, "--out", "pred.h5", "--quiet"),
            ("evaluate", "model.h5", url, "--quiet"),
            ("evaluate", "model.h5", url, "--leave-one-out", 2, "--quiet"),
            ("moments", url, more, "--out", "m.h5", *fast),
            ("forget", "m.h5", url, "--quiet", "--out", "less.h5"),
            ("compare", url, "--out", "compared", "--quiet", "--rows", 100, "--components", 16),
            ("show", "model.h5"),
            ("show", "model.h5", "--json"),
        )
    ]
    shown = "".join(result.output for result in results)
    assert url in shown
    for path in [file for end in ("h5", "json", "html") for file in tmp_path.rglob(f"*.{end}")]:
        shown += path.read_bytes().decode("latin1")
    assert SECRET not in shown
    assert KEY not in shown


def test_a_signed_url_is_shown_without_its_signature(url, bucket, tmp_path):
    signed = bucket.store.sign(url)
    signature = signed.partition("?")[2]
    written = [tmp_path / name for name in ("model.h5", "report.html")]
    done = command("fit", signed, "--out", written[0], "--report", written[1], "--components", 16)
    described = streamkern.load(tmp_path / "model.h5").report_["data"]["files"][0]["path"]
    assert described == f"{signed.partition('?')[0]}?..."
    shown = done.output + "".join(path.read_bytes().decode("latin1") for path in written)
    assert not any(secret in shown for secret in signature.split("&"))


def test_an_error_shows_none(url, bucket, tmp_path):
    signed = bucket.store.sign(url).replace("rows.h5", "none.h5")
    result = invoke("fit", signed, "--out", tmp_path / "model.h5", "--debug")
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1].endswith("none.h5?... does not exist; check the URL.")
    assert not any(secret in result.stderr for secret in signed.partition("?")[2].split("&"))


URL = "https://someone:hunter2@127.0.0.1:9/a"
OUT = ("--out", "out.h5", "--components", "16")


TOLD = [
    ("convert", f"{URL}.csv", "out.h5"),
    ("convert", "table.csv", "out.h5", "--like", URL),
    ("predict", URL, "rows.h5", "--out", "out.h5"),
    ("show", URL),
    ("evaluate", URL, "rows.h5"),
    ("export", URL, "--out", "out.onnx"),
    ("merge", URL, URL, "--out", "out.h5"),
    ("moments", "rows.h5", "--like", URL, *OUT),
    ("fit", "rows.h5", "--like", URL, *OUT),
    ("fit", "rows.h5", "--cluster", URL, *OUT),
    ("fit", "rows.h5", "--scheduler", "tcp://someone:hunter2@127.0.0.1:9", *OUT),
    ("fit", "rows.h5", "--scheduler", "tcp://hunter2@127.0.0.1:9", *OUT),
    ("fit", "rows.h5", "--scheduler", "tcp://someone:a hunter2@127.0.0.1:9", *OUT),
    ("fit", "rows.h5", "--scheduler-file", URL, *OUT),
    ("fit", "rows.h5", "--checkpoint", URL, *OUT),
    ("fit", "rows.h5", "--x", URL, *OUT),
    ("fit", "rows.h5", "--map", URL, *OUT),
    ("fit", "rows.h5", "--metric", URL, *OUT),
    ("compare", "rows.h5", "--out", URL),
]
MODES = ([], ["--debug"], ["--log-json"])


@pytest.mark.parametrize("number", range(len(TOLD)))
def test_no_option_has_a_secret_of_a_url_told(number, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write("rows.h5", np.eye(20, 3), np.arange(20.0))
    (tmp_path / "table.csv").write_text("x,y\n1,2\n")
    result = invoke(*TOLD[number], *MODES[number % 3])
    assert result.exit_code > 0
    told = result.output + capsys.readouterr().err
    assert "...@127.0.0.1:9" in told
    assert "hunter2" not in told


@pytest.mark.cluster
def test_workers_get_them_and_log_none(url, bucket, external_scheduler_file, tmp_path):
    with (
        Client(scheduler_file=str(external_scheduler_file)),
        late_proxy(bucket.server, "--seconds", 0) as (proxy, process),
    ):
        few = {"config_kwargs": {"retries": {"total_max_attempts": 1}}}
        options = bucket.options_at(proxy) | few
        source = streamkern.open_hdf5(url, storage_options=options)
        fitted = streamkern.RandomFeatureRidge("gaussian", n_components=16).fit(source)
        source = streamkern.open_hdf5(url, storage_options=options)
        process.kill()
        process.wait()
        with pytest.raises(DataError, match=r"s3://rows/rows\.h5.* cannot be read \(") as error:
            streamkern.RandomFeatureRidge("gaussian", n_components=16).fit(source)
    assert fitted.report_["rows"] == N
    logs = "".join(path.read_text() for path in external_scheduler_file.parent.glob("*.log"))
    assert "s3://rows/rows.h5" in logs
    for secret in (KEY, SECRET):
        assert secret not in logs
        assert secret not in str(error.value)


def test_a_checkpoint_is_of_the_rows_and_not_of_who_reads_them(url, bucket, tmp_path):
    for key in (KEY, "another-key"):
        options = bucket.options | {"key": key}
        model = streamkern.RandomFeatureRidge("gaussian", n_components=16, random_state=1)
        source = streamkern.open_hdf5(url, storage_options=options)
        model.fit(source, checkpoint=tmp_path / "saved")
    assert model.report_["resumed_shards"] > 0
    for path in (tmp_path / "saved").iterdir():
        assert SECRET not in path.read_bytes().decode("latin1")
