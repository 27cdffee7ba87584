#!/usr/bin/env bash
# Makes every picture of README.md and docs/ again that shows simulated results; real-overcommit.svg and three-worlds.svg are
# measured, by the commands in their examples. Takes some minutes on two
# cores, besides the build. The same model gives the same bytes, so `git diff docs/pictures` afterwards shows what a change did.
set -euo pipefail
cd "$(dirname "$0")/../.."
cargo build --release --quiet -p overspin -p overspin-lab --bin overspin --example preemption_picture

for experiment in experiments/*.toml; do
    name=$(basename "$experiment" .toml)
    echo "$name"
    pictures=(--svg "docs/pictures/$name.svg")
    [ "$name" = 2005-preemption-notification ] && pictures+=(--curves "docs/pictures/$name-curves.svg")
    # It has no published figures.
    [ "$name" = boost-space ] && pictures=(--curves "docs/pictures/$name.svg")
    target/release/overspin reproduce "$experiment" --quiet --no-report "${pictures[@]}"
done
echo overcommit-curves
target/release/overspin sweep examples/overcommit-curves.toml --seeds 5 --quiet --no-report --svg docs/pictures/overcommit-curves.svg
echo preemption
target/release/examples/preemption_picture > docs/pictures/preemption.svg

# The fonts of this machine show in these two.
echo timeline, live
if command -v chromium > /dev/null; then
    # pictured FILE SIZE ADDRESS
    pictured() {
        chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size="$2" --virtual-time-budget=5000 \
            --screenshot="$PWD/docs/pictures/$1" "$3" 2> /dev/null
    }
    page=$(mktemp --suffix .html)
    target/release/overspin run examples/ticket-overcommit.toml --set limit=500ms --json - |
        target/release/overspin report - --output "$page" --quiet
    pictured timeline.png 1200,800 "file://$page"
    # The live page: a ticket lock beside one that sleeps.
    : > "$page"
    target/release/overspin serve --quiet > "$page" &
    server=$!
    until grep -q http "$page"; do sleep 0.1; done
    pictured live.png 1400,1050 "$(cat "$page")?scenario=examples/ticket-overcommit.toml&set=limit=500ms&other=limit=500ms&other=domain.guest.lock=xen-pv&beside=yes"
    kill "$server"
    wait "$server"
    rm "$page"
else
    echo "no chromium: docs/pictures/timeline.png and live.png stay as they are"
fi
