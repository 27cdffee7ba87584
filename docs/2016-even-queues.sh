#!/bin/bash
# Lateness of workers under credit if run queues are as even as possible: docs/2016-schedbench-explained.md.
# N workers of each kind: 8 or 16. Without the line `affinity` it is the run of the experiment. Needs jq.
N=${1:-8}
{ cat <<'HOST'
name = "even"
limit = "10s"
to_the_limit = true
[host]
cores = 2
threads = 2
smt_permille = 455
scheduler = "credit-2016"
governor = { interval = "10ms", busy_permille = 1100, quiet_permille = 714 }
costs = { context_switch = "500ns", interrupt = "300ns" }
noise = { placement = "none" }
HOST
B="burnwait 10 300000 20 300000 10 300000 10 300000 10 300000 10 300000 30 300000"
for worker in "A:burnwait 70 200000" "B:$B"; do for i in $(seq 0 $((N - 1))); do cat <<DOMAIN
[[domain]]
name = "${worker%%:*}$i"
vcpus = 1
lock = "ticket"
affinity = "$((i % 4))"
kernel = { hz = 0, task_switch = 0, tick_work = 0 }
workload = { kind = "schedbench", worker = "${worker#*:}", rate = 350 }
DOMAIN
done; done; } > even.toml
overspin run even.toml --json even.json > even.txt
jq -c '.runs[0].outcome.domains | group_by(.name[:1])[] | [.[].tasks[].reports[1:][].max_delta / 1e9] | sort
  | [.[0], .[length * 5 / 100 | floor], .[length / 2 | floor], .[length * 95 / 100 | floor], .[-1]]' even.json
