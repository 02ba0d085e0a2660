// The composer: a raw prompt with labels, or typed questions. Both drafts stay in the page, one of them is shown.
const DESK_RAW = { prompt: "Review: The room was cold and the soup was colder.\nSentiment:", labels: [" positive", " negative"] };
const DESK_TYPED = {
  state: "I was charged twice!", as_json: false, method: "codes", orders: 1, prior: null, abstain: false,
  questions: [
    { name: "team", kind: "choice", instructions: "Which team should answer?", options: [{ key: "billing", text: "Charges and payments" }, { key: "other", text: "" }] },
    { name: "angry", kind: "noul", instructions: "Is the customer angry?", options: [] },
  ],
};
const DESK_HINTS = { choice: "its meaning, if you like", noul: "what counts, if you like", score: "what this level means" };
const DESK_KINDS = { choice: "one of several", noul: "yes or no", score: "a level" };

const deskField = (label, control, wide = "") => h("label", { class: `desk-field ${wide}` }, h("span", {}, label), control);
const deskInput = (value = "", attributes = {}) => {
  const node = h("input", { type: "text", dir: "auto", spellcheck: "false", autocomplete: "off", ...attributes });
  node.value = value;
  return node;
};
const deskArea = (value, rows, attributes = {}) => {
  const node = h("textarea", { rows, dir: "auto", spellcheck: "false", ...attributes });
  node.value = value;
  return node;
};
const deskChoose = (options, value) => {
  const node = h("select", {}, ...Object.entries(options).map(([key, text]) => h("option", { value: key }, text)));
  node.value = value;
  return node;
};
const deskButton = (text, onclick, more = "") => h("button", { type: "button", class: `lanes-button ${more}`, onclick }, text);

/** Buttons of which one is pressed. */
function deskSwitch(name, options, changed) {
  let value = Object.keys(options)[0];
  const buttons = Object.entries(options).map(([key, text]) => [key, h("button", { type: "button", onclick: () => pick(key, true) }, text)]);
  const pick = (key, told) => {
    value = key;
    for (const [own, button] of buttons) button.setAttribute("aria-pressed", String(own === key));
    changed(key, told);
  };
  const node = h("div", { class: "desk-switch", role: "group", "aria-label": name }, ...buttons.map(([, button]) => button));
  return { node, pick, value: () => value };
}

/** A text with its spaces and line breaks to be seen. */
const deskVisible = (text) => text.replace(/^ +| +$/g, (run) => "·".repeat(run.length)).replaceAll("\n", "⏎").replaceAll("\t", "⇥");

function deskPieces(parent, pairs) {
  keyed(parent, pairs.map(([id, text], at) => ({ at, id, text })), (one) => one.at, () => {
    const node = h("code", { class: "desk-piece" });
    return {
      node,
      draw: ({ id, text }) => {
        say(node, text.replaceAll(" ", "·").replaceAll("\n", "⏎"));
        node.title = `token ${id}`;
      },
    };
  });
}

function deskRaw(changed) {
  const text = deskArea("", 5, { class: "desk-code" });
  const system = deskArea("", 2, { placeholder: "none" });
  const user = deskArea("", 4);
  const labels = deskArea("", 3, { class: "desk-code" });
  const plain = deskField("Prompt", text);
  const chat = h("div", { class: "desk-stack" }, deskField("System", system), deskField("User", user));
  const way = deskSwitch("Prompt as", { text: "Text", chat: "Chat" }, (key, told) => {
    plain.hidden = key !== "text";
    chat.hidden = key !== "chat";
    if (told) changed();
  });
  const lines = () => labels.value.split("\n").filter((line) => line !== "");
  const space = deskButton("Leading space", () => {
    const given = lines();
    const all = given.every((line) => line.startsWith(" "));
    labels.value = given.map((line) => (all ? line.replace(/^ +/, "") : line.startsWith(" ") ? line : ` ${line}`)).join("\n");
    changed();
  }, "lanes-small");
  space.title = "Begin every label with a space, or none";
  const node = h(
    "div", { class: "desk-stack" }, h("div", { class: "lanes-row" }, h("span", { class: "lanes-faint" }, "as"), way.node), plain, chat,
    h("div", { class: "desk-stack desk-tight" }, deskField("Labels, one a line", labels), h("div", { class: "lanes-row" }, space)),
  );
  const load = ({ prompt, labels: given }) => {
    const said = (role) => prompt.find((message) => message.role === role)?.content ?? "";
    if (typeof prompt === "string") text.value = prompt;
    else [system.value, user.value] = [said("system"), said("user")];
    labels.value = given.join("\n");
    way.pick(typeof prompt === "string" ? "text" : "chat", false);
  };
  const read = () => {
    const first = system.value ? [{ role: "system", content: system.value }] : [];
    return { prompt: way.value() === "text" ? text.value : [...first, { role: "user", content: user.value }], labels: lines() };
  };
  load(DESK_RAW);
  return { node, load, read };
}

/** Rows of options: key and description (choice), a description for each of two keys (noul), a description (score). */
function deskOptions(kind, given, changed) {
  const rows = [];
  const list = h("div", { class: "desk-stack desk-tight" });
  const number = () => rows.forEach((row, at) => row.numbered(at));
  const add = (option = { key: "", text: "" }) => {
    const key = deskInput(option.key, { class: "desk-key", placeholder: "option" });
    const about = deskInput(option.text, { placeholder: DESK_HINTS[kind] });
    const drop = deskButton("×", () => {
      rows.splice(rows.indexOf(row), 1);
      row.node.remove();
      number();
      changed();
    }, "lanes-small");
    const level = h("span", { class: "desk-key lanes-faint" });
    const first = kind === "choice" ? key : level;
    const node = h("div", { class: "desk-option" }, first, about, ...(kind === "noul" ? [] : [drop]));
    const numbered = (at) => {
      say(level, kind === "noul" ? (option.key === "true" ? "Yes" : "No") : `level ${at}`);
      key.setAttribute("aria-label", `Option ${at + 1}`);
      about.setAttribute("aria-label", kind === "noul" ? `What counts as ${level.textContent}` : `Description ${at + 1}`);
      drop.setAttribute("aria-label", `Remove ${kind === "score" ? "level" : "option"} ${kind === "score" ? at : at + 1}`);
    };
    const row = { node, numbered, focus: () => (kind === "choice" ? key : about).focus(), read: () => ({ key: kind === "choice" ? key.value : kind === "noul" ? option.key : "", text: about.value }) };
    rows.push(row);
    list.append(node);
    number();
    return row;
  };
  given.forEach(add);
  const more = deskButton(kind === "score" ? "Add level" : "Add option", () => {
    add().focus();
    changed();
  }, "lanes-small");
  const node = h("div", { class: "desk-stack desk-tight" }, list, ...(kind === "noul" ? [] : [h("div", {}, more)]));
  return { node, read: () => rows.map((row) => row.read()) };
}

function deskQuestion(given, changed, drop) {
  const name = deskInput(given.name, { class: "desk-key" });
  const kind = deskChoose(DESK_KINDS, given.kind);
  const ask = deskInput(given.instructions, { placeholder: "the question" });
  const blank = { key: "", text: "" };
  const sides = ["true", "false"].map((key) => ({ key, text: given.options.find((one) => one.key === key)?.text ?? "" }));
  const own = (of) => (given.kind === of && given.options.length ? given.options : [blank, blank]);
  const options = { choice: deskOptions("choice", own("choice"), changed), noul: deskOptions("noul", sides, changed), score: deskOptions("score", own("score"), changed) };
  const show = () => Object.entries(options).forEach(([key, one]) => (one.node.hidden = key !== kind.value));
  kind.addEventListener("change", show);
  show();
  const node = h(
    "fieldset", { class: "desk-question desk-stack" }, h("legend", { class: "desk-unseen" }, "Question"),
    h("div", { class: "desk-option" }, deskField("Name", name), deskField("Kind", kind), deskButton("Remove", () => drop(), "lanes-small desk-end")),
    deskField("Question", ask), ...Object.values(options).map((one) => one.node),
  );
  return { node, focus: () => ask.focus(), read: () => ({ name: name.value, kind: kind.value, instructions: ask.value, options: options[kind.value].read() }) };
}

function deskTyped(changed) {
  const state = deskArea("", 4);
  const json = h("input", { type: "checkbox" });
  const method = deskChoose({ codes: "codes", labels: "their own words" }, "codes");
  const orders = deskChoose({ 1: "1", 2: "2", 4: "4", auto: "auto" }, "1");
  const prior = deskChoose({ none: "none", contextual: "contextual" }, "none");
  const abstain = h("input", { type: "checkbox" });
  const list = h("div", { class: "desk-stack" });
  let questions = [];
  const add = (given) => {
    const one = deskQuestion(given, changed, () => {
      questions = questions.filter((other) => other !== one);
      one.node.remove();
      changed();
    });
    questions.push(one);
    list.append(one.node);
    return one;
  };
  const fresh = () => {
    const names = questions.map((one) => one.read().name);
    const number = [...names, ""].findIndex((_, at) => !names.includes(`q${at + 1}`)) + 1;
    add({ name: `q${number}`, kind: "noul", instructions: "", options: [] }).focus();
    changed();
  };
  const check = (box, text) => h("label", { class: "desk-check" }, box, text);
  const node = h(
    "div", { class: "desk-stack" }, deskField("State: what is judged", state), check(json, "the state is JSON"), list,
    h("div", {}, deskButton("Add question", fresh)),
    h("div", { class: "lanes-row desk-manner" }, deskField("Answers read as", method), deskField("Orders", orders), deskField("Prior", prior), check(abstain, "offer none of these")),
  );
  const load = (given) => {
    state.value = given.state;
    json.checked = given.as_json;
    method.value = given.method;
    if (![...orders.options].some((one) => one.value === String(given.orders))) orders.append(h("option", {}, String(given.orders)));
    orders.value = String(given.orders);
    prior.value = given.prior ?? "none";
    abstain.checked = given.abstain;
    list.replaceChildren();
    questions = [];
    given.questions.forEach(add);
  };
  const read = () => ({
    state: state.value, as_json: json.checked, questions: questions.map((one) => one.read()), method: method.value,
    orders: orders.value === "auto" ? "auto" : Number(orders.value), prior: prior.value === "none" ? null : prior.value, abstain: abstain.checked,
  });
  load(DESK_TYPED);
  return { node, load, read };
}
