#!/usr/bin/env bash
# Scheduler, workers and the fit in one allocation, for sites where jobs may not submit jobs:
#     sbatch jobs/clusters/slurm.sh 'train-*.h5' --out model.h5
# Whatever ended it, the same command goes on from the folder `saved`.
#SBATCH --job-name=streamkern
#SBATCH --ntasks=16
#SBATCH --cpus-per-task=1
#SBATCH --mem-per-cpu=4G
#SBATCH --time=04:00:00
#SBATCH --signal=B:TERM@60
#SBATCH --output=streamkern-%j.log
set -euo pipefail

file=$PWD/scheduler-$SLURM_JOB_ID.json
dask scheduler --scheduler-file "$file" --port 0 &
scheduler=$!
until [ -s "$file" ]; do sleep 1; done
# Of the memory of a task; what Python and Dask take beside it is in the plan.
srun dask worker --scheduler-file "$file" --nthreads 1 --memory-limit "${SLURM_MEM_PER_CPU}MiB" \
    --death-timeout 60 --no-dashboard &
# Slurm ends what is left in the allocation; the scheduler is told, so that it can say goodbye.
{ tail --pid=$$ --follow /dev/null; kill "$scheduler"; } &
# In the place of this shell, so that it hears the signal a minute before the end.
exec streamkern fit "$@" --scheduler-file "$file" --checkpoint saved
