#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Install into an empty folder and build a program against the library as a user would: pkg-config, shared and static.
set -euo pipefail
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
passed=0
ok() { passed=$((passed + 1)); }
DESTDIR="$root" meson install -C "$TW_BUILD" --no-rebuild --quiet >/dev/null
prefix=$root/usr/local
[ -x "$prefix/bin/tokwatt" ] && [ -x "$prefix/bin/tokwattd" ] && ok
cat > "$root/use.c" <<'EOF'
#include <stdio.h>
#include <tokwatt/version.h>
int main(void) { return puts(tw_version()) < 0; }
EOF
pc=$(dirname "$(find "$prefix" -name tokwatt.pc)")
export PKG_CONFIG_PATH=$pc PKG_CONFIG_SYSROOT_DIR=$root
flags=$(pkg-config --cflags --libs tokwatt)
lib=$(dirname "$(find "$prefix" -name 'libtokwatt.so')")
san=${TW_SANITIZE:-}
# shellcheck disable=SC2086
cc $san "$root/use.c" $flags -o "$root/shared"
[ "$(LD_LIBRARY_PATH=$lib "$root/shared")" = "$("$TOKWATT" --version | cut -d' ' -f2)" ] && ok
# shellcheck disable=SC2086
cc $san "$root/use.c" -I"$prefix/include" "$(find "$prefix" -name libtokwatt.a)" -lm -o "$root/static"
[ "$("$root/static")" = "$(pkg-config --modversion tokwatt)" ] && ok
echo "$passed passed, $((3 - passed)) failed"
[ "$passed" = 3 ]
