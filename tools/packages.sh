# Installing and downloading Debian packages, for the scripts beside this one: source it with $own set to a folder for
# apt's files. Of the machine only installed packages change: apt's sources are read and not written, and the lists and
# downloads of its packages are kept in $own. What is installed is printed. Nothing becomes root by itself: without it
# the command to run is printed, and the function fails.

# apt's own user downloads: the folder is open to it.
(umask 022 && mkdir -p "$own")

# Suites with a list of sources in $own instead of the machine's sources; empty: those.
suites=
# File with the packages that count as installed; empty: the machine's.
installed=

# Options of apt for its files here.
apt_options() {
    echo "-o Dir::State::lists=$own/lists${suites:+-$suites} -o Dir::Cache=$own/cache"
    [ -z "$suites" ] || echo "-o Dir::Etc::sourcelist=$own/$suites.list -o Dir::Etc::sourceparts=/dev/null"
    [ -z "$installed" ] || echo "-o Dir::State::status=$installed"
}

# apt-get or apt-cache with these options.
with_options() { # command argument...
    (umask 022 && mkdir -p "$own/lists${suites:+-$suites}/partial" "$own/cache/archives/partial")
    command=$1
    shift
    # shellcheck disable=SC2046 # words without blanks
    "$command" -q $(apt_options) "$@"
}

# Fetches the lists, once in a run of the script, in whichever subshell.
update() {
    stamp=$own/updated${suites:+-$suites}
    [ "$(cat "$stamp" 2>/dev/null)" != $$ ] || return 0
    with_options apt-get update >"$own/update.log" 2>&1 || say "apt-get update failed: $own/update.log" >&2
    echo $$ >"$stamp"
}

codename() { (. /etc/os-release && echo "${VERSION_CODENAME:-}"); }

is_installed() { dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q ' installed$'; }

# Downloads a package into this folder.
download() { # package
    update
    with_options apt-get download "$1" >"$own/download.log" 2>&1
}

# Installs packages, and says which, with those that they need.
install() { # [-t SUITE] package...
    if [ "$(id -u)" != 0 ]; then
        say "not root, so nothing is installed; to install $*, run:" >&2
        for words in update "install -y --no-install-recommends $*"; do
            say "    sudo apt-get $(apt_options | tr '\n' ' ')$words" >&2
        done
        return 1
    fi
    update
    if ! with_options apt-get install -s --no-install-recommends "$@" >"$own/install.log" 2>&1; then
        say "cannot install $*: $(tail -n 1 "$own/install.log")" >&2
        return 1
    fi
    sed -n 's/^Inst \([^ ]*\) .*(\([^ ]*\) .*/\1 \2/p' "$own/install.log" |
        while read -r package version; do say "installing the package $package $version"; done
    DEBIAN_FRONTEND=noninteractive with_options apt-get install -y --no-install-recommends "$@" \
        >"$own/install.log" 2>&1 </dev/null || {
        say "apt-get install failed: $own/install.log" >&2
        return 1
    }
}

# A Debian release and its suite with newer packages, at the address of the machine's own release, which apt knows however
# it is written down. Both are in a list of sources of this tool's own, which is used while $suites is set.
use_backports() { # release
    address=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Release: $(codename)" | head -n 1)
    [ -n "$address" ] || return 1
    key=/usr/share/keyrings/debian-archive-keyring.gpg
    if [ -e "$key" ]; then key="[signed-by=$key] "; else key=; fi
    suites=$1-backports
    mkdir -p "$own"
    printf 'deb %s%s %s main\n' "$key" "$address" "$1" "$key" "$address" "$suites" >"$own/$suites.list"
}
