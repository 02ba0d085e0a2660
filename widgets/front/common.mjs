// What all panels share: elements, keyed lists, and acts that are followed until their end.
const PANELS = {};
const SENDERS = new WeakMap();
const LATE_MS = 300;

/** An element: attributes by name, `on…` as listeners, children as nodes or texts. */
function h(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

/** Write only what changed, so that a selection, a focus or a tooltip survives. */
function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Keep one child for each item, by its key, in order; `make(item)` gives { node, draw(item) }. */
function keyed(parent, items, key, make) {
  const known = (parent.lanesKeyed ??= new Map());
  const wanted = new Set(items.map((item) => String(key(item))));
  for (const [name, part] of known) {
    if (!wanted.has(name)) {
      part.node.remove();
      known.delete(name);
    }
  }
  items.forEach((item, at) => {
    const name = String(key(item));
    if (!known.has(name)) known.set(name, make(item));
    const part = known.get(name);
    part.draw(item);
    if (parent.children[at] !== part.node) parent.insertBefore(part.node, parent.children[at] ?? null);
  });
}

/** The acts of one widget, shared by all its views: sent once, known by id, pending until the kernel tells of them. */
function sender(model) {
  if (SENDERS.has(model)) return SENDERS.get(model);
  const pending = new Map();
  const places = new Map(); // of acts whose fate is still told: the panel each was done in
  const own = { pending, places, listeners: new Set(), tapes: new Map(), seq: () => model.get("frame").seq };
  const changed = () => own.listeners.forEach((listener) => listener());
  own.send = (what, given = {}, panel = null) => {
    const id = `${Date.now().toString(36)}-${Math.random().toString(36).slice(2, 10)}`;
    pending.set(id, { do: what, since: Date.now() });
    places.set(id, panel);
    model.send({ id, do: what, with: given });
    changed();
    setTimeout(changed, LATE_MS + 20);
    return id;
  };
  model.on("change:frame", () => {
    const told = (model.get("frame").acts ?? []).map((act) => act.id);
    for (const id of told) pending.delete(id);
    for (const id of places.keys()) if (!pending.has(id) && !told.includes(id)) places.delete(id);
    changed();
  });
  SENDERS.set(model, own);
  return own;
}

/** A panel's list that only grows, one for all views of a widget. `take(cut)` gives { first, items }: all that is known,
 * numbered from `first` on; what a lost message or a reloaded page left out is asked for again. */
function tape(own, panel, name) {
  const place = `${panel}.${name}`;
  return (cut) => {
    if (!own.tapes.has(place)) own.tapes.set(place, { panel, first: 0, items: [], asked: 0, seq: null });
    const known = own.tapes.get(place);
    known.seq = own.seq();
    const have = known.first + known.items.length;
    if (cut.from > Math.max(have, cut.gone)) {
      if (Date.now() - known.asked > LATE_MS) {
        known.asked = Date.now(); // before it is sent: all views are drawn anew meanwhile
        own.send("again", { panel, tape: name, have });
      }
    } else {
      if (cut.from > have) [known.first, known.items] = [cut.from, []];
      known.items.push(...cut.items.slice(known.first + known.items.length - cut.from));
    }
    return known;
  };
}

/** Once a panel has drawn a frame: what it took from no tape then is in no picture any more, and need not be known. */
function dropTapes(own, panel) {
  for (const [place, known] of own.tapes) {
    if (known.panel === panel && known.seq !== own.seq()) own.tapes.delete(place);
  }
}

/** Forget a tape's items before a number. */
function forgetItems(known, first) {
  const drop = Math.min(known.items.length, Math.max(0, first - known.first));
  known.items.splice(0, drop);
  known.first += drop;
}

/** What to say of what was done last in a panel, but for the acts that it `tells` of by itself; nothing once it is done. */
function fate(frame, own, panel, tells) {
  const here = (id) => own.places.get(id) === panel;
  const waits = [...own.pending].some(([id, act]) => here(id) && Date.now() - act.since > LATE_MS);
  if (waits) return "pending: the kernel is busy with a cell";
  const act = (frame.acts ?? []).findLast((one) => here(one.id));
  if (!act || act.state === "done" || tells.includes(act.do)) return "";
  return `${act.do.replaceAll("_", " ")}: ${act.state}${act.why && `, ${act.why}`}`;
}

const seconds = (value) => (value == null ? "–" : value < 1 ? `${Math.round(value * 1000)} ms` : `${value.toFixed(1)} s`);
const many = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
