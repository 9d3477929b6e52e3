#!/usr/bin/env bash
# The first five minutes in a clean environment: packages, megabytes, seconds and score.
#     scripts/first_five_minutes.sh [FOLDER]     (default: a temporary folder; arguments of pip in PIP_TORCH)
# REGARD_DEMO="--quick" tries all steps at small size.
set -euo pipefail
root="$(cd "$(dirname "$0")/.." && pwd)"
folder="${1:-$(mktemp -d)}"
mkdir -p "$folder"
cd "$folder"
step() {  # step NAME COMMAND...: run a command, print its time
    local name="$1" start="$SECONDS"
    shift
    echo "\$ $*"
    "$@"
    echo "[$name: $((SECONDS - start)) s]"
}
python3 -m venv venv
export PATH="$folder/venv/bin:$PATH"
pip() { python -m pip --quiet --disable-pip-version-check "$@"; }
step "build the wheel" pip wheel --no-deps --wheel-dir . "$root"
wheel="$(ls regard-*.whl)"
# shellcheck disable=SC2086
step "install torch" pip install ${PIP_TORCH:-torch==2.13.0}
step "install Regard" pip install "./$wheel"
echo "[$(python -m pip list --format=freeze | wc -l) packages, $(du -sm venv | cut -f1) MB]"
step "regard info" regard info
# shellcheck disable=SC2086
step "regard demo" regard demo ${REGARD_DEMO:-}
step "regard translate" regard translate regard-demo/model "My brother likes music." "Where is my book?"
