# shellcheck shell=bash
# OpenBLAS takes a processor that is newer than its release for the oldest that
# it knows and is then several times slower. OPENBLAS_CORETYPE tells it better.
# Sourced by scripts/setup.sh.

# processor: what OpenBLAS can be told by, and what the result depends on.
processor() { grep -m 1 '^flags' /proc/cpuinfo 2>/dev/null || true; }

# better_core FLAGS: the newest kernels that a processor with these flags has
# and that OpenBLAS 0.3.21 knows.
better_core() {
  case " $1 " in
    *' avx512bw '*) [[ " $1 " == *' avx512vl '* ]] && echo SkylakeX ;;
    *' avx2 '*) [[ " $1 " == *' fma '* ]] && echo Haswell ;;
  esac
}

# blas_exports: the line of env.sh where OpenBLAS is mistaken. The user's own
# setting stays.
blas_exports() {
  local core better
  core=$(env -u OPENBLAS_CORETYPE "$state/try" 2>/dev/null || true)
  case $core in
    Prescott | Core2 | Nehalem | Generic | generic | Banias | Katmai) ;;
    *) return 0 ;;
  esac
  better=$(better_core "$(processor)")
  if [[ -n $better ]]; then
    # shellcheck disable=SC2016 # for the shell that sources it to expand
    printf 'export OPENBLAS_CORETYPE="${OPENBLAS_CORETYPE:-%s}" # OpenBLAS takes this processor for %s\n' "$better" "$core"
  fi
}
