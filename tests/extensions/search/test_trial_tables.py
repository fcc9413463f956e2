"""Tables of what a search tried, from its report alone."""

from streamkern.extensions.search.trial_tables import frontier_table, tuning_table
from streamkern.parameters.fit_report import ISOTROPIC


def test_the_best_of_every_size_has_a_star_and_what_is_dominated_is_left_out():
    tried = [
        {"metric": ISOTROPIC, "feature_map": "iid", "kernel": k, "length_scale": 1.5}
        | {"n_components": D}
        | errors
        for k, D, errors in (
            ("gaussian", 64, {"relative_mse": 0.25}),
            ("laplacian", 64, {"relative_mse": 0.36}),
            ("gaussian", 128, {"relative_mse": 0.16}),
        )
    ]
    table = tuning_table({"tuning": tried})
    assert table.header == ("map", "kernel", "length scale", "D = 64", "D = 128")
    assert table.rows == [
        ("iid", "gaussian", "1.5", "0.5000*", "0.4000*"),
        ("iid", "laplacian", "1.5", "0.6000 ", ""),
    ]
    cost = {"seconds": 2.0, "passes": 0.5}
    best = [cost | each | {"is_best": j != 1, "is_chosen": j == 2} for j, each in enumerate(tried)]
    rows = frontier_table({"frontier": best}).rows
    assert [row[0] for row in rows] == ["", "chosen"]
    assert rows[1][1:] == ("iid", "gaussian", "1.5", "128", "0.4000", "2", "0.5")
