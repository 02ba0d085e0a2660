// An answer: bars, label mass, what the model would rather say, times; and what can be done with it.
const DESK_LOW = 0.5;
const deskPercent = (p) => (p == null ? "–" : p > 0 && p < 0.0005 ? "<0.1 %" : `${(100 * p).toFixed(1)} %`);
const deskTimes = (s) => (s == null ? "–" : s < 10 ? `${(s * 1000).toFixed(s < 0.01 ? 1 : 0)} ms` : `${s.toFixed(1)} s`);
const deskShown = (part, key) => (part.type === "raw" ? deskVisible(key) : key);

function deskChip(chip, state) {
  const colours = { queued: "free", filling: "filling", branch: "decision", answered: "live" };
  say(chip, state);
  chip.className = `lanes-chip ${colours[state] ? `lanes-${colours[state]}` : ""}`;
}

function deskBar() {
  const fill = h("span", { class: "desk-share" });
  const name = h("span", { class: "desk-bar-name" });
  const value = h("span", { class: "desk-bar-value" });
  const node = h("div", { class: "desk-bar" }, name, h("span", { class: "desk-bar-track", "aria-hidden": "true" }, fill), value);
  const draw = ({ text, p, best }) => {
    say(name, text);
    name.title = text;
    say(value, deskPercent(p));
    fill.style.width = `${100 * p}%`;
    node.classList.toggle("desk-best", best);
  };
  return { node, draw };
}

function deskPart() {
  const head = h("div", { class: "lanes-row" });
  const name = h("span", { class: "lanes-faint" });
  const choice = h("b", { class: "desk-choice" });
  const sure = h("span", { class: "lanes-faint" });
  head.append(name, choice, sure);
  const bars = h("div", { class: "desk-bars" });
  const mass = h("p");
  const rather = h("div", { class: "lanes-row desk-rather" });
  const said = h("span", { class: "lanes-faint" });
  const tops = h("span", { class: "desk-pieces" });
  rather.append(said, tops);
  const foot = h("p", { class: "lanes-faint" });
  const warnings = h("p", { class: "desk-warn" });
  const node = h("div", { class: "desk-part" }, head, bars, mass, warnings, rather, foot);
  const draw = (part) => {
    say(name, part.name);
    name.hidden = !part.name;
    say(choice, part.abstained ? "none of these" : deskShown(part, part.choice));
    say(sure, part.confidence == null ? "" : `confidence ${part.confidence.toFixed(2)}`);
    keyed(bars, part.shares.map(([key, p]) => ({ key, text: deskShown(part, key), p, best: key === part.choice })), (one) => one.key, deskBar);
    const low = part.label_mass < DESK_LOW;
    mass.className = low ? "desk-warn" : "lanes-faint";
    say(mass, low ? `Label mass ${deskPercent(part.label_mass)}: the model would mostly say something else.` : `Label mass ${deskPercent(part.label_mass)}`);
    say(warnings, part.warnings.filter((one) => !(low && one.startsWith("only "))).join(" "));
    warnings.hidden = !warnings.textContent;
    rather.hidden = !part.likelier.length;
    say(said, "next token");
    keyed(tops, part.likelier.map((one, at) => ({ ...one, at })), (one) => one.at, () => {
      const own = h("code");
      return {
        node: own,
        draw: (token) => {
          say(own, `${deskVisible(token.text)} ${deskPercent(token.probability)}`);
          own.className = `desk-piece ${token.mark ? "desk-marked" : ""}`;
          own.title = { label: "one of the labels", begins: "a label begins with it" }[token.mark] ?? "not a label";
        },
      };
    });
    say(foot, deskFoot(part));
    foot.hidden = !foot.textContent;
  };
  return { node, draw };
}

function deskFoot(part) {
  const said = [];
  if (part.type === "score") said.push(`expected level ${part.value.toFixed(2)}`);
  if (part.orders > 1) said.push(`${part.orders} orders, ${part.flips} of them flipped`);
  if (part.abstain != null) said.push(`none of these ${deskPercent(part.abstain)}`);
  if (part.options > part.shares.length) said.push(`the likeliest ${part.shares.length} of ${part.options} options`);
  return said.join(" · ");
}

function deskTimed(item) {
  const tokens = item.parts.reduce((sum, part) => sum + part.prompt_tokens, 0);
  const cached = item.parts.reduce((sum, part) => sum + part.cached_tokens, 0);
  return [
    `queued ${deskTimes(item.waited)}`, `served ${deskTimes(item.served)}`, `total ${deskTimes(item.total)}`,
    item.slot == null ? "no slot" : `slot ${item.slot}`, tokens ? `${cached} of ${many(tokens, "prompt token")} cached` : "",
    item.evictions ? `evicted ${many(item.evictions, "time")}` : "",
  ].filter(Boolean).join(" · ");
}

function deskAnswer(actions) {
  let shown = null;
  const title = h("h4", {});
  const chip = h("span", { class: "lanes-chip" });
  const drop = deskButton("Cancel", () => actions.withdraw(shown.number), "lanes-small");
  const asked = h("p", { class: "lanes-faint desk-clip" });
  const empty = h("p", { class: "lanes-faint" }, "Nothing has been asked yet. Ask with Ctrl+Enter, or tick live and type.");
  const parts = h("div", { class: "desk-parts" });
  const error = h("p", { class: "desk-warn" });
  const times = h("p", { class: "lanes-faint" });
  const back = deskButton("Put back", () => actions.putBack(shown), "lanes-small");
  const word = (text, form, hint) => {
    const button = deskButton(text, () => actions.word(shown, form), "lanes-small");
    button.title = hint;
    return button;
  };
  const hands = h(
    "div", { class: "lanes-row" }, back, word("Copy as Python", "python", "The same call, for a cell"),
    word("Copy as curl", "curl", "For a served engine. It words the prompt itself: the numbers of a raw decision will differ"),
    word("Prompt as read", "prompt", "The whole text that the model read"),
  );
  const words = deskArea("", 8, { readonly: true, class: "desk-code", "aria-label": "In words" });
  const told = h("span", { class: "lanes-faint", role: "status" });
  const hide = deskButton("Close", () => (paper.hidden = true), "lanes-small");
  const paper = h("div", { class: "desk-stack desk-tight" }, h("div", { class: "lanes-head" }, told, hide), words);
  paper.hidden = true;
  const node = h(
    "section", { class: "desk-answer desk-stack", "aria-label": "Answer" },
    h("div", { class: "lanes-row", role: "status" }, title, chip, drop), asked, empty, parts, error, times, hands, paper,
  );
  const draw = (item) => {
    const first = shown?.number !== item?.number;
    shown = item;
    if (first) paper.hidden = true;
    const over = Boolean(item?.parts);
    for (const one of [title, chip, asked]) one.hidden = !item;
    empty.hidden = Boolean(item);
    hands.hidden = times.hidden = !parts.children.length && !over;
    for (const one of [parts, times]) one.classList.toggle("desk-stale", !over);
    for (const one of hands.children) one.disabled = !over;
    drop.hidden = !item || over;
    node.setAttribute("aria-busy", String(Boolean(item) && !over));
    if (!item) return keyed(parts, [], String, deskPart);
    say(title, `Decision ${item.number}`);
    title.title = item.id == null ? "" : `decision ${item.id} of the engine`;
    deskChip(chip, item.state);
    say(asked, item.short);
    if (!over) return; // the last answer stays, faint, until there is another one
    keyed(parts, item.parts.map((part, at) => ({ ...part, at })), (part) => `${part.at} ${part.type}`, deskPart);
    say(error, item.error);
    error.hidden = !item.error;
    say(times, deskTimed(item));
    hands.hidden = times.hidden = false;
    back.disabled = !item.asked;
    back.title = item.asked ? "Load what was asked into the composer" : "What was asked is too long to be sent here: it is in desk.past";
  };
  const put = (form, text) => {
    words.value = text;
    paper.hidden = false;
    const mind = form === "curl" ? " It needs an engine that is served; that words the prompt itself." : "";
    if (form === "prompt") return say(told, "The prompt as the model read it");
    const byHand = () => {
      words.focus();
      words.select();
      say(told, `${document.execCommand("copy") ? "Copied." : "Press Ctrl+C to copy."}${mind}`);
    };
    if (!navigator.clipboard) return byHand();
    navigator.clipboard.writeText(text).then(() => say(told, `Copied.${mind}`), byHand);
  };
  return { node, draw, put };
}
