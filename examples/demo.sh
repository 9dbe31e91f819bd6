#!/bin/sh
# The main job in half a minute: read a definition, prove what it does, then run for real.
set -eu
cd "$(dirname "$0")"
pawl=${PAWL:-pawl}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

say() { printf '\n'; printf '%s\n' "$@"; }
show() { printf '\n  $ pawl %s\n' "$*"; "$pawl" "$@"; }

say "A workflow is a file. This one reserves stock, then charges a card:" ""
sed 's/^/    /' order.yaml
show check order.yaml

say "A mistake is found before anything runs, with its place and a way out:"
sed 's/retryPolicy/retryPolcy/' order.yaml >"$scratch/order.yaml"
cd "$scratch"
refused=0
show check order.yaml || refused=$?
cd "$OLDPWD"
[ "$refused" = 3 ] || { say "The mistake should have been refused with exit code 3, not $refused."; exit 1; }

say "A scenario says what must happen when the card is refused. It runs in virtual time," \
  "and again with a crash before and after every commit; each run has to end the same way:"
show test order.scenario.yaml --crash-everywhere

say "And now for real, on a store of its own: undo, a human's decision, a kill, and the proof."
show demo
