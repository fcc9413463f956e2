"""A raw table to predictions in three commands, and what the commands say on the way."""

import numpy as np
import pandas as pd
import pytest
from commandline import invoke, refused, report_of, streamkern, unchanged_by, write

TABLE = """age, workclass, hours, income
39, State-gov, 40, 0.5
50, Private, ?, 1.5
38, ?, 60, 1.0
53, Private, 45, 1.25
28, State-gov, 20, 0.75
"""


@pytest.fixture
def table(folder):
    """A folder with a raw table, its rows, and a model of them."""
    (folder / "train.csv").write_text(TABLE.replace(", ", ","))
    streamkern("convert", "train.csv", "train.h5", "--target", "income")
    options = ("--components", 16, "--alpha", 0.1, "--quiet")
    streamkern("fit", "train.h5", "--out", "model.h5", *options)
    (folder / "new.csv").write_text("hours,workclass,more,age\n40,?,x,41\n?,Never,y,30\n")
    return folder


def run_all(*commands):
    for command in commands:
        streamkern(*command.split())


def test_cells_that_the_recipe_did_not_expect_are_counted_and_said(table):
    (table / "odd.csv").write_text("hours,workclass,age\n40,astronaut,41\n?,Private,\n")
    done = streamkern("predict", "model.h5", "odd.csv", "--out", "p.h5", "--quiet")
    report = report_of("predict", "model.h5", "odd.csv", "--out", "q.h5")
    assert (report["unseen_categories"], report["imputed_cells"]) == (1, 2)
    assert done.stderr.count("\n") == 1
    assert "had not: 1, workclass=astronaut (1); and that are missing and" in done.stderr
    assert "imputed: 2, age (1), hours (1)." in done.stderr
    streamkern("convert", "odd.csv", "o.h5", "--like", "model.h5", "--no-target")


def test_rows_of_a_raw_table_count_by_the_weights_of_the_recipe_or_by_others(table):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(18, 80, 60), "work": rng.choice(["a", "b"], 60)})
    frame["w"], frame["w2"] = rng.integers(0, 4, 60), np.linspace(0.5, 2.0, 60)
    frame["pay"] = frame.age / 10 + (frame.work == "a") + rng.standard_normal(60)
    frame.to_csv("people.csv", index=False)
    run_all(
        "convert people.csv people.h5 --target pay --weights w --drop w2",
        "fit people.h5 --weights weights --out weighted.h5 --components 16 --alpha 1 --quiet",
        "predict weighted.h5 people.csv --out pred.csv",
    )

    def errors(*arguments):
        return report_of("evaluate", "weighted.h5", *arguments)

    assert errors("people.csv") == errors("people.h5", "--weights", "weights")
    assert errors("people.csv")["rows"] == (frame["w"] > 0).sum()
    unweighted = errors("people.h5")
    residuals = pd.read_csv("pred.csv")["y_pred"] - frame["pay"]
    for name in ("w", "w2", "age"):
        expected = np.sqrt(np.average(residuals**2, weights=frame[name]))
        assert errors("people.csv", "--weights", name)["rmse"] == pytest.approx(expected, rel=1e-6)
        assert expected != pytest.approx(unweighted["rmse"], rel=1e-3)
    # Predictions need no weights, and errors do.
    frame.drop(columns=["w", "pay"]).to_csv("bare.csv", index=False)
    frame.drop(columns="w").to_csv("equal.csv", index=False)
    streamkern("predict", "weighted.h5", "bare.csv", "--out", "bare-pred.csv")
    sentence = refused("evaluate", "weighted.h5", "equal.csv", "--quiet")
    assert "no column 'w' (did you mean 'w2'?), which the recipe needs; its columns" in sentence
    assert sentence.endswith("a column of ones weighs all rows the same.")
    frame.assign(w=1).to_csv("equal.csv", index=False)
    assert errors("equal.csv") == unweighted


def test_rows_without_a_label_are_left_out_and_counted(folder):
    frame = pd.DataFrame({"age": np.arange(40.0), "pay": ["low", "high"] * 20})
    frame.to_csv("all.csv", index=False)
    frame.assign(pay=frame["pay"].where(frame.index != 7)).to_csv("some.csv", index=False)
    run_all(
        "convert all.csv all.h5 --target pay",
        "fit all.h5 --classify --out model.h5 --components 16 --alpha 1 --quiet",
    )
    table = invoke("evaluate", "model.h5", "some.csv").stdout
    assert " ".join(table.split()).count("rows without a label 1, left out") == 1
    found = report_of("evaluate", "model.h5", "some.csv")
    assert (found["rows"], found["unlabelled_rows"]) == (39, 1)
    assert "without a label" not in invoke("evaluate", "model.h5", "all.csv").stdout
    frame.assign(pay="").to_csv("none.csv", index=False)
    sentence = refused("evaluate", "model.h5", "none.csv", "--quiet")
    assert "none of the 40 rows of none.csv has a label in 'pay'" in sentence


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("evaluate model.h5 new.csv", "new.csv has no column 'income', which the recipe needs"),
        ("evaluate model.h5 train.csv --y z", "--y names a dataset of HDF5, and tables have none"),
        ("predict model.h5 short.csv --out o.h5", "short.csv has no column 'workclass'"),
        ("predict model.h5 words.csv --out o.h5", "words.csv: column 'hours' must hold numbers, "),
        ("predict model.h5 new.csv train.h5 --out o.h5", "train.h5 is no CSV or Parquet, but new"),
        ("predict model.h5 none.csv --out o.h5", "none.csv does not exist"),
        ("predict model.h5 new.csv --out new.csv --force", "new.csv is an input of this job"),
        ("predict model.h5 inf.csv --out o.h5", "first at inf.csv, row 1"),
        ("convert new.csv o.h5 --like model.h5", "'income', .* (--no-target) and `predict` take"),
        ("convert new.csv o.h5 --like new.csv", "new.csv has no recipe that can be read"),
    ],
)
def test_an_error_is_one_sentence_and_leaves_nothing(table, command, why):
    (table / "short.csv").write_text("age,hours\n1,2\n")
    (table / "words.csv").write_text("age,hours,workclass\n1,many,Private\n")
    (table / "inf.csv").write_text("age,hours,workclass\n1,2,Private\n1,inf,Private\n")
    sentence = unchanged_by(table, *command.split(), "--quiet", status=(1, 2))
    assert why.partition(", .* ")[0] in sentence
    assert why.rpartition(", .* ")[2] in sentence


def test_a_model_of_rows_alone_cannot_take_a_table(table):
    write("plain.h5", np.arange(20.0).reshape(10, 2), np.arange(10.0))
    options = ("--components", 16, "--alpha", 0.1, "--quiet")
    streamkern("fit", "plain.h5", "--out", "other.h5", *options)
    sentence = refused("predict", "other.h5", "new.csv", "--out", "o.h5", "--quiet")
    assert "other.h5 was not fitted to a table, so new.csv cannot become inputs" in sentence
