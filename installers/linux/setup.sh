#!/bin/sh
# Set up the checkout with the best Python that is here. --dev: also for tests. --window: also for a window.
set -eu

root=$(dirname -- "$(readlink -f -- "$0")")/../..
root=$(readlink -f -- "$root")
venv_python=$root/.venv/bin/python

# Whether $1 is a Python that runs, is recent enough and was built with all that is needed.
fits() {
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))
import ctypes, ensurepip, sqlite3, ssl, venv, zlib' >/dev/null 2>&1
}

find_python() {
    for version in 3.13 3.12 3.11 3.14; do
        for candidate in "python$version" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version".*/bin/python3; do
            if fits "$candidate"; then echo "$candidate"; return; fi
        done
    done
    if fits python3; then echo python3; return; fi
    return 1
}

no_python() {
    echo "Python 3.11, 3.12, 3.13 or 3.14 with its venv module was not found." >&2
    if command -v apt-get >/dev/null; then
        echo "This installs it; then run this again:" >&2
        printf '\n    sudo sh -c "apt-get update && apt-get install -y python3 python3-venv"\n\n' >&2
    else
        echo "Install it with the system's package manager, then run this again." >&2
    fi
    exit 1
}

if [ -x "$venv_python" ] && grep -q '"complete": true' "$root/.venv/lucebox-setup.json" 2>/dev/null \
    && "$venv_python" -c '' 2>/dev/null; then
    python=$venv_python
elif ! python=$(find_python); then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "Installing Python." >&2
        export DEBIAN_FRONTEND=noninteractive
        { apt-get update -qq && apt-get install -y -qq --no-install-recommends \
            python3 python3-venv; } </dev/null >/dev/null 2>&1 || true
    fi
    python=$(find_python) || no_python
fi

dev='' window='' offscreen=''
for argument; do
    case $argument in
        --dev) dev=--dev offscreen=yes ;;
        --window) window=yes ;;
    esac
done

"$python" "$root/installers/setup.py" $dev
if [ "$window" ]; then
    "$venv_python" "$root/installers/linux/qt_libraries.py" --window
elif [ "$offscreen" ]; then
    "$venv_python" "$root/installers/linux/qt_libraries.py"
fi
