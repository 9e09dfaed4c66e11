// Ask: a conversation with a model about the rows that a search finds. The rows stand under the answer as its sources.
import { events } from "/ui/api.js";
import { button, duration, el, field, plural, problem, replace, select, shorten, visible } from "/ui/dom.js";
import { stringify } from "/ui/json.js";
import { showMarkdown } from "/ui/markdown.js";
import { openPanel } from "/ui/panel.js";
import { summary, titleKey } from "/ui/payload.js";
import { costLine, query } from "/ui/search.js";

const SOURCES_CHARACTERS = 2800, TURNS_KEPT = 2, ANSWER_TOKENS = 400;
const RULES = "You answer questions with the help of numbered sources. Use what the sources say, and name them as [1], [2]. If they do not say it, say that you do not know. Answer in a few sentences.";

const fieldsText = (rest) => rest.map(([key, value]) => `${key}: ${value}`).join(", ");

// The text of a row that a model reads.
function sourceText(row, length) {
  const { title, body, rest } = summary(row, length);
  const text = row.payload && typeof row.payload === "object" ? [title, body || fieldsText(rest)].filter(Boolean).join(": ") : row.preview ?? body;
  return shorten(text || stringify(row.payload ?? {}), length);
}

class AskView {
  constructor(root, collection, info, decoders) {
    Object.assign(this, { root, collection, info, turns: [] });
    this.model = select(decoders.map((model) => [model.name, visible(model.name)]));
    this.rows = el("input", { type: "number", min: 1, max: 20, value: 4 });
    this.question = el("textarea", { rows: 2, class: "big", placeholder: "Ask about the rows of this collection", "aria-label": "Question",
      onkeydown: (event) => { if (event.key === "Enter" && !event.shiftKey && !event.isComposing) { event.preventDefault(); this.send(); } } });
    this.talk = el("section", { class: "talk", "aria-label": "Conversation", "aria-live": "polite" });
    this.submit = el("button", { type: "submit", class: "primary" }, "Ask");
    this.stop = button("Stop", () => this.running?.abort(), { hidden: true });
    this.form = el("form", { class: "search", onsubmit: (event) => { event.preventDefault(); this.send(); } },
      el("div", { class: "query-line" }, this.question, this.submit, this.stop),
      el("div", { class: "options" }, field("Model", this.model, { class: "field beside" }), field("Sources", this.rows, { class: "field beside" }),
        button("New conversation", () => { this.turns = []; replace(this.talk); this.question.focus(); }, { class: "link" })));
    replace(root, el("header", { class: "view-head" }, el("div", {}, el("h1", {}, "Ask"), el("p", { class: "quiet" }, `${plural(info.rows, "row")} in `, el("bdi", {}, visible(collection))))), this.form, this.talk);
    this.question.focus();
  }

  messages(question, hits) {
    const length = Math.floor(SOURCES_CHARACTERS / Math.max(4, hits.length));
    const sources = hits.map((hit, i) => `[${i + 1}] ${sourceText(hit.row, length)}`).join("\n");
    const earlier = this.turns.slice(-TURNS_KEPT).flatMap((turn) => [{ role: "user", content: turn.question }, { role: "assistant", content: turn.answer }]);
    return [{ role: "system", content: RULES }, ...earlier, { role: "user", content: `Sources:\n${sources}\n\nQuestion: ${question}` }];
  }

  summary(row, length) { return summary(row, length, titleKey(this.collection)); }

  sources(answer) {
    const list = answer.hits.map((hit, i) => {
      const { title, body, rest } = this.summary(hit.row);
      return el("li", { "data-source": i + 1 }, el("span", { class: "badge" }, String(i + 1)),
        button(title || shorten(visible(hit.id), 50), () => openPanel(this.collection, hit.id), { class: "link" }), el("bdi", { class: "quiet" }, shorten(body || fieldsText(rest), 130)));
    });
    return el("details", { class: "sources", open: true }, el("summary", {}, plural(answer.hits.length, "source")), el("ol", {}, list), costLine(answer));
  }

  // The number of a source in an answer: leads to its row.
  cite(found, number) {
    const hit = found.hits[number - 1];
    if (!hit) return null;
    const title = this.summary(hit.row).title || shorten(visible(hit.id), 50);
    return button(`[${number}]`, () => openPanel(this.collection, hit.id), { class: "cite link", "data-cite": number, title: `Source ${number}: ${title}` });
  }

  // Shows what has arrived of an answer, at most once for each frame.
  drawer(turn, found, box) {
    let waiting = 0;
    const draw = () => {
      waiting = 0;
      showMarkdown(box, turn.answer, (number) => this.cite(found, number));
    };
    return { soon: () => { waiting ||= requestAnimationFrame(draw); }, now: () => { cancelAnimationFrame(waiting); draw(); } };
  }

  async send() {
    const question = this.question.value.trim();
    if (!question || this.running) return;
    const running = (this.running = new AbortController());
    const text = el("div", { class: "answer-text" }, el("span", { class: "quiet" }, "Searching…"));
    const foot = el("div", { class: "answer-foot" });
    const turn = { question, answer: "" };
    this.talk.prepend(el("article", { class: "card turn" }, el("h2", {}, el("bdi", {}, visible(question))), text, foot));
    this.question.value = "";
    this.submit.hidden = true;
    this.stop.hidden = false;
    this.stop.focus();
    const begun = performance.now();
    const state = el("p", { class: "quiet" });
    let drawer = null;
    try {
      const found = await query(this.collection, { text: question, model: this.info.served_model, limit: Math.max(1, Number(this.rows.value) || 4) }, running.signal);
      replace(foot, state, this.sources(found));
      text.textContent = "…";
      drawer = this.drawer(turn, found, text);
      const body = { model: this.model.value, messages: this.messages(question, found.hits), stream: true, max_tokens: ANSWER_TOKENS, temperature: 0 };
      for await (const event of events("/v1/chat/completions", body, running.signal)) {
        if (event.error) throw new Error(event.error.message);
        const piece = event.choices?.[0]?.delta?.content;
        if (!piece) continue;
        turn.answer += piece;
        drawer.soon();
      }
      if (turn.answer) drawer.now();
      else text.textContent = "The model gave no answer.";
      const cited = [...new Set([...text.querySelectorAll(".cite")].map((one) => Number(one.dataset.cite)))].sort((a, b) => a - b);
      const sources = cited.length ? cited.map((number) => `[${number}]`).join(" ") : "no source";
      state.textContent = `Answered in ${duration((performance.now() - begun) / 1000)}. ${turn.answer ? `It cites ${sources}.` : ""}`;
      for (const number of cited) foot.querySelector(`[data-source="${number}"]`)?.classList.add("cited");
    } catch (error) {
      if (turn.answer) drawer.now();
      else text.textContent = "";
      if (error.name === "AbortError") foot.prepend(el("p", { class: "quiet" }, "Stopped."));
      else foot.prepend(problem(error));
    }
    if (turn.answer) this.turns.push(turn);
    this.running = null;
    this.submit.hidden = false;
    this.stop.hidden = true;
    if (this.question.isConnected) this.question.focus();
  }
}

function missing(info, decoders) {
  const lines = [];
  if (!info.served_model)
    lines.push(info.model ? `The model ${visible(info.model)} made the vectors of this collection, but it is not served.` : "No model is known for the vectors of this collection, so it cannot be searched in words.");
  if (!decoders.length) lines.push("The server has no model that generates text.");
  return lines;
}

export function mount(root, { collection, info, all }) {
  const decoders = all.models.filter((model) => model.kind === "decoder");
  const lines = missing(info, decoders);
  if (lines.length) {
    replace(root, el("header", { class: "view-head" }, el("h1", {}, "Ask")), el("div", { class: "empty" }, lines.map((line) => el("p", {}, line)),
      el("p", { class: "quiet" }, "Start the server with both models: warpwave serve FILE --model minilm.gguf --model smollm2.gguf")));
    return undefined;
  }
  const view = new AskView(root, collection, info, decoders);
  return () => view.running?.abort();
}
