"""Fit a model on a cluster: python jobs/train.py --cluster cluster.yaml 'train-*.h5'."""

import argparse

import streamkern


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="+", help="HDF5 files with datasets X and y")
    parser.add_argument("--cluster", help="cluster.yaml; by default a local cluster")
    parser.add_argument("--scheduler", help="address of a running scheduler")
    parser.add_argument("--scheduler-file", help="what it wrote with --scheduler-file")
    parser.add_argument("--out", default="model.h5")
    parser.add_argument("--components", type=int, default=2048)
    parser.add_argument("--tune", action="store_true", help="choose the length scale first")
    parser.add_argument("--force", action="store_true", help="replace an existing output")
    options = parser.parse_args()

    source = streamkern.open_hdf5(options.data)
    model = streamkern.RandomFeatureRidge(n_components=options.components)
    with (
        streamkern.connect(
            cluster=options.cluster,
            scheduler=options.scheduler,
            scheduler_file=options.scheduler_file,
        ) as client,
        streamkern.progress(),
    ):
        print(f"dashboard: {client.dashboard_link}")
        (model.tune if options.tune else model.fit)(source)
    model.save(options.out, force=options.force)
    report = model.report_
    print(f"{report['rows']:,} rows in {report['seconds']['total']:.1f} s, {options.out} written")


if __name__ == "__main__":
    main()
