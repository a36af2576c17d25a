# shellcheck shell=bash
# What apt has to bring, and who may call it. Sourced by scripts/setup.sh.

oldest_libtorch=1.13 # the binding is not tried on anything older

# apt_prefix: prints how apt-get is called without a password; fails where it cannot be.
apt_prefix() {
  command -v apt-get >/dev/null || return 1
  if [[ $(id -u) == 0 ]]; then return; fi
  command -v sudo >/dev/null && sudo -n true 2>/dev/null && echo "sudo -n"
}

# pip_line: the line for systems whose packages hold no libtorch that is new enough.
pip_line() {
  # shellcheck disable=SC2016 # printed, for the reader's shell to expand
  echo 'python3 -m venv ~/.memopd && ~/.memopd/bin/pip install torch && export LIBTORCH="$(echo ~/.memopd/lib/python3*/site-packages/torch)"'
}

# too_old_in_apt: the known candidate of libtorch-dev is older than the binding takes.
too_old_in_apt() {
  local candidate
  candidate=$(apt-cache policy libtorch-dev 2>/dev/null | awk '/Candidate:/ { print $2 }')
  [[ $candidate == [0-9]* ]] && ! at_least "$candidate" "$oldest_libtorch"
}

# missing_packages: one a line, what Debian's packages have to bring.
missing_packages() {
  if [[ -n $cxx_missing ]]; then echo g++; fi
  if [[ -z ${SSL_CERT_FILE-} && ! -e $sysroot/etc/ssl/certs/ca-certificates.crt && -e $sysroot/etc/debian_version ]]; then
    echo ca-certificates # go needs them to fetch modules
  fi
  if [[ -z ${LIBTORCH-} && -z $python_torch ]]; then
    if ! system_libtorch; then
      echo libtorch-dev
      echo libopenblas0-pthread
    elif slow_blas; then
      echo libopenblas0-pthread
    fi
  fi
}

# find_packages: the compiler and the system's libtorch, installed where allowed.
find_packages() {
  local prefix packages
  find_compiler
  mapfile -t packages < <(missing_packages)
  if [[ ${#packages[@]} == 0 ]]; then return; fi
  if ! command -v apt-get >/dev/null; then
    if [[ -n $cxx_missing ]]; then
      fail "$cxx_missing; install GCC's C++ compiler with this system's package manager, for example:" "$(sudo_word)dnf install gcc-c++"
    elif [[ " ${packages[*]} " == *" libtorch-dev "* ]]; then
      fail "libtorch was not found, and there is no apt to bring it; this line does (or set LIBTORCH to a folder that has it):" "$(pip_line)"
    fi
    return
  fi
  if ! prefix=$(apt_prefix); then
    if [[ ${packages[*]} == libopenblas0-pthread ]]; then
      say "warning: libtorch uses the reference BLAS, about 30 times slower; better: $(apt_line libopenblas0-pthread)"
      return
    fi
    fail "missing: ${packages[*]}; this line installs what is needed:" \
      "$(apt_line "${packages[@]}")"
  fi
  apt_install "$prefix" "${packages[@]}"
  find_compiler
}

# apt_install PREFIX PACKAGE...: quiet but for its log.
apt_install() {
  local prefix=$1 log=$state/apt.log
  shift
  say "installing with apt, which takes some minutes: $* (its output: .setup/apt.log)"
  # shellcheck disable=SC2086 # the prefix is two words or none
  $prefix apt-get update >"$log" 2>&1 || say "warning: apt-get update failed, going on with the lists at hand"
  if [[ " $* " == *" libtorch-dev "* ]] && too_old_in_apt; then
    fail "this system's libtorch-dev is older than $oldest_libtorch; this line brings a newer libtorch:" "$(pip_line)"
  fi
  # shellcheck disable=SC2086
  if ! $prefix env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" </dev/null >>"$log" 2>&1; then
    tail -n 5 "$log" >&2
    fail "apt-get could not install $*; try it by hand:" "$(apt_line "$@")"
  fi
}
