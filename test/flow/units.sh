#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The systemd units: understood without a word by systemd, and exposed less than 2.0 by its own count.
set -uo pipefail
command -v systemd-analyze >/dev/null || { echo "skipped: no systemd-analyze here"; exit 77; }
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
passed=0 failed=0
ok() { if [ "$1" = 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAILED $2"; fi; }
cp "$TW_SOURCE"/packaging/systemd/*.socket "$top"
for unit in tokwattd tokwatt-capd; do # the programs as they lie in the build folder, since verify wants to see them
    sed -E "s#^(Exec[A-Za-z]*=)/[^ ]*/(tokwatt[a-z-]*)#\1$TW_BUILD/app/\2/\2#" "$TW_BUILD/packaging/$unit.service" > "$top/$unit.service"
done
said=$(cd "$top" && SYSTEMD_UNIT_PATH=$top: systemd-analyze verify --man=no ./*.service ./*.socket 2>&1)
rc=$?
echo "$said"
ok $rc "systemd-analyze verify exits with $rc"
[ -z "$said" ]; ok $? "systemd-analyze verify has something to say"
for unit in tokwattd tokwatt-capd; do
    line=$(systemd-analyze security --offline=true --no-pager "$top/$unit.service" 2>&1 | grep -a "Overall exposure level")
    echo "$line"
    score=$(echo "$line" | grep -oE '[0-9]+\.[0-9]+' | head -1)
    awk -v s="${score:-10}" 'BEGIN { exit !(s < 2.0) }'; ok $? "$unit.service is exposed ${score:-unknown}, not below 2.0"
done
# What the helper needs and nothing else, by name.
grep -q '^CapabilityBoundingSet=CAP_SYS_ADMIN$' "$top/tokwatt-capd.service"; ok $? "the helper has another capability"
grep -q '^CapabilityBoundingSet=$' "$top/tokwattd.service" && grep -q '^User=tokwatt$' "$top/tokwattd.service"
ok $? "the daemon has a privilege"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
