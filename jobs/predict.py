"""Predict on a cluster: python jobs/predict.py --cluster cluster.yaml model.h5 new.h5."""

import argparse

import streamkern


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("data", nargs="+", help="HDF5 files with a dataset X")
    parser.add_argument("--cluster", help="cluster.yaml; by default a local cluster")
    parser.add_argument("--scheduler", help="address of a running scheduler")
    parser.add_argument("--scheduler-file", help="what it wrote with --scheduler-file")
    parser.add_argument("--out", default="predictions.h5")
    parser.add_argument("--force", action="store_true", help="replace an existing output")
    options = parser.parse_args()

    model = streamkern.load(options.model)
    source = streamkern.open_hdf5(options.data, y=None)
    with (
        streamkern.connect(
            cluster=options.cluster,
            scheduler=options.scheduler,
            scheduler_file=options.scheduler_file,
        ),
        streamkern.progress(),
    ):
        model.predict_to_hdf5(source, options.out, force=options.force)
    print(f"{source.n_samples:,} predictions in {options.out}")


if __name__ == "__main__":
    main()
