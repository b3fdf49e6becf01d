#!/usr/bin/env bash
# Installs the deb of a release (make release) into an empty root, as root: what is in it runs there, with nothing
# beside it, opens a store that the program of testdata/v0 wrote, and leaves it when the package goes.
# Usage: try.sh out/release
set -euo pipefail
release=$(realpath "$1")
past=$(realpath "$(dirname "$0")/../../testdata/v0/sqlite/arms")
(cd "$release" && sha256sum --quiet -c SHA256SUMS)
root=$(mktemp -d)
serving=
trap '[ -z "$serving" ] || kill "$serving" 2>/dev/null || true; rm -rf "$root"' EXIT
mkdir -p "$root"/var/lib/dpkg/{info,updates} "$root"/{data,tmp}
: >"$root/var/lib/dpkg/status"
DPKG="dpkg --root=$root --force-script-chrootless --force-not-root --log=/dev/null"
$DPKG -i "$release"/*_amd64.deb
for file in usr/bin/sotto usr/lib/systemd/system/sotto.service usr/share/man/man1/sotto.1 \
  usr/share/bash-completion/completions/sotto usr/share/doc/sotto/{copyright,LICENSES.txt}; do
  test -s "$root/$file"
done
grep -q '^ExecStart=/usr/bin/sotto serve$' "$root/usr/lib/systemd/system/sotto.service"
version=$(chroot "$root" /usr/bin/sotto --version)
echo "$version"
grep -qE '^sotto v[0-9][^ ]* [0-9a-f]{40} go' <<<"$version" || { echo 'it does not say its version and commit' >&2; exit 1; }

gunzip -c "$past/running.db.gz" >"$root/data/sotto.db"
jq -rj .Mark "$past/running.json" >"$root/data/mark"
(umask 077; head -c 24 /dev/urandom | base64 | tr '+/' 'ab' >"$root/key")
chroot "$root" /usr/bin/sotto serve --data /data --listen 127.0.0.1:0 --admin-key-file /key >"$root/out" 2>"$root/err" &
serving=$!
for _ in $(seq 600); do
  at=$(sed -n 's/^listening on \([^,]*\),.*/\1/p' "$root/out")
  [ -z "$at" ] && kill -0 "$serving" 2>/dev/null || break
  sleep 0.1
done
[ -n "$at" ] || { cat "$root/err" >&2; exit 1; }
ask() { curl -sSf --max-time 60 -H "X-API-Key: $(cat "$root/key")" "$@"; }
lines() { ask "$at/v1/experiments/$name/transcript" | wc -l; }
name=$(ask "$at/v1/experiments" | jq -r '.experiments[].name')
[ "$(lines)" -ge "$(jq .Known.Lines "$past/running.json")" ] || { echo 'lines are lost' >&2; exit 1; }
ask -d '{"unit": "somebody new"}' "$at/v1/experiments/$name/decisions" | jq -e .arm
kill "$serving"
wait "$serving" || true
serving=
$DPKG -r sotto
test ! -e "$root/usr/bin/sotto"
test -s "$root/data/sotto.db"
