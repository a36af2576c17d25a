# shellcheck shell=bash
# Go and the C++ compiler. Sourced by scripts/setup.sh.

go_folder=""  # what to add to PATH for go; empty when go is on it
cxx_missing="" # why there is no compiler; empty when there is one

# at_least HAVE WANT: dotted versions in order.
at_least() { [[ $(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1) == "$2" ]]; }

# sudo_word: "sudo " where a printed line needs it.
sudo_word() { if [[ $(id -u) != 0 ]]; then echo "sudo "; fi; }

# apt_line PACKAGE...: the line that installs packages, for who is asking.
apt_line() {
  if [[ $(id -u) == 0 ]]; then
    echo "apt-get update && apt-get install -y $*"
  elif command -v sudo >/dev/null; then
    echo "sudo apt-get update && sudo apt-get install -y $*"
  else
    echo "su -c 'apt-get update && apt-get install -y $*'"
  fi
}

# go_line VERSION: the line that installs this Go. Without root or sudo it goes
# to ~/.local/go, where find_go looks too.
go_line() {
  local arch prefix=/usr/local sudo line=""
  case $(uname -m) in
    x86_64) arch=amd64 ;;
    aarch64 | arm64) arch=arm64 ;;
    *) arch=$(uname -m) ;;
  esac
  sudo=$(sudo_word)
  if [[ -n $sudo ]] && ! command -v sudo >/dev/null; then
    sudo="" prefix=$HOME/.local
    line="mkdir -p $prefix && "
  fi
  # A newer Go must not be unpacked over an older one.
  if [[ -e $sysroot$prefix/go ]]; then line+="${sudo}rm -rf $prefix/go && "; fi
  local fetch="curl -fsSL"
  if ! command -v curl >/dev/null; then
    if command -v wget >/dev/null; then fetch="wget -qO-"; else line+="$(apt_line curl) && "; fi
  fi
  echo "$line$fetch https://go.dev/dl/go$1.linux-$arch.tar.gz | ${sudo}tar -C $prefix -xz"
}

# find_go: a go on PATH or in the usual folders that is new enough for go.mod.
# A go from 1.21 on may fetch the right one itself (GOTOOLCHAIN=auto).
find_go() {
  local want have="" folder found=""
  want=$(awk '$1 == "go" { print $2; exit }' "$root/go.mod")
  for folder in "" "$sysroot/usr/local/go/bin" "$HOME/.local/go/bin"; do
    if [[ -z $folder ]]; then
      command -v go >/dev/null || continue
    elif [[ ! -x $folder/go ]]; then
      continue
    fi
    found=$(PATH=${folder:+$folder:}$PATH command -v go)
    have=$(cd "$root" && "$found" env GOVERSION 2>/dev/null | sed 's/^go//; s/ .*//') || have=""
    if [[ -n $have ]] && at_least "$have" "$want"; then
      go_folder=$folder
      watched+=("$found")
      return
    fi
  done
  local reason="Go $want or newer is needed and was not found; this line installs it:"
  if [[ -n $found ]]; then
    reason="Go $want or newer is needed, $found is ${have:-older}; this line installs it:"
  fi
  fail "$reason" "$(go_line "$want")"
}

# find_compiler: sets cxx_missing. cgo calls $CC and $CXX, gcc and g++ by default.
find_compiler() {
  local tool
  cxx_missing=""
  for tool in "${CC:-gcc}" "${CXX:-g++}"; do
    if command -v "${tool%% *}" >/dev/null; then
      watched+=("$(command -v "${tool%% *}")")
    else
      cxx_missing="no C++ compiler (${tool%% *})"
    fi
  done
}
