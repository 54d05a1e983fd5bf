#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# CPU and memory of tokwattd on a simulated site of 64 GPUs, once a second, with page and API and one reader a second: while it
# watches, and in the hold of an event, when it looks ten times a second. Wanted: under 1 % of a core and 32 MB.
# usage: bench/daemon.sh [SECONDS], TOKWATTD in the environment or build/tokwattd
set -eu
seconds=${1:-20}
log=$(mktemp)
"${TOKWATTD:-build/tokwattd}" --source sim:seed=1,gpus=64 --listen 127.0.0.1:0 2>"$log" &
pid=$!
trap 'kill $pid 2>/dev/null || true; rm -f "$log"' EXIT
at=
while [ -z "$at" ]; do
    sleep 0.1
    at=$(sed -n 's|.*page at http://||p' "$log")
done
ticks() { cut -d' ' -f14,15 "/proc/$pid/stat" | tr ' ' '+'; }
kb() { sed -n "s/^$1:[^0-9]*\([0-9]*\).*/\1/p" "/proc/$pid/status"; }
measure() {
    a=$(($(ticks)))
    i=0
    while [ $i -lt "$seconds" ]; do
        sleep 1
        curl -s -o /dev/null "http://$at/v1/snapshot"
        i=$((i + 1))
    done
    b=$(($(ticks)))
    awk -v d=$((b - a)) -v hz="$(getconf CLK_TCK)" -v s="$seconds" -v w="$1" -v m="$(kb VmRSS)" -v p="$(kb VmHWM)" \
        'BEGIN { printf "tokwattd, 64 simulated GPUs at 1 Hz, twins beside, %s, %d s: %.2f %% of a core, resident %.1f MB, at most %.1f MB\n", w, s, 100 * d / hz / s, m / 1024, p / 1024 }'
}
sleep 5
measure "watching"
curl -s -o /dev/null -X POST -H 'Content-Type: application/json' -d '{"cut_frac":0.3,"for_s":600}' "http://$at/v1/events"
sleep 45
measure "in a hold"
