// The desk: a composer, an answer, a history. What is typed, ticked and shown belongs to one view; the rest to all.
const DESK_LOOK_MS = 250;
const DESK_LIVE_MS = 400;

PANELS.desk = (port) => {
  const view = Math.random().toString(36).slice(2);
  const take = port.tape("done");
  let [draft, act, words, awaited, picked, closed] = [0, "", 0, "", [], false];
  let [lookTimer, liveTimer] = [0, 0];

  const changed = () => {
    draft += 1;
    act = "";
    say(refused, "");
    clearTimeout(lookTimer);
    clearTimeout(liveTimer);
    if (closed) return;
    lookTimer = setTimeout(look, DESK_LOOK_MS);
    if (live.checked) liveTimer = setTimeout(() => ask(true), DESK_LIVE_MS);
    draw();
  };
  const drafts = { raw: deskRaw(changed), typed: deskTyped(changed) };
  const kind = deskSwitch("What to compose", { raw: "Raw", typed: "Typed" }, (key, told) => {
    for (const [name, one] of Object.entries(drafts)) one.node.hidden = name !== key;
    if (told) changed();
  });
  const own = () => drafts[kind.value()].read();
  const look = () => port.send(kind.value() === "raw" ? "look" : "look_typed", { view, draft, ...own() });
  const ask = (byItself) => {
    if (closed) return;
    clearTimeout(liveTimer);
    if (!byItself) picked = [];
    act = port.send(kind.value() === "raw" ? "ask" : "ask_typed", { ...own(), live: live.checked });
  };
  const load = (name, asked) => {
    drafts[name].load(asked);
    kind.pick(name, true);
  };
  const actions = {
    inspect: () => port.send("inspect", { view, ...drafts.raw.read() }),
    putAway: () => port.send("inspect_no_more"),
    use: ({ labels, prompt }) => load("raw", { prompt: prompt ?? drafts.raw.read().prompt, labels }),
    withdraw: (number) => port.send("withdraw", { number }),
    putBack: (item) => load(item.kind, item.asked),
    word: (item, form) => {
      awaited = `${view}-${(words += 1)}`;
      port.send("word", { number: item.number, form, view: awaited });
    },
    forget: () => port.send("forget"),
    tick: (number) => {
      picked = picked.includes(number) ? picked.filter((one) => one !== number) : [...picked, number].slice(-2);
      draw();
    },
    show: (number) => {
      picked = [number];
      draw();
    },
    untick: () => {
      picked = [];
      draw();
    },
  };

  const go = deskButton("Ask", () => ask(false), "desk-main");
  go.title = "Ctrl+Enter";
  const live = h("input", { type: "checkbox", onchange: () => live.checked && ask(true) });
  const refused = h("p", { class: "desk-warn", role: "alert" });
  const seen = deskLook(actions);
  const report = deskReport(actions);
  const form = h(
    "form", { class: "desk-composer desk-stack", "aria-label": "Composer: Ctrl+Enter asks", onsubmit: (event) => event.preventDefault(), oninput: (event) => event.target !== live && changed() },
    kind.node, drafts.raw.node, drafts.typed.node,
    h("div", { class: "lanes-row" }, go, h("label", { class: "desk-check" }, live, "live: ask while I type")), refused, seen.node,
  );
  const answer = deskAnswer(actions);
  const past = deskPast(actions);
  const compare = deskCompare(actions);
  const node = h(
    "section",
    {
      class: "lanes-panel lanes-desk desk-stack", "aria-label": "Desk", "data-lm-suppress-shortcuts": "true",
      onkeydown: (event) => {
        event.stopPropagation();
        if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || !form.contains(event.target)) return;
        event.preventDefault();
        ask(false);
      },
    },
    h("div", { class: "desk-two" }, form, answer.node), report.node, compare.node, past.node,
  );
  kind.pick("raw", false);
  lookTimer = setTimeout(look, 0);

  const draw = (desk = port.frame().desk, frame = port.frame()) => {
    if (!desk) return;
    closed = frame.closed;
    go.disabled = live.disabled = closed;
    const known = take(desk.done);
    forgetItems(known, desk.gone);
    const items = [...desk.running].reverse().concat([...known.items].reverse());
    picked = picked.filter((number) => items.some((item) => item.number === number));
    const chosen = picked.length === 1 ? items.find((item) => item.number === picked[0]) : items[0];
    answer.draw(chosen);
    past.draw(items, picked, chosen?.number);
    const pair = picked.length === 2 && items.filter((item) => picked.includes(item.number)).reverse();
    compare.draw(pair || null);
    const found = desk.looks[view];
    seen.draw(found, found?.draft !== draft, kind.value() === "raw");
    report.draw(desk.inspection?.view === view ? desk.inspection : null);
    const told = (frame.acts ?? []).find((one) => one.id === act);
    const below = told?.why && [...(found?.labels ?? []), ...(found?.questions ?? [])].some((one) => one.fault === told.why);
    if (told) say(refused, told.state !== "refused" ? "" : below ? "Not asked: what is wrong stands below." : told.why);
    refused.hidden = !refused.textContent;
    if (awaited && desk.worded?.view === awaited) {
      awaited = "";
      answer.put(desk.worded.form, desk.worded.text);
    }
  };
  return { node, draw, tells: ["ask", "ask_typed", "inspect"] };
};
