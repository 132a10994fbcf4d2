#!/bin/bash
# A part of the soak: HdrHistogram's own tools read the latency.hlog of a new recording and of the gate's kept one;
# Python's jsonschema checks the new one's summary.json against its schema.
#
#   scripts/hlog.sh     KEEP=1 saves the tools' figures of the kept one, for tests/gate/earlier.rs
#
# Needs Java, Maven and Python with pip; the tools are fetched once, at fixed versions.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly JAVA_TOOL=2.2.2 PYTHON_TOOL=0.10.8 SCHEMA_TOOL=4.23.0
readonly JAR_SHA256=22d1d4316c4ec13a68b559e98c8256d69071593731da96136640f864fa14fad8
readonly KEPT=tests/recordings/earlier/run SAYS=tests/recordings/hlog-tools.json
cache=${XDG_CACHE_HOME:-$HOME/.cache}/stacktune/hlog
jar=$cache/HdrHistogram-$JAVA_TOOL.jar python=$cache/python-$PYTHON_TOOL-$SCHEMA_TOOL

for tool in java mvn python3; do
    command -v "$tool" >/dev/null || { echo "hlog.sh: $tool is missing" >&2; exit 1; }
done
mkdir -p "$cache"
[[ -f $jar ]] || mvn -q dependency:copy -Dartifact="org.hdrhistogram:HdrHistogram:$JAVA_TOOL" -DoutputDirectory="$cache"
sha256sum --quiet -c <<<"$JAR_SHA256  $jar"
[[ -d $python ]] || python3 -m pip install --quiet --target "$python" "hdrhistogram==$PYTHON_TOOL" "jsonschema==$SCHEMA_TOOL"

read_by_tools() { PYTHONPATH=$python python3 scripts/hlog.py "$jar" "$@"; }

if [[ -n ${KEEP:-} ]]; then
    read_by_tools "$KEPT" "$SAYS"
    exit
fi
read_by_tools "$KEPT"

cargo build --locked
folder=$(mktemp -d -t stacktune-hlog.XXXXXX)
trap 'rm -rf "$folder"' EXIT
stacktune=${CARGO_TARGET_DIR:-target}/debug/stacktune
"$stacktune" record demo --set io.interface=sim --for 20s --out "$folder/sim"
read_by_tools "$folder/sim"
"$stacktune" show --schema >"$folder/schema"
PYTHONPATH=$python python3 -W ignore -m jsonschema -i "$folder/sim/summary.json" "$folder/schema"
# The schema must reject a summary that breaks it.
sed 's/"schema": *1/"schema": "one"/' "$folder/sim/summary.json" >"$folder/wrong"
if PYTHONPATH=$python python3 -W ignore -m jsonschema -i "$folder/wrong" "$folder/schema" 2>/dev/null; then
    echo "hlog.sh: a wrong summary keeps to the schema" >&2
    exit 1
fi
[[ -z ${REMARKS:-} ]] || echo "HdrHistogram $JAVA_TOOL (Java), $PYTHON_TOOL (Python); jsonschema $SCHEMA_TOOL" >>"$REMARKS"
