// What lies under a point of the timeline, in words.
const ENDED = { stop: "came to its end", length: "had all its tokens", deadline: "met its deadline", error: "failed", closed: "ended with the engine" };
const SAYS = {
  "=": "drew a token", "~": "verified proposed tokens", "+": "ran the end of its prompt in free rows",
  "*": "ran its branches in free rows", "-": "was held, with no work", "#": "filled a piece",
};

/** One slot in one round, in words. */
function slotWords(run, place, slot) {
  const more = run.more[place], seat = run.seats[place][slot];
  const ms = (run.ends[place] - run.starts[place]).toFixed(1);
  const head = `Round ${run.numbers[place]}, ${ms} ms. Slot ${slot}`;
  if (!seat) return `${head} was free.`;
  const did = [...(run.parts[place][slot] ?? "")].map((sign) => {
    if (sign !== "#" || !more.piece) return SAYS[sign];
    const [, , start, tokens, part, parts] = more.piece;
    const which = parts > 1 ? `computed part ${part} of ${parts} of a piece` : "filled a piece";
    return `${which}: prompt tokens ${start} to ${start + tokens - 1}`;
  });
  const failed = more.error ? ` The forward failed: ${more.error}` : "";
  return `${head}, ${seat.kind} ${seat.id}, ${did.join(" and ") || SAYS["-"]}.${failed}`;
}

/** A request on its way, in words. */
function requestWords(run, request) {
  const name = `${request.kind === "decision" ? "Decision" : "Stream"} ${request.id}`;
  if (request.came === null) return `${name} came before the rounds that are kept.`;
  const first = request.stays[0];
  const waited = first ? `waited ${seconds((first.from - request.came) / 1000)}` : "waits for a slot";
  const outs = request.stays.filter((stay) => stay.out).length;
  const out = outs ? `, was evicted ${outs === 1 ? "once" : `${outs} times`}` : "";
  const end = request.end === null ? "" : `, ${ENDED[request.reason] ?? request.reason} after ${seconds((request.end - request.came) / 1000)}`;
  return `${name} ${first || request.end === null ? waited : "had no slot"}${out}${end}. Click for its story.`;
}

/** Who waited through a round, in words. */
function waitingWords(run, place) {
  const [streams, decisions] = run.waiting[place] || [0, 0];
  const round = `Round ${run.numbers[place]}`;
  return streams || decisions ? `${round}: ${many(streams, "stream")} and ${many(decisions, "decision")} in the queue.` : `${round}: nobody waits.`;
}

/** The gap of a slot's stream that a round lies in, in words. */
function gapWords(run, place, slot, quiet) {
  const own = run.gaps[slot], at = placeOf(own.round, place - 1) + 1;
  if (at >= own.round.length || own.at[at] - own.ms[at] > run.ends[place]) return "No gap of a stream here.";
  const beside = own.beside[at] ? ", beside a piece" : "";
  const usual = quiet == null ? "" : ` The quiet gap in view is ${quiet.toFixed(1)} ms.`;
  return `Stream ${own.id[at]}: ${own.ms[at].toFixed(1)} ms between two tokens, the second in round ${run.numbers[own.round[at]]}${beside}.${usual}`;
}

/** The words for a point { x, y }, and the request of the live run there. */
function timelineHit(scene, { x, y }) {
  const block = scene.blocks.find((one) => y >= one.head && y < one.end + SPACE / 2);
  if (block && y < block.band) return { words: block.title };
  if (!block || block.zero === null || x < LEFT || x > scene.width - RIGHT) return { words: "" };
  const { run } = block, drawn = block.zero + timeAt(scene, x), place = run.at(drawn);
  const found = y < block.first - 2 ? requestAt(scene, block, drawn, y) : null;
  if (found) return { words: requestWords(run, found), request: block.dim ? undefined : found };
  if (place < 0) return { words: idleWords(run, drawn) };
  if (y < block.first - 2) return { words: waitingWords(run, place) };
  const lanes = y < block.strips;
  const slot = lanes ? Math.floor((y - block.first) / block.lane) : Math.floor((y - block.strips) / block.strip);
  if (slot < 0 || slot >= run.slots) return { words: "" };
  const seat = run.seats[place][slot];
  const words = lanes ? slotWords(run, place, slot) : gapWords(run, place, slot, scene.quiet);
  return { words, request: block.dim || !seat ? undefined : run.requests.get(seat.id) };
}

/** The time since the first round at a pixel, in milliseconds as they are drawn. */
const timeAt = (scene, x) => scene.left + ((x - LEFT) / Math.max(1, scene.width - LEFT - RIGHT)) * scene.span;

function requestAt(scene, { run, band }, drawn, y) {
  const close = (4 * scene.span) / scene.width;
  return [...run.requests.values()].find((request) => {
    if (request.came === null) return false;
    const bar = requestBar(run, band, request), until = queuedUntil(request);
    const from = run.across(request.came) - close, to = (until === null ? run.end() : run.across(until)) + close;
    return y >= bar.y - 2 && y <= bar.y + bar.height + 2 && drawn >= from && drawn <= to;
  });
}

/** The wait between two rounds that a drawn time lies in, in words. */
function idleWords(run, drawn) {
  const place = placeOf(run.drawn, drawn);
  if (place < 0 || place + 1 >= run.starts.length) return "";
  return `Idle: no round for ${seconds((run.starts[place + 1] - run.ends[place]) / 1000)} after round ${run.numbers[place]}.`;
}
