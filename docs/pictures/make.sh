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

# The fonts of this machine show in this one.
echo timeline
if command -v chromium > /dev/null; then
    page=$(mktemp --suffix .html)
    target/release/overspin run examples/ticket-overcommit.toml --set limit=500ms --json - |
        target/release/overspin report - --output "$page" --quiet
    chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1200,800 --virtual-time-budget=5000 \
        --screenshot="$PWD/docs/pictures/timeline.png" "file://$page" 2> /dev/null
    rm "$page"
else
    echo "no chromium: docs/pictures/timeline.png stays as it is"
fi
