#!/usr/bin/env bash
# The only command file. `./build.sh help` lists the commands.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

PRIMARY=4.0            # what managed services run
VERSIONS="3.5 4.0 4.3" # the floor, the primary, the outlook; each has conf/constraints-VERSION.txt

usage() {
    cat <<'EOF'
usage: ./build.sh COMMAND

  setup [EXTRA ...]             create .venv and install everything that the commands below need; EXTRA is an extra
                                of pyproject.toml (s3, gs, models, bench)
  test [--spark V] [PYTEST ...] run the suite, on Spark 4.0 or V (3.5, 4.3); `test -m "not spark"` needs no JVM
  check [--fix]                 ruff, format, mypy --strict, import-linter; --fix mends what ruff can mend
  package                       build dist/stencil.zip (for spark-submit --py-files) and the wheel
  demo                          generate a small crawl in ./demo, extract it, say what to look at
  bench [NAME [ARG ...]]        run tests/bench/NAME.py (default: speed)
  matrix [PYTEST ...]           run the suite on each Spark: 3.5, 4.0, 4.3

PYTHON chooses the interpreter (3.11 or 3.12; the oldest found is the default). Spark needs Java 17.
EOF
}

say() { printf '\033[1m== %s\033[0m\n' "$*" >&2; }
die() { printf 'build.sh: %s\n' "$*" >&2; exit 2; }

find_python() {
    local candidate
    for candidate in ${PYTHON:-python3.11 python3.12 python3}; do
        if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' 2>/dev/null; then
            printf '%s' "$candidate"
            return
        fi
    done
    die "Python 3.11 or 3.12 is needed (tried: ${PYTHON:-python3.11 python3.12 python3}); set PYTHON=/path/to/python"
}

need_java() {
    local java=java version
    if [ -n "${JAVA_HOME:-}" ]; then java="$JAVA_HOME/bin/java"; fi
    version=$("$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1) || true
    [ -n "$version" ] || die "Spark needs Java 17 and '$java' does not run: install it (Debian: apt-get install openjdk-17-jre-headless)"
    [ "$version" -ge 17 ] || die "Spark needs Java 17 or later, '$java' is $version: set JAVA_HOME"
}

venv_of() { if [ "$1" = "$PRIMARY" ]; then printf .venv; else printf '.venvs/%s' "$1"; fi; }

# install VERSION [EXTRA ...]: a virtual environment for one Spark; nothing is done when its inputs have not changed.
install() {
    local version=$1 venv constraints extras=dev,spark extra stamp inputs
    shift
    venv=$(venv_of "$version")
    constraints="conf/constraints-$version.txt"
    [ -f "$constraints" ] || die "no Spark $version here: choose one of $VERSIONS"
    need_java
    [ "$version" = 3.5 ] && extras=dev,spark35
    for extra in "$@"; do extras="$extras,$extra"; done
    stamp="$venv/setup-$extras"
    inputs=$(cat pyproject.toml "$constraints" conf/constraints-dev.txt | cksum; pwd)
    if [ "$(cat "$stamp" 2>/dev/null)" = "$inputs" ]; then return; fi
    say "setup: $venv with Spark $version ($extras)"
    [ -x "$venv/bin/python" ] || "$(find_python)" -m venv --clear "$venv"
    "$venv/bin/python" -m pip install -qq --disable-pip-version-check -c "$constraints" --config-settings editable_mode=compat -e ".[$extras]"
    printf '%s' "$inputs" >"$stamp"
}

# run_pytest VERSION [PYTEST ...]
run_pytest() {
    local version=$1 venv code=0
    shift
    install "$version"
    venv=$(venv_of "$version")
    say "test: Spark $version"
    env -u SPARK_HOME "$venv/bin/python" -m pytest "$@" || code=$?
    case $code in
        0) ;;
        5) say "pytest ran no test with: $*" ;;
        *) say "pytest on Spark $version ended with $code" ;;
    esac
    return $code
}

test_() {
    local version=$PRIMARY
    if [ "${1:-}" = --spark ]; then
        version=${2:?--spark needs a version}
        shift 2
    fi
    run_pytest "$version" "$@"
}

check() {
    install "$PRIMARY"
    if [ "${1:-}" = --fix ]; then
        .venv/bin/ruff check --fix --exit-zero --quiet .
        .venv/bin/ruff format --quiet .
    fi
    local failed=0
    say "ruff check" && .venv/bin/ruff check . || failed=1
    say "ruff format" && .venv/bin/ruff format --check . || failed=1
    say "mypy --strict" && .venv/bin/mypy || failed=1
    say "import-linter" && .venv/bin/lint-imports || failed=1
    [ "$failed" = 0 ] || say "check failed"
    return $failed
}

package() {
    install "$PRIMARY"
    rm -rf build dist
    mkdir -p dist
    say "package: dist/stencil.zip"
    .venv/bin/python - <<'EOF'
import pathlib
import zipfile

files = sorted(
    path
    for package in ("spark_jobs", "udfs", "templates")
    for path in pathlib.Path(package).rglob("*")
    if path.is_file() and "__pycache__" not in path.parts
)
with zipfile.ZipFile("dist/stencil.zip", "w", zipfile.ZIP_DEFLATED) as out:
    for path in files:  # a fixed time: the same sources give the same bytes
        out.writestr(zipfile.ZipInfo(path.as_posix(), (1980, 1, 1, 0, 0, 0)), path.read_bytes(), zipfile.ZIP_DEFLATED)
print(f"{len(files)} files")
EOF
    say "package: wheel"
    SOURCE_DATE_EPOCH=315532800 .venv/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps -w dist .
    rm -rf build
    ls -l dist
}

demo() {
    install "$PRIMARY"
    local here=demo extract
    extract="--input $here/crawl/*.warc.gz --output $here/out --store $here/templates.store --classifier embedded"
    rm -rf "$here"
    say "demo: a generated crawl of ten hosts"
    .venv/bin/python tests/sites.py "$here/crawl" --hosts 10 --pages 60 --pages-per-file 200 --noise
    say "demo: stencil extract $extract"
    (set -f; .venv/bin/stencil extract $extract) # the job expands the pattern itself
    cat <<EOF

What to look at next
  the rules of a host, as text:
      .venv/bin/stencil template show blog0.example.com --store $here/templates.store
  one row for every page (Parquet):
      .venv/bin/python -c "import pyarrow.dataset as d; print(d.dataset('$here/out/extractions').to_table().to_pandas())"
  options, versions, counts of every route and reason:
      $here/out/run.json
  how near that is to what the generator knows to be main content:
      .venv/bin/stencil evaluate --extractions $here/out --truth $here/crawl/truth.jsonl.gz
  a second run that finds its templates in the store:
      .venv/bin/stencil extract --input '$here/crawl/*.warc.gz' --output $here/again --store $here/templates.store
EOF
}

bench() {
    local name=${1:-speed}
    shift || true
    install "$PRIMARY" bench
    [ -f "tests/bench/$name.py" ] || die "no benchmark '$name' (tests/bench/$name.py)"
    .venv/bin/python "tests/bench/$name.py" "$@"
}

matrix() {
    local version failed=""
    for version in $VERSIONS; do
        run_pytest "$version" "$@" || failed="$failed $version"
    done
    [ -z "$failed" ] || die "the suite fails on Spark$failed"
    say "the suite passes on Spark $VERSIONS"
}

command=${1:-help}
shift || true
case $command in
    setup) install "$PRIMARY" "$@"; say "ready: .venv/bin/stencil --help" ;;
    test) test_ "$@" ;;
    check | package | demo | bench | matrix) "$command" "$@" ;;
    help | -h | --help) usage ;;
    *) usage >&2; die "unknown command: $command" ;;
esac
