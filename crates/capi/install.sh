#!/bin/sh
# Installs the C interface that `cargo build --profile dist -p overspin-capi` has built:
#
#     sh crates/capi/install.sh [--prefix DIR] [--libdir DIR] [--includedir DIR] [--from DIR]
#
#     LIBDIR/liboverspin.so.VERSION       the library
#     LIBDIR/liboverspin.so.MAJOR         link to it: the name (soname) that programs look for when they start
#     LIBDIR/liboverspin.so               link to that: the name that the compiler looks for
#     LIBDIR/liboverspin.a
#     LIBDIR/pkgconfig/overspin.pc
#     INCLUDEDIR/overspin.h, INCLUDEDIR/overspin.hpp
#     PREFIX/share/man/man3/overspin.3    and a page under the name of each function
#
# The defaults are /usr/local for --prefix, PREFIX/lib, PREFIX/include, and target/dist for --from, which has
# what was built. With DESTDIR everything goes below that folder, as packagers need it; the files name the paths
# without it.
set -eu

fail() {
    echo "install.sh: $1" >&2
    echo "  $2" >&2
    exit 1
}

here=$(cd "$(dirname "$0")" && pwd)
workspace=$here/../..
prefix=/usr/local libdir='' includedir='' from=''
while [ $# -gt 0 ]; do
    case $1 in
    --prefix | --libdir | --includedir | --from) ;;
    *) fail "unknown option $1" "options are --prefix, --libdir, --includedir and --from, each with a folder" ;;
    esac
    [ $# -gt 1 ] || fail "$1 lacks its folder" "write $1 DIR"
    case $1 in
    --prefix) prefix=$2 ;;
    --libdir) libdir=$2 ;;
    --includedir) includedir=$2 ;;
    --from) from=$2 ;;
    esac
    shift 2
done
libdir=${libdir:-$prefix/lib} includedir=${includedir:-$prefix/include}
from=${from:-${CARGO_TARGET_DIR:-$workspace/target}/dist}
for folder in "$prefix" "$libdir" "$includedir"; do
    case $folder in
    *[[:space:]]*) fail "$folder has a space in it" "pkg-config cannot name such a folder: choose another" ;;
    /*) ;;
    *) fail "$folder is not an absolute path" "it goes into overspin.pc: write \"\$PWD/$folder\"" ;;
    esac
done
for file in liboverspin.so liboverspin.a; do
    [ -f "$from/$file" ] ||
        fail "there is no $from/$file" "build it with cargo build --profile dist -p overspin-capi, or name its folder with --from"
done
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$workspace/Cargo.toml" | head -n 1)
[ -n "$version" ] || fail "there is no version in $workspace/Cargo.toml" "run install.sh from inside the source tree"
soname=liboverspin.so.${version%%.*}

lib=${DESTDIR:-}$libdir include=${DESTDIR:-}$includedir
install -d "$lib/pkgconfig" "$include"
# Programs that run keep the old file: install replaces it and does not write into it.
install -m 755 "$from/liboverspin.so" "$lib/liboverspin.so.$version"
ln -sf "liboverspin.so.$version" "$lib/$soname"
ln -sf "$soname" "$lib/liboverspin.so"
install -m 644 "$from/liboverspin.a" "$lib/liboverspin.a"
install -m 644 "$here/include/overspin.h" "$here/include/overspin.hpp" "$include/"
# Escapes what is special on the right-hand side of sed's s.
quoted() { printf '%s' "$1" | sed 's/[&|\\]/\\&/g'; }
sed -e "s|@prefix@|$(quoted "$prefix")|" -e "s|@libdir@|$(quoted "$libdir")|" \
    -e "s|@includedir@|$(quoted "$includedir")|" -e "s|@version@|$version|" \
    "$here/overspin.pc.in" > "$lib/pkgconfig/overspin.pc"
chmod 644 "$lib/pkgconfig/overspin.pc"
sh "$here/man.sh" "${DESTDIR:-}$prefix/share/man/man3"
echo "installed liboverspin $version in $lib"

# If the loader searches the folder, as it does /usr/local/lib, renew its list of what is there. For any other
# folder the program itself must name the folder.
[ -z "${DESTDIR:-}" ] || exit 0
PATH=$PATH:/usr/sbin:/sbin
if ldconfig -v -N -X 2> /dev/null | grep -q "^$libdir:"; then
    ldconfig 2> /dev/null || echo "run ldconfig as root, so that programs find the library"
else
    echo "the loader does not search $libdir: link programs with -Wl,-rpath,$libdir"
fi
