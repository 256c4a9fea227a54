#!/bin/sh
# Sets up the lab: QEMU (from version 9 on it runs bit for bit the same twice), Debian's kernels 6.1 and 6.12, their
# headers and with them our own module, a static busybox, and a small program that makes a disk of the guest slow. All
# but QEMU and the headers are kept in a folder and never installed: $MMTWIN_LAB, else $XDG_CACHE_HOME/mmtwin/lab, else
# ~/.cache/mmtwin/lab. Packages that are installed are printed; apt's sources stay as they are (tools/packages.sh). What
# is there already is kept, so running it again costs nothing; to get a newer kernel, remove
# its folder first. Ends with status 1 when something is missing.
set -eu
cd "$(dirname "$0")/.."
lab=${MMTWIN_LAB:-${XDG_CACHE_HOME:-$HOME/.cache}/mmtwin/lab}
kernels="6.1 6.12"
exact=9

say() { echo "lab: $*"; }
missing=0
lacking() { say "missing: $*" >&2; missing=1; }
qemu_version() { qemu-system-x86_64 --version 2>/dev/null | sed -n 's/.*version \([0-9]*\)\..*/\1/p' | head -n 1; }
codename() { (. /etc/os-release && echo "${VERSION_CODENAME:-}"); }

set_up_qemu() {
    have=$(qemu_version)
    [ "${have:-0}" -lt "$exact" ] || return 0
    if [ "$(codename)" = bookworm ] && use_backports bookworm; then
        install -t bookworm-backports qemu-system-x86 || true
        suites=
    elif [ -z "$have" ]; then
        install qemu-system-x86 || true
    fi
    have=$(qemu_version)
    if [ -z "$have" ]; then
        lacking "qemu-system-x86_64: install the package qemu-system-x86"
    elif [ "$have" -lt "$exact" ]; then
        lacking "QEMU $exact or newer for --mode exact: this is $have"
    fi
}

# Downloads a package and unpacks it into $part. The folder is open to apt's own user, which downloads as nobody else.
unpack() { # package
    (umask 022 && mkdir -p "$part/deb")
    (cd "$part/deb" && download "$1") && dpkg -x "$part/deb/"*.deb "$part/files"
}

# The folder in which something is unpacked becomes its own only when it is whole.
part=$lab/part.$$
trap 'rm -rf "$part"' EXIT
trap 'exit 1' INT TERM

set_up_kernel() { # release
    to=$lab/kernels/$1
    [ ! -s "$to/vmlinuz" ] || return 0
    meta=linux-image-$1-cloud-amd64
    update
    with_options apt-cache show "$meta" >/dev/null 2>&1 || meta=linux-image-cloud-amd64
    package=$(with_options apt-cache depends "$meta" 2>/dev/null | sed -n 's/.*Depends: \(linux-image-.*\)/\1/p' | head -n 1)
    version=${package#linux-image-}
    case $version in
    "$1".*) ;;
    *) lacking "kernel $1: no package of it in apt's lists"; return 0 ;;
    esac
    if ! unpack "$package"; then
        rm -rf "$part"
        lacking "kernel $1: could not download $package"
        return 0
    fi
    mkdir -p "$lab/kernels" "$part/kernel"
    mv "$part/files/boot/vmlinuz-$version" "$part/kernel/vmlinuz"
    mv "$part/files/boot/config-$version" "$part/kernel/config"
    for modules in "$part/files/lib/modules/$version" "$part/files/usr/lib/modules/$version"; do
        [ ! -d "$modules" ] || mv "$modules" "$part/kernel/modules"
    done
    echo "$version" >"$part/kernel/version"
    rm -rf "$to"
    mv "$part/kernel" "$to"
    rm -rf "$part"
    say "kernel $1 is $version"
}

set_up_headers() { # release
    [ -s "$lab/kernels/$1/version" ] || return 0
    version=$(cat "$lab/kernels/$1/version")
    [ ! -e "/usr/src/linux-headers-$version/Makefile" ] || return 0
    install make gcc "linux-headers-$version" ||
        lacking "linux-headers-$version, without which the module mmtwin is not built for $1"
}

# The module that page-loop, page-hog and vmalloc-test need, and that of slow disks. They are built in a folder of their
# own, without debug data.
build_module() { # release
    [ -s "$lab/kernels/$1/version" ] || return 0
    source=crates/lab/module
    to=$lab/kernels/$1/modules/extra/mmtwin_delay.ko
    version=$(cat "$lab/kernels/$1/version")
    headers=/usr/src/linux-headers-$version
    [ -e "$headers/Makefile" ] || return 0
    [ ! -s "$to" ] || [ -n "$(find "$source" -newer "$to")" ] || return 0
    mkdir -p "$part" "$(dirname "$to")"
    cp "$source/"* "$part"
    if make -s -C "$headers" M="$part" modules >"$part/log" 2>&1; then
        strip --strip-debug "$part"/*.ko
        mv "$part"/*.ko "$(dirname "$to")"
        say "built the modules mmtwin and mmtwin_delay for $version"
    else
        lacking "the modules mmtwin and mmtwin_delay for $1: $(tail -n 5 "$part/log")"
    fi
    rm -rf "$part"
}

set_up_busybox() {
    [ ! -x "$lab/busybox" ] || return 0
    if ! unpack busybox-static; then
        rm -rf "$part"
        lacking "busybox: could not download busybox-static"
        return 0
    fi
    for from in "$part/files/bin/busybox" "$part/files/usr/bin/busybox"; do
        [ ! -x "$from" ] || mv "$from" "$lab/busybox"
    done
    rm -rf "$part"
}

build_dm_delay() {
    source=crates/lab/guest/dm-delay.c
    [ ! -x "$lab/dm-delay" ] || [ "$source" -nt "$lab/dm-delay" ] || return 0
    command -v gcc >/dev/null || install gcc libc6-dev || true
    gcc -static -Os -s -Wall -o "$lab/dm-delay" "$source" ||
        lacking "dm-delay, for disks that are not synchronous: it needs gcc and libc6-dev"
}

# The program that runs a workload in the guest, static because the guest has no libraries.
build_agent() {
    command -v cargo >/dev/null || { lacking "mmtwin-agent: it needs cargo"; return 0; }
    target=x86_64-unknown-linux-gnu
    if RUSTFLAGS="-C target-feature=+crt-static" cargo build --quiet --profile golden \
        --package mmtwin-host --bin mmtwin-agent --target "$target" --target-dir target/agent; then
        # By what is in it: one built elsewhere may be newer and not this tree's.
        built=target/agent/$target/golden/mmtwin-agent
        cmp -s "$built" "$lab/mmtwin-agent" || { cp "$built" "$lab/mmtwin-agent.$$" && mv "$lab/mmtwin-agent.$$" "$lab/mmtwin-agent"; }
    else
        lacking "mmtwin-agent: it could not be built"
    fi
}

if ! command -v apt-get >/dev/null; then
    lacking "apt-get: without it, install QEMU and give the lab a bzImage with its modules, and a static busybox as $lab/busybox"
    exit 1
fi
[ "$(uname -m)" = x86_64 ] || { lacking "an x86_64 machine, whose kernels these are"; exit 1; }
mkdir -p "$lab"
own=$lab/apt
. tools/packages.sh
earlier=/etc/apt/sources.list.d/mmtwin-backports.sources
[ ! -e "$earlier" ] || say "an earlier version of this script added $earlier; it is not used any more and can be removed"
set_up_qemu
set_up_busybox
for release in $kernels; do
    set_up_kernel "$release"
    set_up_headers "$release"
    build_module "$release"
done
build_dm_delay
build_agent
command -v mkfs.ext4 >/dev/null || install e2fsprogs ||
    lacking "mkfs.ext4 (package e2fsprogs), for scenarios with files"

if [ "$missing" = 0 ]; then
    say "$(qemu-system-x86_64 --version | head -n 1); $(for release in $kernels; do
        printf 'kernel %s; ' "$(cat "$lab/kernels/$release/version")"
    done)in $lab"
fi
exit "$missing"
