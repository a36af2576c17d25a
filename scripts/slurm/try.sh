#!/usr/bin/env bash
# Tries submit.sh on a real Slurm of one node, which this script starts and stops, with
# a tiny reproduction. It needs Debian's packages slurm-wlm and munge, and root.
#
#   scripts/slurm/try.sh [flags of bench reproduce]
#
# BENCH: the program, scripts/bench's unless set. It ends with the outcome's tables.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bench=${BENCH:-$here/../bench}
bench=$(realpath "$bench")
export BENCH=$bench
for program in munged slurmctld slurmd sbatch; do
    command -v "$program" >/dev/null || { echo "$program is not there: apt-get install slurm-wlm munge" >&2; exit 1; }
done

work=$(mktemp -d "${TMPDIR:-/tmp}/slurm-try.XXXXXX")
chmod 755 "$work"
node=$(hostname -s)
pids=()
stop() {
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
    echo "stopped; logs and the outcome are in $work"
}
trap stop EXIT

head -c 1024 /dev/urandom >"$work/munge.key"
chmod 400 "$work/munge.key"
munged --foreground --force --key-file="$work/munge.key" --socket="$work/munge.socket" --pid-file="$work/munge.pid" \
    --seed-file="$work/munge.seed" --log-file="$work/munge.log" 2>"$work/munge.err" &
pids+=($!)

mkdir -p "$work/state" "$work/spool"
cat >"$work/slurm.conf" <<CONF
ClusterName=try
SlurmctldHost=$node(127.0.0.1)
SlurmUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$work/munge.socket
CryptoType=crypto/munge
SlurmctldPort=16817
SlurmdPort=16818
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
ReturnToService=2
MinJobAge=3600
NodeName=$node NodeAddr=127.0.0.1 CPUs=$(nproc) RealMemory=$(awk '/MemTotal/ { print int($2 / 1024 * 0.9) }' /proc/meminfo) State=UNKNOWN
PartitionName=all Nodes=$node Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF=$work/slurm.conf
for _ in $(seq 50); do [ -S "$work/munge.socket" ] && break; sleep 0.1; done
slurmctld -D -f "$SLURM_CONF" >"$work/slurmctld.log" 2>&1 &
pids+=($!)
slurmd -D -N "$node" -f "$SLURM_CONF" >"$work/slurmd.log" 2>&1 &
pids+=($!)
for _ in $(seq 100); do sinfo -h -o %T 2>/dev/null | grep -q idle && break; sleep 0.2; done
sinfo

mkdir "$work/reproduction"
cd "$work/reproduction"
flags=("$@")
if [ ${#flags[@]} -eq 0 ]; then
    flags=(--preset smoke --seeds 0-1 --variants 'ppo,memopd' --horizon q2 --tasks 4 --timed-tasks 1 --trajectories 2
        --audits teacher --steps 2 --train prompts-per-step=4)
fi
"$here/submit.sh" "${flags[@]}" 2>submit.log
squeue
while [ -n "$(squeue -h)" ]; do sleep 1; done
scontrol show job | awk '/^JobId/ { id = $1; name = $NF } /JobState/ { print id, name, $1 }'

# All is done: another bench reproduce begins nothing.
"$bench" reproduce "${flags[@]}" 2>again.log
if grep '^begin ' again.log; then
    echo "a part was left over" >&2
    exit 1
fi
ls results/*/tables/tables.md
