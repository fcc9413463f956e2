"""Labels of any kind, and the classes that they name."""

import json
from datetime import date

import numpy as np
import pandas as pd
import pytest
from rows_read import together

from streamkern.errors import DataError
from streamkern.extensions.classes.class_labels import MISSING, MOST_CLASSES, UNKNOWN, Classes
from streamkern.extensions.classes.labelled_source import KnownClasses, LabelledSource
from streamkern.sources import Shard, label_columns, labelled_rows

LABELS = {
    "text": np.array(["no", "yes", "", "no"]),
    "objects": np.array(["no", "yes", None, "no"], dtype=object),
    "pandas": np.array(["no", "yes", pd.NA, "no"], dtype=object),
    "bytes": np.array([b"no", b"yes", b"", b"no"]),
    "floats": np.array([1.0, 2.0, np.nan, 1.0]),
    "numbers as objects": np.array([1, 2, np.nan, 1], dtype=object),
}


@pytest.mark.parametrize("labels", list(LABELS.values()), ids=list(LABELS))
def test_codes_are_places_among_the_sorted_classes_and_missing_labels_have_none(labels):
    classes = Classes.of(labels)
    np.testing.assert_array_equal(classes.values, np.unique(labels[:2].tolist()))
    np.testing.assert_array_equal(classes.codes(labels), [0, 1, MISSING, 0])


@pytest.mark.parametrize(
    "labels",
    [
        np.array([3, -1, 3], "i2"),
        np.array([True, False]),
        np.array(["é", "a", "b"]),
        np.array([2.0, 0.0], np.longdouble),
    ],
)
def test_classes_are_those_of_numpy_and_go_through_json(labels):
    classes = Classes.of(labels)
    again = Classes.from_dict(json.loads(json.dumps(classes.as_dict())))
    assert again == classes
    assert again.values.dtype.kind == classes.values.dtype.kind
    np.testing.assert_array_equal(again.values, np.unique(labels))


def test_bytes_and_text_are_the_same_labels():
    assert Classes.of(np.array(["a", "b"])).codes(np.array([b"b", b"c"])).tolist() == [1, UNKNOWN]
    assert Classes.of(np.array([b"a", b"b"])).codes(np.array(["b", "c"])).tolist() == [1, UNKNOWN]


def test_two_classes_have_one_target_and_more_have_one_each():
    codes = np.array([0, 1, MISSING])
    two, three = Classes.of(np.arange(2)), Classes.of(np.arange(3))
    np.testing.assert_array_equal(two.targets(codes), [[-1.0], [1.0], [np.nan]])
    np.testing.assert_array_equal(
        three.targets(codes), [[1, -1, -1], [-1, 1, -1], [np.nan, np.nan, np.nan]]
    )


def test_merged_classes_are_those_of_both_in_any_order():
    parts = [Classes.of(np.array(part)) for part in (["b", "d"], ["aaa", "b"], ["c"])]
    a, b, c = parts
    assert a.merge(b).merge(c) == c.merge(a.merge(b)) == Classes.of(np.array(["aaa", *"bcd"]))


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (np.array([0.5, 1.0]), "the target is continuous"),
        (np.array([np.inf, 1.0]), "the target is continuous"),
        (np.array(["a", 1], dtype=object), "all text, all bytes"),
        (np.array([1 + 2j]), "their type is complex128"),
        (np.array(["2020-02-01"], "M8[D]"), r"their type is datetime64\[D\]; .* by astype\(str\)"),
        (np.array([date(2020, 2, 1)]), r"of the types date; .* dates to text by astype\(str\)"),
        (np.array([3], "m8[s]"), r"their type is timedelta64\[s\]"),
        (np.zeros((2, 2)), "one label a row"),
        (np.arange(MOST_CLASSES + 1), "more than 1,024 different labels"),
    ],
)
def test_what_names_no_classes_is_refused_in_a_sentence(labels, said):
    with pytest.raises(DataError, match=said):
        Classes.of(labels)


def test_labels_of_another_kind_than_the_classes_are_told():
    with pytest.raises(DataError, match=r"labels are integer, as 1, but the classes are text: 'a'"):
        Classes.of(np.array(["a", "b"])).codes(np.array([1, 2]))


@pytest.mark.parametrize(
    "described",
    [
        {"kind": "text", "values": ["b", "a"]},
        {"kind": "text", "values": ["a"]},
        {"kind": "text", "values": [1, 2]},
        {"kind": "text"},
        {"kind": "integer", "values": [[1, 2], [3, 4]]},
    ],
)
def test_a_description_that_was_tampered_with_is_refused(described):
    with pytest.raises((KeyError, TypeError, ValueError)):
        Classes.from_dict(described)


def test_a_row_without_a_label_weighs_one_whatever_the_classes_do():
    rows, labels = labelled_rows(np.zeros((3, 1)), np.array(["a", "b", ""]))
    known = KnownClasses(Classes.of(np.array(["a", "b"])), np.array([2.0, 0.0]))
    _, y, weights = together(LabelledSource(rows, labels, known))
    np.testing.assert_array_equal(y[:, 0], [-1, 1, np.nan])
    np.testing.assert_array_equal(weights, [2, 0, 1])


@pytest.mark.parametrize("n", [1, 4, 5])
def test_labels_in_memory_are_all_there_some_at_a_time(monkeypatch, n):
    monkeypatch.setattr(label_columns, "LABELS_AT_ONCE", 4)
    _, labels = labelled_rows(np.zeros((9, 1)), np.arange(9))
    parts = labels.reader(Shard(0, 9 - n, 9))
    assert [len(part) for part in parts] == [4] * (n // 4) + [1] * (n % 4 > 0)
    np.testing.assert_array_equal(np.concatenate(parts), np.arange(9 - n, 9))
