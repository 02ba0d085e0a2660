// The streams: a form to begin one, and below it each stream's text, token by token.
const STREAM_HINT = "Point at a token, or focus a text and use the arrow keys. The stronger its line, the less likely the token was.";

PANELS.streams = (port) => {
  const list = h("div", { class: "lanes-streams" });
  const none = h("p", { class: "lanes-faint" }, "No streams yet: start one above, or with engine.stream(...).");
  const hidden = h("p", { class: "lanes-faint" });
  const hint = h("div", { class: "lanes-faint lanes-hint" }, STREAM_HINT);
  const form = streamForm(port);
  const node = h("section", { class: "lanes-panel lanes-writing", "aria-label": "Streams" }, form.node, none, list, hidden, hint);
  const draw = (picture, frame) => {
    form.draw(frame);
    none.hidden = picture.streams.length > 0;
    keyed(list, picture.streams, (stream) => stream.id, (stream) => streamCard(stream, port));
    hint.hidden = picture.streams.length === 0;
    hidden.hidden = picture.hidden === 0;
    say(hidden, `${many(picture.hidden, "more stream")} not shown`);
  };
  return { node, draw, tells: ["start"] };
};

/** The form; what the kernel refuses is told below it, at the field that it names. */
function streamForm(port) {
  const id = `lanes-${Math.random().toString(36).slice(2)}`;
  const field = (name, text, attributes, hint) => {
    const input = h("input", { name, class: "lanes-input", title: hint, ...attributes });
    return h("label", { class: "lanes-knob" }, h("span", {}, text), input);
  };
  const choice = (value, text, checked) =>
    h("label", { class: "lanes-either" }, h("input", { type: "radio", name: `${id}-as`, value, checked }), h("span", {}, text));
  const prompt = h("textarea", {
    name: "prompt", class: "lanes-input lanes-write", dir: "auto", rows: "2", spellcheck: "false", "aria-label": "Prompt",
    placeholder: "A prompt: Ctrl+Enter starts it",
  });
  const told = h("span", { class: "lanes-refused", role: "alert", id: `${id}-told` });
  const go = h("button", { type: "submit", class: "lanes-button lanes-go", title: "Start a stream (Ctrl+Enter)" }, "Start");
  const number = (input) => (input.value.trim() === "" ? null : Number(input.value));
  let asked = null;
  const start = () => {
    const of = node.elements;
    asked = port.send("start", {
      prompt: of.prompt.value, chat: of[`${id}-as`].value === "chat", max_tokens: number(of.max_tokens),
      temperature: number(of.temperature), top_p: number(of.top_p), seed: of.seed.value, logprobs: of.logprobs.checked,
    });
  };
  const node = h(
    "form",
    {
      class: "lanes-form", "aria-label": "Start a stream", novalidate: true, "data-lm-suppress-shortcuts": "true",
      onsubmit: (event) => {
        event.preventDefault();
        start();
      },
      onkeydown: (event) => {
        event.stopPropagation();
        if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
        event.preventDefault();
        if (!go.disabled) start();
      },
    },
    prompt,
    h(
      "div", { class: "lanes-row lanes-knobs" },
      h("fieldset", { class: "lanes-eithers", "aria-label": "The prompt is" }, choice("text", "text", true), choice("chat", "chat message")),
      field("max_tokens", "length", { type: "number", value: "128", min: "1" }, "Tokens at most"),
      field("temperature", "temperature", { type: "number", value: "0", min: "0", step: "0.1" }, "0 takes the likeliest token"),
      field("top_p", "top-p", { type: "number", value: "1", min: "0", max: "1", step: "0.05" }, "1 is off"),
      field("seed", "seed", { type: "text", inputmode: "numeric", placeholder: "fresh", autocomplete: "off" }, "Empty for a fresh one"),
      h("label", { class: "lanes-tick" }, h("input", { type: "checkbox", name: "logprobs", checked: true }), h("span", {}, "probabilities")),
      go,
    ),
    told,
  );
  const draw = (frame) => {
    go.disabled = frame.closed;
    const act = (frame.acts ?? []).find((one) => one.id === asked);
    if (act?.state === "queued" || act?.state === "running") asked = null; // taken: what becomes of it stands at the stream
    const why = act?.state === "refused" ? act.why : "";
    say(told, why.replace(/^max_tokens\b/, "length"));
    const named = why.match(/\w+/)?.[0] === "the" ? why.match(/prompt/)?.[0] : why.match(/\w+/)?.[0];
    for (const input of node.elements) {
      if (!input.name || input.type === "radio") continue;
      for (const [name, value] of [["aria-invalid", "true"], ["aria-describedby", told.id]]) {
        if (input.name === named) input.setAttribute(name, value);
        else input.removeAttribute(name);
      }
    }
  };
  return { node, draw };
}

function streamCard(first, port) {
  const chip = h("span", { class: "lanes-chip" });
  const figures = h("span", { class: "lanes-faint lanes-figures" });
  const drop = h(
    "button",
    { type: "button", class: "lanes-button lanes-small", "aria-label": `Cancel stream ${first.id}`, onclick: () => port.send("drop", { id: first.id }) },
    "Cancel",
  );
  const error = h("div", { class: "lanes-refused" });
  const line = h("div", { class: "lanes-faint lanes-asked", dir: "auto", "aria-live": "polite" }, first.prompt);
  const tell = (words) => {
    say(line, words || first.prompt);
    line.title = words ? "" : first.prompt;
  };
  tell("");
  const text = tokenText(port.tape(`stream ${first.id}`), tell, `Text of stream ${first.id}: arrow keys walk through its tokens`);
  const node = h(
    "article", { class: "lanes-stream", "aria-label": `Stream ${first.id}` },
    h("div", { class: "lanes-head" }, h("span", { class: "lanes-row" }, h("b", {}, `Stream ${first.id}`), chip, figures), drop),
    line, text.node, error,
  );
  const draw = (stream) => {
    const filling = stream.filled != null && stream.state === "filling";
    say(chip, filling ? `filling ${stream.filled}/${stream.size}` : stream.state);
    chip.className = `lanes-chip lanes-${stream.done ? "over" : stream.state === "queued" ? "free" : stream.state}`;
    chip.classList.toggle("lanes-refused", Boolean(stream.error));
    say(figures, [
      many(stream.size, "prompt token"), many(stream.count, "token"),
      stream.speed == null ? "" : `${stream.speed.toFixed(1)} tokens/s`,
      stream.ttft == null ? "" : `TTFT ${seconds(stream.ttft)}`,
      stream.drafts ? `${stream.drafts[0]} of ${many(stream.drafts[1], "draft")} accepted (a line above them)` : "", `seed\u00a0${stream.seed}`,
    ].filter(Boolean).join(" · "));
    drop.hidden = stream.done;
    say(error, stream.error ?? "");
    error.hidden = !stream.error;
    text.draw(stream);
  };
  return { node, draw };
}

/** A text in tokens, which grows at its end; `tell` gets words on the token that is pointed at or walked to. */
function tokenText(take, tell, label) {
  const box = h("div", { class: "lanes-text", tabindex: "0", role: "group", "aria-label": label, "data-lm-suppress-shortcuts": "true" });
  const rest = h("span", { class: "lanes-rest", title: "Held back until the stream ended" });
  let items = [];
  const spans = [];
  let block = null;
  let drawn = 0;
  let follows = true;
  let here = -1;
  let walked = false;
  const mark = (at) => {
    if (at === here) return;
    spans[here]?.classList.remove("lanes-here");
    here = at;
    spans[here]?.classList.add("lanes-here");
    tell(here < 0 ? "" : tokenWords(items[here], here));
  };
  const walk = (at) => {
    walked = true;
    mark(Math.max(0, Math.min(drawn - 1, at)));
    spans[here].scrollIntoView({ block: "nearest" });
    follows = textAtEnd(box);
  };
  const beside = (step) => {
    const from = spans[here].getBoundingClientRect();
    let best = here;
    let least = Infinity;
    let row = null;
    for (let at = here + step; at >= 0 && at < drawn; at += step) {
      const [place] = spans[at].getClientRects();
      if (!place || Math.abs(place.top - from.top) < 4) continue;
      row ??= place.top;
      if (Math.abs(place.top - row) > 4) break;
      const away = Math.abs(place.left - from.left);
      if (away < least) [least, best] = [away, at];
    }
    return best;
  };
  const steps = {
    ArrowRight: () => here + 1, ArrowLeft: () => (here < 0 ? drawn - 1 : here - 1), Home: () => 0, End: () => drawn - 1,
    ArrowDown: () => (here < 0 ? 0 : beside(1)), ArrowUp: () => (here < 0 ? drawn - 1 : beside(-1)),
  };
  box.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    if (event.key === "Escape" && here >= 0) mark(-1);
    else if (drawn && steps[event.key]) walk(steps[event.key]());
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  box.addEventListener("pointerover", (event) => {
    const span = event.target.closest(".lanes-tok");
    walked = false;
    if (span) mark(span.lanesAt);
  });
  box.addEventListener("pointerleave", () => walked || mark(-1));
  box.addEventListener("blur", () => mark(-1));
  box.addEventListener("scroll", () => { follows = textAtEnd(box); }, { passive: true });
  /** A block ends with its line, so that the page lays out the last one alone when a token comes. */
  const add = (item) => {
    if (!block) box.append((block = h("div", { dir: "auto" })));
    spans.push(tokenSpan(item, drawn));
    block.append(spans.at(-1));
    if (item[1].endsWith("\n") || block.childElementCount >= BLOCK_TOKENS) block = null;
  };
  const draw = (stream) => {
    items = take(stream.tape).items;
    if (items.length > drawn) {
      for (; drawn < items.length; drawn += 1) add(items[drawn]);
      (block ?? box).append(rest);
      if (follows) box.scrollTop = box.scrollHeight;
    }
    say(rest, drawn === stream.count ? stream.rest : "");
    box.hidden = drawn === 0;
  };
  return { node: box, draw };
}

const BLOCK_TOKENS = 1000;
const textAtEnd = (box) => box.scrollTop + box.clientHeight >= box.scrollHeight - 4;

function tokenSpan([, piece, logprob, , more], at) {
  const kind = piece === "" ? " lanes-mute" : piece.includes("\n") ? " lanes-newline" : "";
  const drafted = more?.draft ? " lanes-drafted" : "";
  const span = h("span", { class: `lanes-tok${at % 2 ? " lanes-even" : ""}${kind}${drafted}` }, piece);
  if (logprob != null && logprob < -0.7) span.style.setProperty("--odd", (1 - Math.exp(logprob)).toFixed(2));
  span.lanesAt = at;
  return span;
}

function tokenWords([id, piece, logprob, round, more], at) {
  const text = piece === "" ? `${JSON.stringify(more?.own ?? "")} adds no text` : JSON.stringify(piece);
  const share = logprob == null ? "" : `probability ${tokenShare(Math.exp(logprob))}`;
  const from = round == null ? "" : `round ${round}${more?.draft ? ", an accepted draft" : ""}`;
  return [`token ${at + 1}: ${text}`, `id ${id}`, share, from].filter(Boolean).join(" · ");
}

const tokenShare = (share) => (share < 0.001 ? `${(100 * share).toExponential(1)} %` : `${(100 * share).toFixed(share < 0.1 ? 2 : 1)} %`);
