# shellcheck shell=sh
# Sourced by the scripts that build with Meson.

# configure BUILD_DIR SOURCE_TREE [MESON_OPTION]...: sets a build up, or brings an old one up to date. Options of an earlier
# run are overruled; objects that they do not concern are kept. Whatever else is in the way, a changed compiler for one,
# goes. $IBVXX_MESON_OPTIONS are more options, for a whole run of run.sh.
configure() {
    _build=$1 _tree=$2
    shift 2
    # shellcheck disable=SC2086 # several options
    set -- "$@" ${IBVXX_MESON_OPTIONS-}
    _again=''
    [ ! -f "$_build/build.ninja" ] || _again=--reconfigure
    meson setup $_again "$@" "$_build" "$_tree" || meson setup --wipe "$@" "$_build" "$_tree"
}
