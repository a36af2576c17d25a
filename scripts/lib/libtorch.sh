# shellcheck shell=bash
# Which libtorch, and the flags it asks for. Sourced by scripts/setup.sh.

python_torch=""  # folder of the torch that python3 imports
libtorch_root="" # folder with include/ and lib/; empty for the system's
libtorch_note="" # one line about the choice
libtorch_std=17  # C++ standard
libtorch_abi=1   # _GLIBCXX_USE_CXX11_ABI

version_header=include/torch/csrc/api/include/torch/version.h

# find_python_torch: asks python3 where its torch stands, without importing it
# (seconds). The folders it searches are watched, since pip changes their date.
find_python_torch() {
  local python found
  python=$(command -v python3) || return 0
  watched+=("$python")
  # The checkout has a folder torch/ too, so the working folder is left out.
  mapfile -t found < <("$python" -c '
import importlib.util, os, sys
sys.path[:] = [p for p in sys.path if p]
spec = importlib.util.find_spec("torch")
print(os.path.dirname(spec.origin) if spec and spec.origin else "")
print("\n".join(p for p in sys.path if os.path.isdir(p)))
' 2>/dev/null)
  watched+=("${found[@]:1}")
  python_torch=${found[0]-}
  if [[ -n $python_torch && ! -f $python_torch/$version_header ]]; then
    say "note: $python_torch has no C++ headers, so it is passed over"
    python_torch=""
  fi
}

# library_folder ROOT: where this tree keeps libtorch_cpu.so.
library_folder() {
  local folder
  for folder in "$1"/lib "$1"/lib64 "$1"/lib/*-linux-gnu*; do
    if [[ -e $folder/libtorch_cpu.so ]]; then
      echo "$folder"
      return
    fi
  done
  return 1
}

# system_libtorch: Debian's libtorch-dev is installed.
system_libtorch() { [[ -f $sysroot/usr/$version_header ]] && library_folder "$sysroot/usr" >/dev/null; }

# slow_blas: the system's BLAS is the reference implementation.
slow_blas() {
  local blas
  for blas in "$sysroot"/usr/lib/*-linux-gnu*/libblas.so.3; do
    if [[ $(readlink -f "$blas") == */blas/libblas.so.3* ]]; then return 0; fi
  done
  return 1
}

# header_version ROOT: "2.15.0". Newer trees keep the numbers in torch/headeronly.
header_version() {
  cat "$1/$version_header" "$1/include/torch/headeronly/version.h" 2>/dev/null |
    awk '$2 ~ /^TORCH_VERSION_(MAJOR|MINOR|PATCH)$/ { v = v (v == "" ? "" : ".") $3 } END { print v }'
}

# read_demands ROOT: the C++ standard that the headers ask for, and the string
# ABI that the library was built with (wheels before 2.6 have the old one).
read_demands() {
  libtorch_std=17 libtorch_abi=1
  if grep -q '__cplusplus < 202002L' "$1/include/torch/csrc/api/include/torch/all.h" 2>/dev/null; then
    libtorch_std=20
  fi
  if ! grep -q '__cxx11' "$(library_folder "$1")/libc10.so"; then libtorch_abi=0; fi
}

# flags_for ROOT: sets cxxflags and ldflags, one flag an element.
flags_for() {
  local lib
  lib=$(library_folder "$1")
  # The name and date of the library make go compile anew when it is replaced in place.
  cxxflags=(-O2 "-std=c++$libtorch_std" "-D_GLIBCXX_USE_CXX11_ABI=$libtorch_abi"
    "-DMEMOPD_LIBTORCH_DATE=$(stat -L -c %Y "$lib/libtorch_cpu.so")")
  cxxflags+=("-I$1/include/torch/csrc/api/include")
  ldflags=(-ltorch -ltorch_cpu -lc10 -ldl)
  if [[ $1 == "$sysroot/usr" ]]; then return; fi # gcc searches there; -I/usr/include would break its own headers
  cxxflags+=("-I$1/include")
  ldflags=("-L$lib" "-Wl,-rpath,$lib" "${ldflags[@]}")
  if [[ -e $lib/libtorch_cuda.so ]]; then
    # Nothing refers to the CUDA library by name; it registers itself when loaded.
    ldflags+=("-Wl,--no-as-needed" -ltorch_cuda -lc10_cuda "-Wl,--as-needed")
  fi
}

# try_libtorch ROOT: compiles, links and runs a program of a few lines, which
# prints the processor that OpenBLAS takes this one for. The first lines of what
# went wrong are in $state/try.log.
try_libtorch() {
  local cxxflags=() ldflags=() cxx
  read -ra cxx <<<"${CXX:-g++}"
  read_demands "$1"
  flags_for "$1"
  cat >"$state/try.cc" <<'CC'
#include <c10/util/Exception.h>
#include <dlfcn.h>
#include <cstdio>
#include <string>
namespace at { std::string show_config(); }
int main() {
  TORCH_CHECK(!at::show_config().empty(), "no configuration");
  auto core = reinterpret_cast<const char* (*)()>(dlsym(RTLD_DEFAULT, "openblas_get_corename"));
  if (core) std::puts(core());
}
CC
  "${cxx[@]}" "${cxxflags[@]}" "$state/try.cc" -o "$state/try" "${ldflags[@]}" 2>"$state/try.log" &&
    "$state/try" >/dev/null 2>>"$state/try.log"
}

# take_libtorch ROOT NAME: true when this libtorch works; sets the choice.
take_libtorch() {
  local version lib
  version=$(header_version "$1")
  if ! at_least "$version" "$oldest_libtorch"; then
    echo "libtorch $version is older than $oldest_libtorch" >"$state/try.log"
    return 1
  fi
  try_libtorch "$1" || return 1
  lib=$(library_folder "$1")
  watched+=("$1/$version_header" "$lib/libtorch_cpu.so" "$lib/libc10.so")
  libtorch_root=$1
  libtorch_note="libtorch $version from $2 (C++$libtorch_std)"
  if [[ -e $lib/libtorch_cuda.so ]]; then libtorch_note+=", with CUDA"; fi
}

# why: the first line of the failed trial that says anything.
why() { grep -m 1 -E 'error|cannot|older|undefined|what' "$state/try.log" || head -n 1 "$state/try.log"; }

# find_libtorch: the first that works, in the order of setup.sh's head comment.
find_libtorch() {
  local given=${LIBTORCH-}
  if [[ -n $given ]]; then
    if [[ ! -f $given/$version_header ]] || ! library_folder "$given" >/dev/null; then
      fail "LIBTORCH=$given has no $version_header or no lib/libtorch_cpu.so; unset it, or point it to a libtorch:" "$(pip_line)"
    fi
    given=$(cd "$given" && pwd)
    if ! take_libtorch "$given" "\$LIBTORCH, $given"; then
      fail "LIBTORCH=$given does not work: $(why); another one is had by:" "$(pip_line)"
    fi
    return
  fi
  if [[ -n $python_torch ]]; then
    if take_libtorch "$python_torch" "python3's torch, $python_torch"; then return; fi
    say "note: python3's torch does not work here: $(why)"
    python_torch=""
    find_packages # the system's libtorch was not looked for so far
  fi
  if ! take_libtorch "$sysroot/usr" "the system's packages"; then
    fail "the system's libtorch does not work: $(why); another one is had by:" "$(pip_line)"
  fi
  watched+=("$sysroot"/usr/lib/*-linux-gnu*/libblas.so.3)
}

# quoted FLAG...: as go splits CGO_CXXFLAGS, each in single quotes where it holds a space.
quoted() {
  local flag all=()
  for flag in "$@"; do
    if [[ $flag == *' '* ]]; then flag="'$flag'"; fi
    all+=("$flag")
  done
  echo "${all[*]}"
}

# libtorch_exports: the lines of env.sh. The cgo directives in the source suit
# Debian's libtorch with C++17; anything else is built with -tags libtorch_env.
libtorch_exports() {
  local cxxflags=() ldflags=() words
  if [[ $libtorch_root == "$sysroot/usr" && $libtorch_std == 17 ]]; then return; fi
  flags_for "$libtorch_root"
  words=$(quoted "${cxxflags[@]}")
  echo "export CGO_CXXFLAGS=${words@Q}"
  words=$(quoted "${ldflags[@]}")
  echo "export CGO_LDFLAGS=${words@Q}"
  cat <<'ENV'
GOFLAGS=${GOFLAGS-$(go env GOFLAGS)}
case $GOFLAGS in
  *libtorch_env*) ;;
  *-tags=*) GOFLAGS=${GOFLAGS/-tags=/-tags=libtorch_env,} ;;
  *) GOFLAGS="${GOFLAGS:+$GOFLAGS }-tags=libtorch_env" ;;
esac
export GOFLAGS
ENV
}
