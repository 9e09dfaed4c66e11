#!/usr/bin/env python3
"""WordNet's glosses as JSON lines, one for each meaning: scripts/demo/glosses.py OUT COUNT [FOLDER]. A COUNT of 0 takes all; any other takes that many,
evenly spread over nouns, verbs, adjectives and adverbs, since a prefix would be the most general nouns only. FOLDER is /usr/share/wordnet
if not given."""
import json
import pathlib
import sys

KINDS = ("noun", "verb", "adj", "adv")
# The lexicographers' files by number, the second field of a line (lexnames(5WN)).
TOPICS = """all pert all tops act animal artifact attribute body cognition communication event feeling food group location motive object person
phenomenon plant possession process quantity relation shape state substance time body change cognition communication competition consumption
contact creation emotion motion perception possession social stative weather participle""".split()


def meanings(folder):
    """Each meaning: its id, its words, and what it is. A line has numbers and words before the bar, the words after the fourth."""
    for kind in KINDS:
        with open(folder / f"data.{kind}", encoding="latin-1") as file:
            for line in file:
                if line.startswith("  ") or "|" not in line:
                    continue
                data, gloss = line.split("|", 1)
                fields = data.split()
                words = [fields[4 + 2 * i].split("(")[0].replace("_", " ") for i in range(int(fields[3], 16))]
                yield {"id": f"{kind}.{fields[0]}", "text": gloss.strip(),
                       "payload": {"words": ", ".join(words), "gloss": gloss.strip(), "kind": kind, "topic": TOPICS[int(fields[1])]}}


def spread(items, count):
    """`count` of the items at equal distances; all of them if there are fewer."""
    if not 0 < count < len(items):
        return items
    return [items[i * len(items) // count] for i in range(count)]


def main():
    out, count = sys.argv[1], int(sys.argv[2])
    folder = pathlib.Path(sys.argv[3] if len(sys.argv) > 3 else "/usr/share/wordnet")
    chosen = spread(list(meanings(folder)), count)
    with open(out, "w", encoding="utf-8") as file:
        for meaning in chosen:
            file.write(json.dumps(meaning, ensure_ascii=False) + "\n")
    print(f"{len(chosen)} meanings of words")


if __name__ == "__main__":
    main()
