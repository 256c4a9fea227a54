#!/bin/sh
# Sets up the lab: QEMU (from version 9 on it runs bit for bit the same twice), Debian's kernels, with their headers our
# own modules, a static busybox, and a small program that makes a disk of the guest slow. All but QEMU and the headers
# are kept in a folder and never installed: $MMTWIN_LAB, else $XDG_CACHE_HOME/mmtwin/lab, else ~/.cache/mmtwin/lab.
# Packages that are installed are printed; apt's sources stay as they are (tools/packages.sh). What is there already is
# kept, so running it again costs nothing; to get a newer kernel, remove its folder first. Ends with status 1 when
# something is missing.
#
# $KERNELS has the kernels, by default "6.1 6.12". 7.x is the newest that begins with 7. One that the machine's release
# of Debian does not have is of the backports of $newer; its modules are built with the compiler of that release, which
# is unpacked beside the kernels (350 MB) and runs in a namespace of its own.
set -eu
cd "$(dirname "$0")/.."
lab=${MMTWIN_LAB:-${XDG_CACHE_HOME:-$HOME/.cache}/mmtwin/lab}
kernels=${KERNELS:-6.1 6.12}
newer=trixie
exact=9

say() { echo "lab: $*"; }
missing=0
lacking() { say "missing: $*" >&2; missing=1; }
qemu_version() { qemu-system-x86_64 --version 2>/dev/null | sed -n 's/.*version \([0-9]*\)\..*/\1/p' | head -n 1; }

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

# Downloads packages and unpacks them into $part. The folder is open to apt's own user, which downloads as nobody else.
unpack() { # package...
    (umask 022 && mkdir -p "$part/deb")
    for package in "$@"; do
        (cd "$part/deb" && download "$package") || return 1
    done
    for package in "$part/deb/"*.deb; do
        dpkg -x "$package" "$part/files" || return 1
    done
}

# The folder in which something is unpacked becomes its own only when it is whole.
part=$lab/part.$$
trap 'rm -rf "$part"' EXIT
trap 'exit 1' INT TERM

# The beginning of versions as a regular expression: 7 is 7[.].
literal() { echo "${1%.}." | sed 's/[.]/[.]/g'; }

# Version of the newest kernel of a release in the suites of now: 6.12.1-cloud-amd64. Empty: there is none.
version_of() { # release
    update
    with_options apt-cache pkgnames linux-image- |
        sed -n "s/^linux-image-\($(literal "${1%.x}").*-cloud-amd64\)\$/\1/p" |
        sort -V | tail -n 1
}

# The release that 7.x stands for: 7.3. One that is there is kept.
resolve() { # release
    case $1 in
    *.x) ;;
    *) echo "$1"; return ;;
    esac
    have=$(ls "$lab/kernels" 2>/dev/null | grep -x "$(literal "${1%.x}")[0-9]*" | sort -V | tail -n 1)
    [ -n "$have" ] || have=$(use_backports "$newer" && version_of "$1" | cut -d . -f 1,2)
    echo "${have:-$1}"
}

set_up_kernel() { # release
    to=$lab/kernels/$1
    [ ! -s "$to/vmlinuz" ] || return 0
    suite=
    version=$(version_of "$1")
    if [ -z "$version" ] && use_backports "$newer"; then
        suite=$suites
        version=$(version_of "$1")
    fi
    if [ -z "$version" ]; then
        suites=
        lacking "kernel $1: no package of it in apt's lists"
        return 0
    fi
    packages=linux-image-$version
    # Newer ones have the kernel, its modules and its configuration in packages of their own.
    for also in "linux-binary-$version" "linux-modules-$version" "linux-base-$version"; do
        ! with_options apt-cache show "$also" >/dev/null 2>&1 || packages="$packages $also"
    done
    # shellcheck disable=SC2086 # a list of packages
    if ! unpack $packages; then
        rm -rf "$part"
        suites=
        lacking "kernel $1: could not download $packages"
        return 0
    fi
    suites=
    mkdir -p "$lab/kernels" "$part/kernel"
    for modules in "$part/files/lib/modules/$version" "$part/files/usr/lib/modules/$version"; do
        [ ! -d "$modules" ] || mv "$modules" "$part/kernel/modules"
    done
    for file in vmlinuz config; do
        for from in "$part/files/boot/$file-$version" "$part/kernel/modules/$file"; do
            [ ! -e "$from" ] || mv "$from" "$part/kernel/$file"
        done
    done
    echo "$version" >"$part/kernel/version"
    [ -z "$suite" ] || echo "$suite" >"$part/kernel/suite"
    rm -rf "$to"
    mv "$part/kernel" "$to"
    rm -rf "$part"
    say "kernel $1 is $version"
}

# Headers, with the compiler: of the machine's release they are installed; those of $newer are unpacked into a root of
# their own, which has all that they need, because their programs do not run with the machine's libraries.
set_up_headers() { # release
    [ -s "$lab/kernels/$1/version" ] || return 0
    version=$(cat "$lab/kernels/$1/version")
    if [ -e "$lab/kernels/$1/suite" ]; then
        set_up_root "$lab/root-$1" "$version" || lacking "the compiler and headers of $newer, without which no module is built for $1"
    elif [ ! -e "/usr/src/linux-headers-$version/Makefile" ]; then
        install make gcc "linux-headers-$version" ||
            lacking "linux-headers-$version, without which the module mmtwin is not built for $1"
    fi
}

set_up_root() { # folder version
    [ ! -e "$1/usr/src/linux-headers-$2/Makefile" ] || return 0
    use_backports "$newer" || return 1
    (umask 022 && mkdir -p "$part/root" "$part/archives/partial")
    installed=$part/installed
    : >"$installed"
    update
    status=0
    with_options apt-get install -y --no-install-recommends --download-only -o Debug::NoLocking=1 \
        -o Dir::Cache::archives="$part/archives" "linux-headers-$2" bash binutils coreutils dash diffutils findutils gawk \
        grep make perl-base sed >"$own/install.log" 2>&1 || status=1
    suites=
    installed=
    if [ "$status" = 0 ]; then
        # Links of a merged root, which no package has.
        for name in bin lib lib64 sbin; do
            mkdir -p "$part/root/usr/$name"
            ln -s "usr/$name" "$part/root/$name"
        done
        mkdir -p "$part/root/proc"
        for package in "$part/archives/"*.deb; do
            dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink -C "$part/root" -f - || status=1
        done
        # What an alternative would link.
        ln -sf gawk "$part/root/usr/bin/awk"
        rm -rf "$1"
        [ "$status" != 0 ] || mv "$part/root" "$1"
    fi
    rm -rf "$part"
    return "$status"
}

# The module that page-loop, page-hog and vmalloc-test need, and that of slow disks. They are built in a folder of their
# own, without debug data.
build_module() { # release
    [ -s "$lab/kernels/$1/version" ] || return 0
    source=crates/lab/module
    to=$lab/kernels/$1/modules/extra/mmtwin_delay.ko
    version=$(cat "$lab/kernels/$1/version")
    headers=/usr/src/linux-headers-$version
    root=
    [ ! -e "$lab/kernels/$1/suite" ] || root=$lab/root-$1
    [ -e "$root$headers/Makefile" ] || return 0
    [ ! -s "$to" ] || [ -n "$(find "$source" -newer "$to")" ] || return 0
    if [ -n "$root" ]; then work=$root/module; else work=$part; fi
    rm -rf "$work"
    mkdir -p "$work" "$(dirname "$to")"
    cp "$source/"* "$work"
    if make_module >"$lab/module.log" 2>&1; then
        strip --strip-debug "$work"/*.ko
        mv "$work"/*.ko "$(dirname "$to")"
        say "built the modules mmtwin and mmtwin_delay for $version"
    else
        lacking "the modules mmtwin and mmtwin_delay for $1: $(tail -n 5 "$lab/module.log")"
    fi
    rm -rf "$work"
}

# In a root of its own the kernel's build needs /proc.
make_module() {
    if [ -z "$root" ]; then
        make -s -C "$headers" M="$work" modules
        return
    fi
    as_root=
    [ "$(id -u)" = 0 ] || as_root=--map-root-user
    unshare $as_root --mount --pid --fork --mount-proc="$root/proc" \
        chroot "$root" /usr/bin/env PATH=/usr/bin make -s -C "$headers" M=/module modules
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
kernels=$(for release in $kernels; do resolve "$release"; done)
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
