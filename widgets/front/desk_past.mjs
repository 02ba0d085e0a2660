// What was asked before: a table, and two of its entries side by side.
function deskPast(actions) {
  const head = ["", "no.", "question", "choice", "p", "mass", "total", "state", "asked", "kind", "slot", ""];
  const rows = h("tbody");
  const table = h("table", { class: "lanes-table lanes-acting desk-history" }, h("thead", {}, h("tr", {}, ...head.map((name) => h("th", { scope: "col" }, name)))), rows);
  const clear = deskButton("Clear", actions.forget, "lanes-small");
  const hint = h("span", { class: "lanes-faint" }, "tick one to see it again, two to compare them");
  const node = h(
    "section", { "aria-label": "History" },
    h("div", { class: "lanes-head" }, h("div", { class: "lanes-row" }, h("b", {}, "History"), hint), clear), h("div", { class: "lanes-scroll" }, table),
  );
  const draw = (items, picked, shown) => {
    node.hidden = !items.length;
    clear.disabled = !items.some((item) => item.parts);
    keyed(rows, items, (item) => item.number, (item) => deskRow(item, actions));
    for (const item of items) rows.lanesKeyed.get(String(item.number)).mark(picked.includes(item.number), shown === item.number);
  };
  return { node, draw };
}

function deskRow(first, actions) {
  const box = h("input", { type: "checkbox", "aria-label": `Select decision ${first.number}`, onchange: () => actions.tick(first.number) });
  const chip = h("span", { class: "lanes-chip" });
  const names = ["number", "question", "choice", "p", "mass", "total", "state", "asked", "kind", "slot"];
  const cells = Object.fromEntries(names.map((name) => [name, h("td", { class: `desk-of-${name}` })]));
  cells.state.append(chip);
  const drop = deskButton("Cancel", () => actions.withdraw(first.number), "lanes-small");
  drop.setAttribute("aria-label", `Cancel decision ${first.number}`);
  const node = h(
    "tr", { onclick: (event) => event.target.closest("input, button") || actions.show(first.number) },
    h("td", {}, box), ...Object.values(cells), h("td", {}, drop),
  );
  const draw = (item) => {
    const parts = item.parts ?? [];
    const all = (pick) => parts.map(pick).join(", ") || "–";
    box.disabled = !item.parts;
    say(cells.number, String(item.number));
    say(cells.asked, new Date(item.at * 1000).toLocaleTimeString());
    say(cells.kind, item.kind);
    say(cells.question, item.short);
    cells.question.title = item.short;
    say(cells.choice, all((part) => (part.name ? `${part.name}: ${part.choice}` : deskVisible(part.choice))));
    cells.choice.title = cells.choice.textContent;
    say(cells.p, all((part) => deskPercent(part.p)));
    say(cells.mass, all((part) => deskPercent(part.label_mass)));
    cells.mass.classList.toggle("desk-warn", parts.some((part) => part.label_mass < DESK_LOW));
    say(cells.total, deskTimes(item.total));
    say(cells.slot, item.slot == null ? "–" : String(item.slot));
    deskChip(chip, item.state);
    drop.hidden = Boolean(item.parts);
  };
  const mark = (ticked, shown) => {
    box.checked = ticked;
    node.classList.toggle("desk-chosen", ticked || shown);
  };
  return { node, draw, mark };
}

/** What was asked, as texts by name. */
function deskTexts(item) {
  const { asked } = item;
  if (!asked) return {};
  if (item.kind === "raw") {
    const prompt = typeof asked.prompt === "string" ? asked.prompt : asked.prompt.map((one) => `${one.role}: ${one.content}`).join("\n");
    return { prompt, labels: asked.labels.map(deskVisible).join(" | ") };
  }
  const told = (one) => `${one.instructions} (${DESK_KINDS[one.kind]}) ${one.options.map(({ key, text }) => [key, text].filter(Boolean).join(": ")).join(" | ")}`;
  return {
    state: asked.state,
    ...Object.fromEntries(asked.questions.map((one) => [one.name, told(one)])),
    method: asked.method, orders: String(asked.orders), prior: asked.prior ?? "none", abstain: asked.abstain ? "offered" : "not offered",
  };
}

/** Two texts without what they share: [shared, own, shared] of each, long shared stretches cut. */
function deskDiff(one, other) {
  const most = Math.min(one.length, other.length);
  let start = 0;
  while (start < most && one[start] === other[start]) start += 1;
  let end = 0;
  while (end < most - start && one.at(-1 - end) === other.at(-1 - end)) end += 1;
  const cut = (text) => {
    const [before, after] = [text.slice(0, start), text.slice(text.length - end)];
    return [before.length > 60 ? `…${before.slice(-60)}` : before, text.slice(start, text.length - end), after.length > 60 ? `${after.slice(0, 60)}…` : after];
  };
  return [cut(one), cut(other)];
}

function deskCompare(actions) {
  const title = h("b");
  const told = h("p", { class: "lanes-faint" });
  const texts = h("div", { class: "desk-stack desk-tight" });
  const rows = h("tbody");
  const [left, right] = [h("th", { scope: "col" }), h("th", { scope: "col" })];
  const table = h("div", { class: "lanes-scroll" }, h("table", { class: "lanes-table" }, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "option"), left, right, h("th", { scope: "col" }, "change"))), rows));
  const node = h(
    "section", { class: "desk-part", "aria-label": "Comparison" },
    h("div", { class: "lanes-head" }, title, deskButton("Close", actions.untick, "lanes-small")), told, texts, table,
  );
  let drawn = "";
  const draw = (pair) => {
    node.hidden = !pair;
    const name = pair ? pair.map((item) => item.number).join(" ") : "";
    if (name === drawn) return; // entries are frozen
    drawn = name;
    if (!pair) return;
    const [one, other] = pair;
    say(title, `Decisions ${one.number} and ${other.number}`);
    const [mine, its] = pair.map(deskTexts);
    const names = [...new Set([...Object.keys(mine), ...Object.keys(its)])].filter((key) => mine[key] !== its[key]);
    say(told, !one.asked || !other.asked ? "What was asked is too long to be compared here." : names.length ? "" : "Both asked the same.");
    told.hidden = !told.textContent;
    texts.replaceChildren(...names.map((key) => deskDifference(key, pair, mine[key] ?? "", its[key] ?? "")));
    say(left, `decision ${one.number}`);
    say(right, `decision ${other.number}`);
    rows.replaceChildren(...deskPaired(one, other));
  };
  return { node, draw };
}

function deskDifference(name, pair, mine, its) {
  const lines = deskDiff(mine, its).map(([before, own, after], at) =>
    h("div", { class: "desk-diff" }, h("span", { class: "lanes-faint" }, String(pair[at].number)), h("span", {}, before, own ? h("mark", {}, own) : h("mark", { class: "desk-nothing" }, "∅"), after)));
  return h("div", {}, h("span", { class: "lanes-faint" }, name), ...lines);
}

function deskPaired(one, other) {
  const single = one.parts.length === 1 && other.parts.length === 1;
  const names = single ? [one.parts[0].name] : [...new Set([...one.parts, ...other.parts].map((part) => part.name))];
  return names.flatMap((name) => {
    const parts = [one, other].map((item) => (single ? item.parts[0] : item.parts.find((part) => part.name === name)));
    const keys = [...new Set(parts.flatMap((part) => (part ? part.shares.map(([key]) => key) : [])))];
    const raw = parts.find(Boolean).type === "raw";
    const line = (text, [mine, its], plain) => {
      const cell = (p) => h("td", {}, ...(p == null ? ["–"] : [h("span", { class: "lanes-meter desk-wide", "aria-hidden": "true" }, deskFill(p, plain)), deskPercent(p)]));
      const change = mine == null || its == null ? "–" : deskChange(100 * (its - mine));
      return h("tr", {}, h("th", { scope: "row" }, text), cell(mine), cell(its), h("td", {}, change));
    };
    const share = (part, key) => part?.shares.find(([own]) => own === key)?.[1];
    const title = single || !name ? [] : [h("tr", {}, h("th", { scope: "rowgroup", colspan: 4, class: "lanes-faint" }, name))];
    return [...title, ...keys.map((key) => line(raw ? deskVisible(key) : key, parts.map((part) => share(part, key)))), line("label mass", parts.map((part) => part?.label_mass), true)];
  });
}

/** A change in points with its sign; none where there is nothing to see. */
function deskChange(points) {
  const size = Math.abs(points).toFixed(1);
  return size === "0.0" ? size : `${points > 0 ? "+" : "−"}${size}`;
}

function deskFill(p, plain) {
  const fill = h("span", { class: plain ? "lanes-fill" : "lanes-fill desk-share" });
  fill.style.width = `${100 * p}%`;
  return fill;
}
