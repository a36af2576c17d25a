#!/usr/bin/env bash
# Submits a reproduction to Slurm: an array job a stage, each after the one before it.
#
#   scripts/slurm/submit.sh --preset mini --seeds 0-4
#
# The flags are those of bench reproduce. Run it in a folder that all nodes share, whose
# file system has flock across nodes (the parts' locks). sbatch takes partition, account
# and time limit from SBATCH_PARTITION, SBATCH_ACCOUNT and SBATCH_TIMELIMIT. A stage
# begins even where a part of the one before failed: what hangs on that part then refuses
# to begin, the rest goes on, and submitting again does what is missing. What measures
# time runs one at a time on a node of its own, so that the nodes should be alike.
#
# BENCH: the program, scripts/bench's unless set. ARRAY_LIMIT: parts at a time, empty: all.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
# The kernels of a BLAS are part of what makes runs repeatable.
# shellcheck source=/dev/null
if [ -f "$root/.setup/env.sh" ]; then . "$root/.setup/env.sh"; fi
bench=${BENCH:-$root/scripts/bench}

logs=slurm
mkdir -p "$logs"
list=$logs/parts.tsv
"$bench" reproduce "$@" --list >"$list"

after=
for stage in $(awk -F '\t' '/^[0-9]/ { print $1 }' "$list" | uniq); do
    n=$(awk -F '\t' -v stage="$stage" '$1 == stage' "$list" | wc -l)
    flags=(--parsable --job-name="reproduce-$stage" --output="$logs/%x.%a.%A.log")
    limit=${ARRAY_LIMIT:+%$ARRAY_LIMIT}
    if awk -F '\t' -v stage="$stage" '$1 == stage && $2 == "alone" { found = 1 } END { exit !found }' "$list"; then
        flags+=(--exclusive)
        limit=%1
    fi
    if [ -n "$after" ]; then flags+=(--dependency="afterany:$after"); fi
    after=$(sbatch "${flags[@]}" --array="1-$n$limit" "$here/part.sbatch" "$list" "$stage")
    after=${after%%;*}
    echo "stage $stage: $n parts, job $after"
done
