#!/bin/sh
# Packages a built mmtwin with its man pages and shell completions: a .deb and a .tar.zst in target/dist.
# Built twice of one commit, they are the same to the byte: all times are the commit's, or SOURCE_DATE_EPOCH.
# usage: dist.sh PROGRAM
set -eu
program=$(realpath "$1")
cd "$(dirname "$0")/.."
umask 022
version=$("$program" --version | cut -d ' ' -f 2)
architecture=$(dpkg --print-architecture)
name=mmtwin-$version-$(uname -m)-linux
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH

dist=target/dist
rm -rf "$dist"
root=$dist/root
share=$root/usr/share
mkdir -p "$root/usr/bin" "$root/usr/lib/systemd/system" "$share/man/man1" "$share/doc/mmtwin" \
    "$share/bash-completion/completions" "$share/zsh/vendor-completions" "$share/fish/vendor_completions.d"
cp "$program" "$root/usr/bin/mmtwin"
strip "$root/usr/bin/mmtwin"
"$program" man "$share/man/man1"
gzip -9n "$share/man/man1"/*.1
"$program" completions bash >"$share/bash-completion/completions/mmtwin"
"$program" completions zsh >"$share/zsh/vendor-completions/_mmtwin"
"$program" completions fish >"$share/fish/vendor_completions.d/mmtwin.fish"
# Not enabled: what to keep and when to write it out is for whoever runs the machine to say.
cp tools/mmtwin-flight.service "$root/usr/lib/systemd/system"
cp README.md LICENSE-MIT LICENSE-APACHE "$share/doc/mmtwin"

# For any distribution: unpack it in / or in ~/.local.
mkdir "$dist/$name"
cp -a "$root/usr/." "$dist/$name"
tar --create --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
    --directory "$dist" "$name" | zstd --quiet -19 -o "$dist/$name.tar.zst"

cat "$share/doc/mmtwin/LICENSE-MIT" "$share/doc/mmtwin/LICENSE-APACHE" >"$share/doc/mmtwin/copyright"
rm "$share/doc/mmtwin"/LICENSE-*
mkdir "$root/DEBIAN"
cat >"$root/DEBIAN/control" <<END
Package: mmtwin
Version: $version
Architecture: $architecture
Maintainer: The mmtwin maintainers <maintainers@invalid>
Section: utils
Priority: optional
Installed-Size: $(du -sk "$root/usr" | cut -f 1)
Description: how Linux manages memory on NUMA machines
 mmtwin records, explains, simulates and predicts how Linux manages memory on
 NUMA machines: from kernel traces and counters, on real kernels in QEMU, and on
 a simulated kernel for any machine.
END
find "$root" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group --build -Zxz "$root" "$dist/mmtwin_${version}_$architecture.deb" >/dev/null
rm -rf "$root" "${dist:?}/$name"
ls -l "$dist"
