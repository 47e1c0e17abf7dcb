# shellcheck shell=sh
# Sourced by docs/quickstart.sh and test/run.sh: gets missing Debian packages.

# Everything that building ibvxx, its tests and its examples takes.
# shellcheck disable=SC2034 # used by those who source this
build_packages='g++ meson ninja-build pkgconf libibverbs-dev libexpected-dev libfmt-dev'

# install_packages PACKAGE...: installs those that are missing and says so; says nothing where none is. Where there is
# no apt-get it leaves the machine as it is, and the build will tell what it lacks. Fails when apt-get does.
install_packages() {
    command -v dpkg-query >/dev/null 2>&1 && command -v apt-get >/dev/null 2>&1 || return 0
    _missing=''
    for _package; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$_package" 2>/dev/null)" = installed ] ||
            _missing="$_missing $_package"
    done
    [ -n "$_missing" ] || return 0

    _root=''
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo >/dev/null 2>&1; then
            echo "Missing packages; as root, run: apt-get install$_missing" >&2
            return 1
        fi
        _root=sudo
    fi
    echo "Installing with ${_root:+$_root }apt-get:$_missing"
    _log=$(mktemp)
    # shellcheck disable=SC2086 # lists
    # The lists of available packages may be absent or old: they are fetched only when it does not work without.
    if ! _apt_get install $_missing >"$_log" 2>&1; then
        echo "Updating apt-get's package lists first"
        if ! { _apt_get update && _apt_get install $_missing; } >"$_log" 2>&1; then
            cat "$_log" >&2
            rm -f "$_log"
            return 1
        fi
    fi
    rm -f "$_log"
}

_apt_get() { # COMMAND [PACKAGE...]
    _command=$1
    shift
    $_root env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -q -y -o Dpkg::Use-Pty=0 \
        "$_command" --no-install-recommends "$@" </dev/null
}
