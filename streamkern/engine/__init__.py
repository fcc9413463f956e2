"""One Dask graph for each pass: shards, compute slots, retries, partial sums, and clusters."""
