"""Pictures: written whole, in the format that their name says, and the same every time."""

import struct
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from streamkern.errors import OutputError
from streamkern.report.comparison_trials import Comparison, Run, Trial
from streamkern.report.plots import plot_comparison

PNG = b"\x89PNG\r\n\x1a\n"
SVG = "{http://www.w3.org/2000/svg}"
SIZES = (64, 256, 1024)


def trial(method, errors, kernel_error=None, *, solver="eigen", **names):
    runs = [
        Run(
            *(None if kernel_error is None else seed, solver, 0.1, error, None),
            loo_rmse=0.45 if method == "exact" else None,
            kernel_error=kernel_error and kernel_error * (1 + seed / 10),
            precision_floor=None,
            fit_seconds=1.0,
            predict_seconds=0.1,
            matrix_bytes=8 * 64**2,
        )
        for seed, error in enumerate(errors)
    ]
    return Trial.of(method, runs, 0.5, **names)


def comparison(
    *, maps=("orthogonal", "iid"), sizes=SIZES, n_seeds=3, linear=0.9, by_passes=(), **values
):
    def drawn(i, D):
        return [0.5 + (4 + i + 0.5 * seed) / D for seed in range(n_seeds)]

    trials = [
        trial("exact", [0.5]),
        trial("linear", [linear], n_components=3),
        *(
            trial(
                *("random features", drawn(i, D), (1 + i) / D**0.5),
                solver="cg" if D in by_passes else "eigen",
                n_components=D,
                map_name=each,
            )
            for i, each in enumerate(maps)
            for D in sizes
        ),
    ]
    kernel = {"name": "gaussian", "length_scale": 1.5}
    given = {"kernel": kernel, "alpha": "cv", "target_deviation": 1.0} | values
    return Comparison(tuple(trials), 4000, 1000, **given)


@pytest.fixture
def drawn(tmp_path):
    """Return the texts of the picture of a comparison, as readers of an SVG search it."""

    def draw(found):
        plot_comparison(found, tmp_path / "comparison.svg", force=True)
        root = ET.parse(tmp_path / "comparison.svg").getroot()  # noqa: S314  made by ourselves
        return [" ".join(text.itertext()).strip() for text in root.iter(f"{SVG}text")]

    return draw


def test_a_png_has_the_resolution_of_print_and_replaces_another_only_if_forced(tmp_path):
    path = tmp_path / "comparison.png"
    path.write_text("precious")
    with pytest.raises(OutputError, match="exists already"):
        plot_comparison(comparison(), path)
    assert path.read_text() == "precious"
    plot_comparison(comparison(), path, force=True)
    image = path.read_bytes()
    assert image[:8] == PNG
    assert struct.unpack(">II", image[16:24]) == (2160, 1050)
    assert image.endswith(b"IEND\xaeB`\x82")
    assert len(image) > 50_000
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("form", ["svg", "pdf"])
def test_the_same_comparison_gives_the_same_bytes_whatever_the_settings_of_the_user(tmp_path, form):
    import matplotlib as mpl

    one, other = (tmp_path / f"{name}.{form}" for name in ("one", "other"))
    plot_comparison(comparison(), one)
    with mpl.rc_context({"font.size": 30, "axes.grid": True, "svg.fonttype": "path"}):
        plot_comparison(comparison(), other)
    assert one.read_bytes() == other.read_bytes()
    assert not any(word in one.read_bytes() for word in (b"dc:date", b"CreationDate"))


LONG = {"sizes": (16, 32, 64, 128, 256, 512, 1024, 2048, 4096)}
FEW = {"sizes": (256,), "n_seeds": 1}
DRAWN = "means over 3 draws of the random features, bands 95% intervals of the mean"
SCALES = {"kernel": {"name": "gaussian", "length_scale": [1.0, 2.0, 3.0]}}
OWN = "chosen by {}, or for exact kernel ridge by leave-one-out (LOO)"


@pytest.mark.parametrize(
    ("options", "texts", "sentence"),
    [
        ({}, ["orthogonal", "iid", "exact 0.5", "exact, LOO 0.45", "64", "256", "1,024"], DRAWN),
        (LONG, ["16", "64", "256", "1,024", "4,096"], "4,000 rows were fitted and 1,000 tested."),
        ({"linear": 55.0}, ["linear 55 \N{UPWARDS ARROW}"], OWN.format("cross-validation")),
        (
            {"by_passes": (1024,)},
            [],
            "on the rows fitted. Hollow points are solved by conjugate gr",
        ),
        ({"linear": 0.6}, ["linear 0.6"], "Gaussian kernel, length scale 1.5; 4,000 rows"),
        (FEW, ["256"], "One draw of the random features. Every"),
        (SCALES, [], "of 3 values"),
        ({"alpha": 0.25}, [], "The penalty alpha is 0.25 everywhere"),
        ({"alpha": (0.1, 1.0)}, [], OWN.format("cross-validation")),
        ({"alpha": "gcv"}, [], OWN.format("robust generalised cross-validation")),
        ({"alpha": "evidence"}, [], OWN.format("the evidence")),
    ],
)
def test_lines_have_names_and_the_caption_says_what_is_drawn(drawn, options, texts, sentence):
    found = drawn(comparison(**options))
    assert set(texts) <= set(found)
    assert not {"32", "128", "512", "2,048"} & set(found)
    assert sentence in " ".join(found)


def test_an_interval_that_reaches_below_nought_can_be_drawn_on_a_logarithmic_axis(drawn):
    whole = comparison(n_seeds=2)
    wild = [
        replace(each, interval=each.interval | {"kernel_error": (-1.0, 1.0)}) if each.map else each
        for each in whole.trials
    ]
    assert "orthogonal" in drawn(replace(whole, trials=tuple(wild)))
