#!/bin/sh
# Compares what creating mutexes costs without the library, with it, and with older versions of it.
#
#   creation.sh RUNS LOCK LIBRARY...     for example: creation.sh 15 mutex target/dist/liboverspin_preload.so
#
# All variants run in turn, RUNS times. Prints medians. Give the libraries by different file names.
set -eu
runs=$1 lock=$2
shift 2
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
cc -O2 -pthread -o "$folder/creation" "$(dirname "$0")/creation.c"

# Runs one variant; appends `VARIANT WHAT PART NUMBER` to the results.
one() {
    name=$1
    shift
    for what in "time 1" "time 2" "time 4" "memory 1000000"; do
        # shellcheck disable=SC2086
        env "$@" "$folder/creation" $what | sed "s|^|$name $(echo "$what" | tr ' ' '-') |" >> "$folder/results"
    done
}

for _ in $(seq "$runs"); do
    one without OVERSPIN_LOCK=
    for library in "$@"; do
        one "$(basename "$library")" OVERSPIN_LOCK="$lock" LD_PRELOAD="$(realpath "$library")"
    done
done

sort -k1,3 -k4n "$folder/results" | awk '
    { key = $1 " " $2 " " $3 }
    key != last { if (n) print last, v[int((n + 1) / 2)]; n = 0; last = key }
    { v[++n] = $4 }
    END { print last, v[int((n + 1) / 2)] }
' | sort -k2,3 -k1,1 | column -t
uptime
