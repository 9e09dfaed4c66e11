/* The search of the site: every word of the query must begin a word of a section. Titles and headings count more than text. */
"use strict";

function wordsOf(text) {
    return text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) || [];
}

/* The sections that have all words, best first: at most `limit` objects {section, score}. */
function findSections(sections, query, limit) {
    const wanted = wordsOf(query);
    if (!wanted.length)
        return [];
    const beginning = wanted.map((word) => new RegExp("(?<![\\p{L}\\p{N}_])" + word, "giu"));
    const found = [];
    for (const section of sections) {
        let score = 0;
        const all = beginning.every((pattern) => {
            const count = (text) => (text.match(pattern) || []).length;
            const here = 20 * count(section.h) + 5 * count(section.t) + Math.min(count(section.x), 5);
            score += here;
            return here > 0;
        });
        if (all)
            found.push({section, score});
    }
    return found.sort((a, b) => b.score - a.score).slice(0, limit);
}

/* Some words around the first place in the text that has a word of the query. */
function excerpt(text, query) {
    const at = Math.max(0, ...wordsOf(query).slice(0, 1).map((word) => text.toLowerCase().indexOf(word)));
    const begin = at < 40 ? 0 : text.indexOf(" ", at - 40) + 1;
    return (begin ? "… " : "") + text.slice(begin, begin + 140);
}

function show(input, list) {
    list.replaceChildren();
    for (const {section} of findSections(SECTIONS, input.value, 20)) {
        const item = document.createElement("li"), link = document.createElement("a"), text = document.createElement("small");
        link.href = document.body.dataset.up + section.a;
        link.textContent = section.h === section.t ? section.t : section.t + ": " + section.h;
        text.textContent = excerpt(section.x, input.value);
        item.append(link, text);
        list.append(item);
    }
}

if (typeof document === "undefined") {
    module.exports = {findSections, excerpt};
} else {
    const input = document.getElementById("search");
    input.addEventListener("input", () => show(input, document.getElementById("found")));
}
