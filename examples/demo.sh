#!/bin/sh
# The main job in a minute: read a definition, prove what it does, find a mistake before it runs.
set -eu
cd "$(dirname "$0")"
pawl=${PAWL:-pawl}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

say() { printf '\n'; printf '%s\n' "$@"; }
show() { printf '\n  $ pawl %s\n' "$*"; "$pawl" "$@"; }

say "1. A workflow is a file. This one reserves stock, then charges a card:" ""
sed 's/^/    /' order.yaml
show check order.yaml

say "2. A scenario says what must happen when the card is refused. It runs in virtual time," \
  "   and again with a crash before and after every commit; each run has to end the same way:"
show test order.scenario.yaml --crash-everywhere

say "3. A mistake is found before anything runs, with its place and a way out:"
sed 's/retryPolicy/retryPolcy/' order.yaml >"$scratch/order.yaml"
cd "$scratch"
refused=0
show check order.yaml || refused=$?
cd "$OLDPWD"
[ "$refused" = 3 ] || { say "The mistake should have been refused with exit code 3, not $refused."; exit 1; }

say "4. The rules of the engine are written as scenarios too, each in a file of its own. All of them:"
printf '\n  $ pawl test scenarios --crash-everywhere\n'
"$pawl" test scenarios --crash-everywhere >"$scratch/rules" || { cat "$scratch/rules"; exit 1; }
tail -n 1 "$scratch/rules"

say "That was the demo. Next: README.md, the files in examples/, and make test."
