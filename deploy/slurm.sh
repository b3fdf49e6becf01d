#!/bin/bash
#SBATCH --job-name=sotto
#SBATCH --array=0-7
#SBATCH --cpus-per-task=2
#SBATCH --mem=2G
#SBATCH --time=02:00:00
#SBATCH --requeue
set -euo pipefail
experiment=${SOTTO_EXPERIMENT:-experiment.yaml}
out=${SOTTO_OUT:-shards}
sotto=${SOTTO:-sotto}
shard=$((SLURM_ARRAY_TASK_ID - ${SLURM_ARRAY_TASK_MIN:-0})) # shards count from 0, arrays from where you like

exec "$sotto" run "$experiment" \
  --shard "$shard/$SLURM_ARRAY_TASK_COUNT" \
  --out "$out/$shard" \
  --workers "${SLURM_CPUS_PER_TASK:-1}" \
  --resume
