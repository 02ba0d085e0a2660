// The board: the engine's hands, its slots, its queue, and its last round in words.
const STATES = { free: "free", filling: "filling", branch: "branches", live: "live" };

PANELS.board = (port) => {
  const button = (what, text, title) =>
    h("button", { type: "button", class: "lanes-button", title, onclick: () => port.send(what) }, text);
  const hold = h("button", { type: "button", class: "lanes-button", onclick: () => toggle() });
  const toggle = () => port.send(port.frame().board.paused ? "resume" : "pause");
  const hands = h(
    "div", { class: "lanes-row", role: "toolbar", "aria-label": "Rounds" },
    hold, button("step", "One round", "Run one round, then hold ( . )"),
    button("slower", "Slower", "Half as many rounds a second ( - )"),
    button("faster", "Faster", "Twice as many rounds a second ( + )"),
  );
  const mode = h("span", { class: "lanes-faint" });
  const slots = h("tbody");
  const head = ["slot", "state", "holder", "prompt", "context", "tokens", "tokens/s", "gap", "last end", ""];
  const table = h(
    "table", { class: "lanes-table lanes-acting" },
    h("thead", {}, h("tr", {}, ...head.map((name) => h("th", { scope: "col" }, name)))), slots,
  );
  const queue = h("ol", { class: "lanes-queue", "aria-label": "Queue" });
  const nobody = h("span", { class: "lanes-faint" }, "nobody waits");
  const said = h("p", { class: "lanes-said" });
  const totals = h("div", { class: "lanes-faint lanes-totals" });
  const keys = { " ": toggle, ".": () => port.send("step"), "-": () => port.send("slower"), "+": () => port.send("faster") };
  const node = h(
    "section",
    {
      class: "lanes-panel", tabindex: "0", "aria-label": "Board: space pauses and resumes, point runs one round, minus and plus change the pace",
      onkeydown: (event) => {
        if (event.target !== node || !keys[event.key]) return;
        event.preventDefault();
        event.stopPropagation();
        keys[event.key]();
      },
    },
    h("div", { class: "lanes-row lanes-apart" }, hands, mode), h("div", { class: "lanes-scroll lanes-slots" }, table),
    h("div", { class: "lanes-row" }, h("b", {}, "Queue"), queue, nobody), totals, said,
  );
  const give = (id) => port.send("cancel", { id });
  const draw = (board, { closed }) => {
    say(hold, board.paused ? "Resume" : "Pause");
    hold.title = board.paused ? "Go on ( space )" : "Hold before the next round ( space )";
    for (const one of hands.children) one.disabled = closed;
    const pace = board.pace == null ? "full speed" : `at most ${board.pace} rounds/s`;
    const goes = closed ? "closed" : board.paused ? "paused" : `${board.rate.toFixed(1)} rounds/s`;
    say(mode, [goes, closed ? "" : pace, `policy ${board.policy}`].filter(Boolean).join(" · "));
    keyed(slots, board.slots, (slot) => slot.index, (slot) => slotRow(slot, give));
    keyed(queue, board.waiting, (item) => item.id, (item) => waiter(item, give));
    nobody.hidden = board.waiting.length > 0;
    said.setAttribute("aria-live", board.paused ? "polite" : "off"); // round by round it can be listened to
    say(said, board.said.join(" "));
    say(totals, [
      many(board.round, "round"), many(board.tokens, "token"), many(board.streams, "stream"), many(board.decisions, "decision"), board.model,
    ].join(" · "));
  };
  return { node, draw };
};

function slotRow(first, give) {
  const chip = h("span", { class: "lanes-chip" });
  const bar = h("span", { class: "lanes-fill" });
  const filled = h("span");
  const cells = { holder: h("td"), context: h("td"), generated: h("td"), speed: h("td"), gap: h("td"), last: h("td") };
  let held = null;
  const drop = h("button", { type: "button", class: "lanes-button lanes-small", onclick: () => give(held) }, "Cancel");
  const prompt = h("td", { class: "lanes-filling-of" }, filled, h("span", { class: "lanes-meter", "aria-hidden": "true" }, bar));
  const node = h(
    "tr", {}, h("th", { scope: "row" }, String(first.index)), h("td", {}, chip), cells.holder, prompt,
    cells.context, cells.generated, cells.speed, cells.gap, cells.last, h("td", {}, drop),
  );
  const draw = (slot) => {
    const free = slot.state === "free";
    held = slot.id;
    say(chip, STATES[slot.state]);
    chip.className = `lanes-chip lanes-${slot.kind === "decision" ? "decision" : slot.state}`;
    say(cells.holder, free ? "–" : `${slot.kind} ${slot.id}`);
    say(filled, free ? "–" : `${slot.filled}/${slot.prompt}`);
    bar.style.width = free ? "0" : `${(100 * slot.filled) / Math.max(1, slot.prompt)}%`;
    bar.parentNode.style.visibility = slot.state === "filling" ? "" : "hidden"; // its place stays, so that nothing jumps
    say(cells.context, free ? "–" : `${(100 * slot.context).toFixed(1)} %`);
    say(cells.generated, free ? "–" : String(slot.generated));
    say(cells.speed, slot.speed == null ? "–" : slot.speed.toFixed(1));
    say(cells.gap, seconds(slot.gap));
    say(cells.last, slot.last ?? "–");
    cells.last.classList.toggle("lanes-refused", slot.last === "error");
    drop.hidden = free;
    drop.setAttribute("aria-label", `Cancel ${slot.kind} ${slot.id}`);
  };
  return { node, draw };
}

function waiter(first, give) {
  const words = h("span");
  const drop = h(
    "button",
    { type: "button", class: "lanes-button lanes-small", "aria-label": `Cancel ${first.kind} ${first.id}`, onclick: () => give(first.id) },
    "Cancel",
  );
  const node = h("li", {}, words, drop);
  return { node, draw: (item) => say(words, `${item.kind} ${item.id} · ${item.prompt} tokens · ${item.age.toFixed(1)} s `) };
}
