// What can be seen of a draft while it is typed: tokens, faults; and the inspector's report.
function deskLook(actions) {
  const count = h("span");
  const ending = h("span", { class: "desk-pieces", role: "group", "aria-label": "The last tokens" });
  const fault = h("p", { class: "desk-warn" });
  const list = h("ul", { class: "desk-looks" });
  const more = h("p", { class: "lanes-faint" });
  const inspect = deskButton("More about these labels", actions.inspect, "lanes-small");
  inspect.title = "Runs the model: likelier spellings, what it would rather say, what to change";
  const node = h(
    "div", { class: "desk-look", role: "region", "aria-label": "Tokens" },
    h("div", { class: "lanes-row lanes-faint" }, count, ending), fault, list, more, inspect,
  );
  const draw = (look, stale, raw) => {
    inspect.hidden = !raw;
    node.classList.toggle("desk-stale", stale || !look || look.kind !== (raw ? "raw" : "typed"));
    if (!look || look.kind !== (raw ? "raw" : "typed")) return;
    say(count, deskCounted(look));
    deskPieces(ending, look.ending ?? []);
    say(fault, look.fault);
    fault.hidden = !look.fault;
    const items = raw ? look.labels : look.questions;
    keyed(list, items.map((one, at) => ({ ...one, at })), (one) => `${look.kind} ${one.at}`, raw ? deskLabel : deskAsked);
    say(more, look.more ? `and ${look.more} more` : "");
    more.hidden = !look.more;
  };
  return { node, draw };
}

function deskCounted(look) {
  if (look.kind === "raw") return look.tokens == null ? "" : `prompt: ${many(look.tokens, "token")}, ending in`;
  return look.shared == null ? "" : `${many(look.shared, "token")} shared by all questions, filled once`;
}

function deskLabel() {
  const pieces = h("span", { class: "desk-pieces" });
  const chip = h("span", { class: "desk-warn" });
  const words = h("p");
  const node = h("li", {}, pieces, chip, words);
  const draw = (label) => {
    deskPieces(pieces, label.pieces);
    say(chip, label.problem || (label.count > label.pieces.length ? `${label.count} tokens` : ""));
    say(words, label.fault || label.note);
    words.className = label.fault ? "desk-warn" : "lanes-faint";
    words.hidden = !words.textContent;
    node.setAttribute("aria-label", label.text);
  };
  return { node, draw };
}

function deskAsked() {
  const name = h("b");
  const tokens = h("span", { class: "lanes-faint" });
  const labels = h("span", { class: "desk-pieces" });
  const words = h("p", { class: "desk-warn" });
  const node = h("li", {}, name, tokens, labels, words);
  const draw = (question) => {
    say(name, question.name);
    say(tokens, question.tokens == null ? "" : ` ${many(question.tokens, "token")}, then one of `);
    keyed(labels, question.labels.map((one, at) => ({ ...one, at })), (one) => one.at, () => {
      const own = h("span", { class: "desk-pieces" });
      return { node: own, draw: (label) => deskPieces(own, label.pieces) };
    });
    say(words, question.fault);
    words.hidden = !question.fault;
  };
  return { node, draw };
}

/** The report of `lanes.inspect_labels`. */
function deskReport(actions) {
  const title = h("b");
  const stop = deskButton("Cancel", actions.putAway, "lanes-small");
  const error = h("p", { class: "desk-warn" });
  const head = h("tr");
  const rows = h("tbody");
  const table = h("div", { class: "lanes-scroll" }, h("table", { class: "lanes-table" }, h("thead", {}, head), rows));
  const notes = h("ul", { class: "desk-plain lanes-faint" });
  const better = h("ul", { class: "desk-plain" });
  const node = h("section", { class: "desk-part", "aria-label": "Label inspector" }, h("div", { class: "lanes-head" }, title, stop), error, table, better, notes);
  const tops = h("div", { class: "desk-pieces" });
  node.insertBefore(tops, better);
  const lines = (parent, texts) => keyed(parent, texts, (text) => text, (text) => ({ node: h("li", {}, text), draw() {} }));
  const draw = (found) => {
    node.hidden = !found;
    if (!found) return;
    say(title, found.running ? "The inspector runs…" : (found.title ?? "The inspector"));
    say(stop, found.running ? "Cancel" : "Close");
    say(error, found.error);
    table.hidden = !found.rows;
    if (!head.children.length && found.head) head.append(...found.head.map((name) => h("th", { scope: "col" }, name)));
    keyed(rows, (found.rows ?? []).map((cells, at) => ({ cells, at })), (row) => row.at, () => {
      const own = h("tr");
      return {
        node: own,
        draw: ({ cells }) => keyed(own, cells.map((text, at) => ({ text, at })), (cell) => cell.at, () => {
          const cell = h("td");
          return { node: cell, draw: ({ text }) => say(cell, text) };
        }),
      };
    });
    lines(notes, found.notes ?? []);
    keyed(tops, (found.top ?? []).map(([text, p], at) => ({ text, p, at })), (one) => one.at, () => {
      const own = h("code", { class: "desk-piece" });
      return { node: own, draw: ({ text, p }) => say(own, `${deskVisible(text)} ${deskPercent(p)}`) };
    });
    keyed(better, found.suggestions ?? [], (one) => one.text, (one) => ({
      node: h("li", { class: "lanes-row" }, deskButton("Use", () => actions.use(one), "lanes-small"), one.text),
      draw() {},
    }));
  };
  return { node, draw };
}
