#!/bin/sh
# Builds trimmed kernels for the lab from Debian's linux-source packages, in pairs: one of them as it is, in the other
# a published change undone, so that a change can be seen on real kernels from before to after. Each change is a file
# tools/variants/NAME.sh, which says what is edited; the configuration of all is tools/variants/lab.config, and places
# in the finished code that become events are in tools/variants/RELEASE.probes. They are put beside the lab's other
# kernels: $MMTWIN_LAB/kernels (see tools/lab.sh). A pair is of one source. What is there already and was made from the
# same files is kept, and what was interrupted goes on where it was; sources are removed at the end, the logs are
# $MMTWIN_LAB/build/*.log. Ends with status 1 when something is missing.
# usage: lab-variants.sh [NAME...]     without names all changes
set -eu
cd "$(dirname "$0")/.."
here=$PWD/tools/variants
lab=${MMTWIN_LAB:-${XDG_CACHE_HOME:-$HOME/.cache}/mmtwin/lab}
build=$lab/build
export KBUILD_BUILD_TIMESTAMP='2026-01-01' KBUILD_BUILD_USER=mmtwin KBUILD_BUILD_HOST=lab LC_ALL=C

say() { echo "lab-variants: $*"; }
give_up() { say "$*" >&2; exit 1; }

# Programs and headers that building a kernel needs.
needs="bc binutils bison cpio flex gcc libc6-dev libelf-dev libssl-dev make perl xz-utils"
set_up_tools() {
    lack=
    for package in $needs; do
        is_installed "$package" || lack="$lack $package"
    done
    [ -n "$lack" ] || return 0
    # shellcheck disable=SC2086 # a list of packages
    install $lack || give_up "building kernels needs the packages$lack"
}

# The newest source of a release that the suite of its kernel has.
version_of() { with_options apt-cache policy "linux-source-$1" 2>/dev/null | sed -n 's/ *Candidate: \([^(].*\)/\1/p'; }

# What a kernel was made from: two are equal if these are.
recipe() { # base version [change]
    echo "linux-source-$1 $2"
    of_release=$here/$1.probes
    [ -e "$of_release" ] || of_release=
    # shellcheck disable=SC2086 # a file or none
    cat "$here/lab.config" "$here/edit.pl" $of_release ${3:+"$here/$3.sh"} | sha256sum | cut -d ' ' -f 1
}

is_made() { # name base version [change]
    [ -s "$lab/kernels/$1/vmlinuz" ] || return 1
    [ "$(recipe "$2" "$3" ${4:+"$4"})" = "$(cat "$lab/kernels/$1/recipe" 2>/dev/null)" ]
}

# The source of a release is put into $tree. Edited files have their first form beside them.
unpack() { # base version
    if [ "$(cat "$tree/.mmtwin" 2>/dev/null)" != "$2" ]; then
        say "unpacking linux-source-$1 $2"
        rm -rf "$tree" "$tree.part"
        (umask 022 && mkdir -p "$tree.part/deb" "$tree.part/tree")
        (cd "$tree.part/deb" && download "linux-source-$1=$2") ||
            give_up "could not download linux-source-$1: $own/download.log"
        dpkg-deb --fsys-tarfile "$tree.part/deb/"*.deb | tar -xO "./usr/src/linux-source-$1.tar.xz" |
            tar -xJ -C "$tree.part/tree" --strip-components 1
        echo "$2" >"$tree.part/tree/.mmtwin"
        mv "$tree.part/tree" "$tree"
        rm -rf "$tree.part"
    fi
}

# An interrupted removal leaves nothing that would be taken for a source.
remove() { rm -f "$tree/.mmtwin" && rm -rf "$tree"; }

edit() { # file function words [statement]
    [ -e "$tree/$1.stock" ] || cp "$tree/$1" "$tree/$1.stock"
    (cd "$tree" && perl "$here/edit.pl" "$@") >>"$log" 2>&1 || give_up "$name: $(tail -n 1 "$log")"
}

restore() {
    find "$tree" -name '*.stock' | while read -r stock; do
        mv "$stock" "${stock%.stock}"
        # Newer than what was made from the edited form.
        touch "${stock%.stock}"
    done
}

run_make() { nice -n 10 make -s -C "$tree" -j "$(nproc)" LOCALVERSION="-$suffix" "$@" >>"$log" 2>&1; }

# Every line of the fragment must be in the configuration, but for what a release does not know.
configure() {
    run_make tinyconfig || give_up "$name: make tinyconfig: $log"
    (cd "$tree" && scripts/kconfig/merge_config.sh -m .config "$here/lab.config") >>"$log" 2>&1
    run_make olddefconfig || give_up "$name: make olddefconfig: $log"
    while read -r line; do
        case $line in
        CONFIG_*) option=${line%%=*} ;;
        "# CONFIG_"*) option=${line#??} option=${option%% *} ;;
        *) continue ;;
        esac
        grep -qx "$line" "$tree/.config" && continue
        grep -rqE "^(menu)?config ${option#CONFIG_}\$" "$tree" --include='Kconfig*' || continue
        case $line in "# "*) grep -q "^$option=" "$tree/.config" || continue ;; esac
        give_up "$name: the configuration did not take $line"
    done <"$here/lab.config"
}

# Lines for kprobe_events from lines `event function [word...]`: the beginning of the function, or its only instruction
# that contains the words in this order.
find_probes() { # base
    [ -e "$here/$1.probes" ] || return 0
    grep -v '^#' "$here/$1.probes" | while read -r event function words; do
        code=$(objdump -d --no-show-raw-insn --disassemble="$function" "$tree/vmlinux" | grep -E '^[0-9a-f]+[: ]')
        begin=$(echo "$code" | sed -n "s/^\([0-9a-f]*\) <$function>:\$/\1/p")
        [ -n "$begin" ] || give_up "$name: there is no function $function"
        at=$begin
        if [ -n "$words" ]; then
            at=$(echo "$code" | sed -n "s/^\([0-9a-f]*\):.*$(echo "$words" | sed 's/ \+/.*/g').*/\1/p")
            [ "$(echo "$at" | grep -c .)" = 1 ] ||
                give_up "$name: $function has $(echo "$at" | grep -c .) instructions with \`$words\`, not one"
        fi
        # The kernel lies in the last 2 GiB of the address space: the low halves tell all.
        echo "p:mmtwin/$event $function+$((0x$(echo "$at" | tail -c 9) - 0x$(echo "$begin" | tail -c 9)))"
    done
}

make_kernel() { # base version [change]
    name=${3:-$1-lab}
    suffix=${name#"$1"-}
    is_made "$name" "$1" "$2" ${3:+"$3"} && return 0
    log=$build/$name.log
    : >"$log"
    unpack "$1" "$2"
    restore
    begin=$(date +%s)
    say "building $name: $log"
    configure
    if [ -n "${3:-}" ]; then undo; fi
    run_make bzImage modules || give_up "$name: $(grep -m 3 -iE 'error|undefined' "$log"); all of it is in $log"
    part=$lab/part.$$
    rm -rf "$part"
    mkdir -p "$part/source" "$part/kernel/modules/extra"
    cp "$tree/arch/x86/boot/bzImage" "$part/kernel/vmlinuz"
    cp "$tree/.config" "$part/kernel/config"
    cp "$tree/modules.builtin" "$part/kernel/modules/"
    cp "$tree/include/config/kernel.release" "$part/kernel/version"
    echo "${release:-$1}" >"$part/kernel/bundle"
    find_probes "$1" >"$part/kernel/probes"
    cp crates/lab/module/* "$part/source"
    run_make M="$part/source" modules || give_up "$name: the module mmtwin: $log"
    strip --strip-debug "$part/source"/*.ko
    mv "$part/source"/*.ko "$part/kernel/modules/extra/"
    recipe "$1" "$2" ${3:+"$3"} >"$part/kernel/recipe"
    mkdir -p "$lab/kernels"
    rm -rf "${lab:?}/kernels/$name"
    mv "$part/kernel" "$lab/kernels/$name"
    rm -rf "$part"
    say "$name is $(cat "$lab/kernels/$name/version"), $(($(date +%s) - begin)) s"
}

[ "$(uname -m)" = x86_64 ] || give_up "needs an x86_64 machine"
command -v apt-get >/dev/null || give_up "needs apt-get, for the packages linux-source-*"
own=$lab/apt
. tools/packages.sh
known=$(cd "$here" && ls -- *.sh | sed 's/\.sh$//')
# shellcheck disable=SC2086 # a list of names
[ $# -gt 0 ] || set -- $known
part=$lab/part.$$
trap 'rm -rf "$part"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
mkdir -p "$build"
for change; do
    # shellcheck disable=SC2086 # a list of names
    [ -f "$here/$change.sh" ] || give_up "no change $change: there is" $known
    unset base release
    undo() { :; }
    # shellcheck source=/dev/null
    . "$here/$change.sh"
    wanted=$release
    version=$(version_of "$base")
    if [ -z "$version" ]; then
        update
        version=$(version_of "$base")
    fi
    [ -n "$version" ] || give_up "no package linux-source-$base in apt's lists"
    tree=$build/$base
    if is_made "$base-lab" "$base" "$version" && is_made "$change" "$base" "$version" "$change"; then
        remove
        continue
    fi
    set_up_tools
    unset release
    make_kernel "$base" "$version"
    release=$wanted
    make_kernel "$base" "$version" "$change"
    remove
done
made=
for kernel in "$lab"/kernels/*/recipe; do
    [ ! -e "$kernel" ] || made="$made$(basename "$(dirname "$kernel")") "
done
say "${made}in $lab/kernels"
