// The timeline: what is shown of it, by mouse, by keys and by buttons; the story of one request below.
const FIRST_SPAN = 6000, LEAST_SPAN = 5, NEWEST = 0.98, RECENT = 60;
const HELP = "Arrow keys move and choose a request, Enter tells its story, plus and minus zoom, Home, End and 0 show the beginning, the newest round, all.";

PANELS.timeline = (port) => {
  let live = null, reference = null, referenceName = "", cutting = null, frame = null, asked = 0, closed = false;
  const view = { left: 0, span: FIRST_SPAN, live: true };
  const seen = { cursor: null, chosen: null };
  let scene = { blocks: [], axis: 0, height: 0, width: 0 };

  const ask = (what, given) => !closed && port.send(what, given);
  const button = (text, title, onclick) => h("button", { type: "button", class: "lanes-button", title, onclick }, text);
  const buttons = {
    live: button("Live", "Follow the newest round ( End )", () => follow(true)),
    all: button("All", "Show the whole run ( 0 )", () => showAll()),
    wider: button("−", "Show more time ( - )", () => zoom(2)),
    closer: button("+", "Show less time ( + )", () => zoom(0.5)),
    save: button("Save trace", "Write the record as a file for ui.perfetto.dev", () => ask("save_trace")),
    keep: button("", "", () => ask(frame.reference ? "drop_run" : "keep_run")),
  };
  const mode = h("span", { class: "lanes-faint" });
  const select = h("select", {
    class: "lanes-select", "aria-label": "Tell the story of", "data-lm-suppress-shortcuts": "true",
    onkeydown: (event) => event.stopPropagation(), onchange: () => choose(select.value),
  });
  const canvas = h("canvas", {
    class: "lanes-canvas", tabindex: "0", role: "application", "data-lm-suppress-shortcuts": "true",
    onkeydown: (event) => onKey(event),
    ...timelineHands({
      share: (x) => (x - LEFT) / Math.max(1, scene.width - LEFT - RIGHT),
      zoom: (factor, share) => { view.live &&= share > 0.9; zoom(factor, view.live ? NEWEST : share); },
      pan: (share) => pan(share),
      tap: (point) => { const found = timelineHit(scene, point).request; if (found) tell(found); },
      over: (point) => {
        seen.cursor = point && point.x > LEFT && point.x < scene.width - RIGHT ? point.x : null;
        say(hover, point ? timelineHit(scene, point).words : "");
        redraw();
      },
    }),
  });
  const hover = h("p", { class: "lanes-hover" });
  const legend = h("div", { class: "lanes-row lanes-legend", "aria-hidden": "true" }, ...Object.values(SIGN_NAMES).map((name) =>
    h("span", {}, h("i", { style: `background:var(--${name})` }), name)));
  const title = h("b"), words = h("p", { class: "lanes-story-words" });
  const story = h("div", { class: "lanes-story", role: "region", "aria-label": "Story", "aria-live": "polite" },
    h("div", { class: "lanes-head" }, title, h("span", { class: "lanes-row" },
      button("Show", "Move to where it is", () => show(frame.story.id)),
      button("Close", "Tell no story", () => ask("tell_story", { id: null })))), words);
  const saved = h("p", { class: "lanes-faint" });
  const node = h("section", { class: "lanes-panel", "aria-label": "Timeline" },
    h("div", { class: "lanes-row lanes-apart" },
      h("div", { class: "lanes-row", role: "toolbar", "aria-label": "Timeline" }, ...Object.values(buttons), select), mode),
    legend, canvas, hover, story, saved);

  // --- what is in view ---

  const zeroOf = (run, origin) => (origin < run.starts.length ? run.drawn[origin] : null);
  const total = () => Math.max(1, ...scene.blocks.map(({ run, zero }) => (zero === null ? 0 : run.end() - zero)));
  const liveEnd = () => {
    const block = scene.blocks.at(-1);
    return block && block.zero !== null ? block.run.end() - block.zero : 0;
  };
  const settle = () => {
    view.span = Math.min(Math.max(view.span, LEAST_SPAN), Math.max(total() * 1.1, FIRST_SPAN));
    if (view.live) view.left = Math.max(0, liveEnd() - view.span * NEWEST);
    else view.left = Math.min(Math.max(view.left, -0.02 * view.span), Math.max(0, total() - view.span * 0.3));
  };
  const follow = (on) => { view.live = on; redraw(); };
  const showAll = () => { Object.assign(view, { left: 0, span: total() * 1.02, live: false }); redraw(); };
  const zoom = (factor, share = view.live ? NEWEST : 0.5) => {
    const at = view.left + view.span * share;
    view.span = Math.max(LEAST_SPAN, view.span * factor);
    view.left = at - view.span * share;
    redraw();
  };
  const pan = (share) => { view.live = false; view.left += view.span * share; redraw(); };
  /** From when to when a request of the live run is drawn, since its first round; null before that. */
  const spanOf = (request) => {
    const zero = scene.blocks.at(-1)?.zero ?? null, came = request?.came ?? request?.stays[0]?.from ?? null;
    if (zero === null || came === null) return null;
    const until = (request.end === null ? live.end() : live.across(request.end)) - zero;
    return until < 0 ? null : { from: live.across(came) - zero, until };
  };
  const show = (id) => {
    const { from, until } = spanOf(live.requests.get(id)) ?? {};
    if (from === undefined) return;
    Object.assign(view, { span: Math.max((until - from) * 1.25, 200), live: false });
    view.left = from - (view.span - (until - from)) / 2;
    redraw();
  };

  // --- hands ---

  const choose = (name) => {
    const request = [...live.requests.values()].find((one) => String(one.id) === name);
    if (request) tell(request);
    else ask("tell_story", { id: null });
  };
  const tell = (request) => { seen.chosen = request.id; ask("tell_story", { id: request.id }); redraw(); };
  const step = (by) => {
    const own = [...live.requests.values()].filter(spanOf);
    if (!own.length) return;
    const at = own.findIndex((request) => request.id === seen.chosen);
    const next = own[at < 0 ? own.length - 1 : Math.min(Math.max(at + by, 0), own.length - 1)];
    seen.chosen = next.id;
    say(hover, requestWords(live, next).replace("Click", "Enter"));
    const { from, until } = spanOf(next);
    if (until < view.left || from > view.left + view.span) Object.assign(view, { live: false, left: from - view.span * 0.2 });
    redraw();
  };
  const keys = {
    ArrowLeft: () => pan(-0.1), ArrowRight: () => pan(0.1), ArrowUp: () => step(-1), ArrowDown: () => step(1),
    "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), 0: showAll,
    Home: () => { Object.assign(view, { left: 0, live: false }); redraw(); }, End: () => follow(true),
    Enter: () => live.requests.has(seen.chosen) && tell(live.requests.get(seen.chosen)),
    Escape: () => ask("tell_story", { id: null }),
  };
  const onKey = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    keys[event.key]();
  };

  // --- pictures ---

  const redraw = () => {
    if (asked) return;
    asked = requestAnimationFrame(() => {
      asked = 0;
      if (canvas.clientWidth && live) paint(); // hidden, it has no size: it is drawn once it is shown
    });
  };
  const paint = () => {
    const blocks = [{ run: live, title: frame.reference ? "live" : "", figures: frame.figures ?? "", origin: live.from(frame.origin) }];
    if (reference) {
      blocks.unshift({ run: reference, dim: true, title: frame.reference.title, figures: frame.reference.figures, origin: 0 });
    }
    const layout = timelineLayout(blocks);
    layout.blocks.forEach((block, at) => {
      block.origin = blocks[at].origin;
      block.zero = zeroOf(block.run, block.origin);
    });
    scene = {
      ...layout, width: canvas.clientWidth, cursor: seen.cursor, chosen: seen.chosen, told: frame.story?.id ?? null,
      story: frame.story, pieces: new Set(frame.story?.pieces), paid: new Set(frame.story?.paid), quiet: null,
    };
    if (canvas.style.height !== `${scene.height}px`) canvas.style.height = `${scene.height}px`;
    hover.classList.toggle("lanes-two", scene.width < 640);
    settle();
    Object.assign(scene, view);
    paintTimeline(canvas, scene);
    buttons.live.setAttribute("aria-pressed", String(view.live));
    const shows = `${seconds(view.span / 1000)} shown`;
    const quiet = scene.quiet == null ? "" : ` · quiet gap ${scene.quiet.toFixed(1)} ms · strips up to ${seconds(scene.top / 1000)}`;
    say(mode, `${view.live ? "following" : "standing"} · ${shows}${quiet}`);
  };
  watchPage(node, redraw, port.left);

  const take = () => {
    const comparing = Boolean(frame.reference);
    if (live === null || cutting === comparing) {
      cutting = !comparing;
      live = timelineRun(frame.slots, cutting, MOST_ROUNDS);
    }
    live.take(port.tape("rounds")(frame.rounds));
    if (!comparing) [reference, referenceName] = [null, ""];
    else {
      const { tape: name, slots, rounds } = frame.reference;
      if (name !== referenceName) {
        [reference, referenceName] = [timelineRun(slots, false), name];
      }
      reference.take(port.tape(name)(rounds));
    }
  };
  const list = () => {
    if (document.activeElement === select) return;
    const recent = [...live.requests.values()].slice(-RECENT).reverse();
    keyed(select, [null, ...recent], (one) => (one ? one.id : "none"), (first) => option(first));
    select.value = frame.story ? String(frame.story.id) : "";
  };
  const draw = (picture, whole) => {
    frame = picture;
    closed = whole.closed;
    take();
    list();
    const comparing = Boolean(picture.reference);
    say(buttons.keep, comparing ? "Stop comparing" : "Compare with this");
    buttons.keep.title = comparing ? "Show the whole record as one run again" : "Keep what has run so far above, and begin anew below it";
    buttons.keep.disabled = buttons.save.disabled = select.disabled = closed;
    canvas.setAttribute("aria-label", `${picture.summary}. ${HELP}`);
    story.hidden = !picture.story;
    if (picture.story) {
      say(title, `${picture.story.kind} ${picture.story.id}`);
      say(words, picture.story.words.join(" "));
    }
    saved.hidden = !picture.saved;
    say(saved, picture.saved ? `Trace written to ${picture.saved}: open it in ui.perfetto.dev.` : "");
    redraw();
  };
  return { node, draw };
};

function option(first) {
  const node = h("option", { value: first ? String(first.id) : "" });
  return { node, draw: (one) => say(node, one ? `${one.kind} ${one.id} · ${one.reason ?? (one.stays.length ? "in a slot" : "waits")}` : "Story of …") };
}

const THEME_MS = 500;

/** Call again after a new size or theme, until the view is left: the page would keep it alive for ever. A theme's colours
 * come some time after its name. */
function watchPage(node, changed, left) {
  const sizes = new ResizeObserver(changed);
  const themes = new MutationObserver(() => { changed(); setTimeout(changed, THEME_MS); });
  sizes.observe(node);
  themes.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-name", "data-jp-theme-light", "class"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed, { signal: left });
  left.addEventListener("abort", () => {
    sizes.disconnect();
    themes.disconnect();
  });
}
