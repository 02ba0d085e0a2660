// The timeline on its canvas: the queue, a lane for each slot, a strip of gaps for each slot's streams, the axis.
const LEFT = 62, RIGHT = 12, TITLE = 22, BAND = 40, AXIS = 24, SPACE = 12;
const SIGN_NAMES = { "=": "decode", "~": "draft", "#": "piece", "+": "tail", "*": "branch", "-": "held" };
const LOUD = new Set(["piece", "tail", "branch"]);

/** Colours of the page, by name: read when something is drawn, so that a new theme is followed. */
function pageColours(node) {
  const css = getComputedStyle(node);
  const names = ["ink", "faint", "card", "track", "rule", "decision", "decode", "draft", "piece", "tail", "branch", "held", "out"];
  return Object.fromEntries(names.map((name) => [name, css.getPropertyValue(`--${name}`).trim()]));
}

/** Where each part of the picture is, from top to bottom: the reference, if there is one, and the live run. */
function timelineLayout(blocks) {
  let y = 4;
  const placed = blocks.map(({ run, dim, title }) => {
    const lane = run.slots <= 8 ? 30 : run.slots <= 16 ? 20 : 13;
    const strip = run.slots <= 8 ? 26 : run.slots <= 16 ? 18 : 12;
    const head = y, band = (y += title ? TITLE : 0), first = (y += BAND + 4);
    const strips = (y += run.slots * lane + (dim ? 0 : 10));
    if (!dim) y += run.slots * strip;
    const part = { run, dim, title, head, band, first, lane, strips, strip, end: y };
    y += SPACE;
    return part;
  });
  return { blocks: placed, axis: y - SPACE + 4, height: y - SPACE + 4 + AXIS };
}

/** Draw it all; `scene` has blocks in their places, the view { left, span }, the width, what is told and pointed at. */
function paintTimeline(canvas, scene) {
  const { width, height } = scene, ratio = globalThis.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = "11px system-ui, sans-serif";
  pen.textBaseline = "middle";
  const colours = pageColours(canvas);
  paintAxis(pen, scene, colours);
  for (const block of scene.blocks) paintBlock(pen, scene, block, colours);
  if (scene.cursor !== null) {
    pen.fillStyle = colours.faint;
    pen.fillRect(Math.round(scene.cursor), 4, 1, scene.axis - 4);
  }
}

function paintBlock(pen, scene, block, colours) {
  const { run, zero } = block;
  const x = (drawn) => LEFT + ((drawn - zero - scene.left) / scene.span) * (scene.width - LEFT - RIGHT);
  pen.globalAlpha = 1;
  paintFrame(pen, scene, block, colours);
  if (zero === null) return;
  const from = Math.max(block.origin, placeOf(run.drawn, zero + scene.left));
  const range = { from, to: placeOf(run.drawn, zero + scene.left + scene.span), x };
  pen.save();
  pen.beginPath();
  pen.rect(Math.max(LEFT, x(zero)), 0, scene.width - LEFT - RIGHT, scene.height);
  pen.clip();
  pen.globalAlpha = block.dim ? 0.55 : 1;
  paintCuts(pen, block, range, colours);
  if (!block.dim && scene.story) paintStory(pen, scene, block, range, colours);
  paintLanes(pen, scene, block, range, colours);
  paintRequests(pen, scene, block, range, colours);
  if (!block.dim) paintGaps(pen, scene, block, range, colours);
  pen.restore();
  pen.globalAlpha = 1;
}

/** Names at the left, tracks of the slots, base lines of the strips. */
function paintFrame(pen, scene, { run, dim, title, head, band, first, lane, strips, strip }, colours) {
  const right = scene.width - RIGHT;
  pen.textAlign = "left";
  if (title) {
    pen.fillStyle = colours.ink;
    pen.font = "600 12px system-ui, sans-serif";
    pen.fillText(fitted(pen, title, scene.width - 8), 0, head + 10);
    pen.font = "11px system-ui, sans-serif";
  }
  pen.fillStyle = colours.faint;
  pen.fillText("queue and", 0, band + 12);
  pen.fillText("decisions", 0, band + 26);
  for (let slot = 0; slot < run.slots; slot++) {
    const bar = laneBar(lane, first, slot);
    pen.fillStyle = colours.track;
    pen.fillRect(LEFT, bar.y, right - LEFT, bar.height);
    pen.fillStyle = colours.faint;
    pen.fillText(`slot ${slot}`, 0, bar.y + bar.height / 2);
    if (dim) continue;
    pen.fillStyle = colours.rule;
    pen.fillRect(LEFT, strips + (slot + 1) * strip - 1, right - LEFT, 1);
    pen.fillStyle = colours.faint;
    pen.fillText(`gaps ${slot}`, 0, strips + (slot + 0.5) * strip);
  }
}

function laneBar(lane, first, slot) {
  const names = lane >= 26 ? 13 : 0;
  return { y: first + slot * lane + names, height: lane - names - 3 };
}

/** Two passes: what goes on round after round, narrow rounds as one; then what must not be lost between pixels. */
function paintLanes(pen, scene, { run, first, lane }, { from, to, x }, colours) {
  for (let slot = 0; slot < run.slots; slot++) {
    const { y, height } = laneBar(lane, first, slot);
    let open = null;
    const close = () => {
      if (open) paintCell(pen, open.signs, open.left, open.right, y, height, colours, false);
      open = null;
    };
    for (let place = from; place <= to; place++) {
      const signs = run.parts[place][slot];
      if (!signs) continue;
      const left = x(run.drawn[place]), right = x(run.drawn[place] + run.ends[place] - run.starts[place]);
      if (open && open.signs === signs && right - left < 3 && left - open.right < 1) open.right = right;
      else {
        close();
        open = { signs, left, right };
        if (right - left >= 3) close();
      }
    }
    close();
    for (let place = from; place <= to; place++) {
      const signs = run.parts[place][slot];
      if (!signs || ![...signs].some((sign) => LOUD.has(SIGN_NAMES[sign]))) continue;
      const left = x(run.drawn[place]), right = x(run.drawn[place] + run.ends[place] - run.starts[place]);
      paintCell(pen, signs, left, Math.max(right, left + 1), y, height, colours, true);
    }
    if (lane >= 26) paintNames(pen, scene, run, slot, y, x, colours);
  }
}

function paintCell(pen, signs, left, right, y, height, colours, loud) {
  const wide = Math.max(right - left > 3 ? right - left - 1 : right - left, 0.5);
  [...signs].forEach((sign, place) => {
    const name = SIGN_NAMES[sign];
    if (LOUD.has(name) !== loud) return;
    pen.fillStyle = colours[name];
    pen.fillRect(left, y + (place * height) / signs.length, wide, height / signs.length);
  });
}

/** Over each stay its request's name, where there is room; an eviction as a cross at its end. */
function paintNames(pen, scene, run, slot, y, x, colours) {
  for (const request of run.requests.values()) {
    for (const stay of request.stays) {
      if (stay.slot !== slot) continue;
      const left = Math.max(LEFT, x(run.across(stay.from)));
      const right = Math.min(scene.width - RIGHT, x(stay.to === null ? run.end() : run.across(stay.to)));
      if (right < LEFT || left > scene.width - RIGHT) continue;
      const told = scene.told === request.id || scene.chosen === request.id;
      pen.fillStyle = told ? colours.decision : colours.ink;
      pen.font = `${request.kind === "decision" || told ? "600 " : ""}11px system-ui, sans-serif`;
      const name = `${request.kind} ${request.id}`;
      const texts = [name, String(request.id)].filter((text) => pen.measureText(text).width < right - left + 2);
      if (texts.length) pen.fillText(texts[0], left, y - 7);
      if (stay.out) paintCross(pen, right, y - 6, colours.out);
    }
  }
  pen.font = "11px system-ui, sans-serif";
}

function paintCross(pen, x, y, colour) {
  pen.strokeStyle = colour;
  pen.lineWidth = 2;
  pen.beginPath();
  pen.moveTo(x - 4, y - 4);
  pen.lineTo(x + 4, y + 4);
  pen.moveTo(x + 4, y - 4);
  pen.lineTo(x - 4, y + 4);
  pen.stroke();
}

function requestBar(run, band, request) {
  const rows = Math.max(3, run.rows.length);
  const high = BAND / rows;
  return { y: band + request.row * high, height: Math.min(10, Math.max(1.5, high - 2)) };
}

/** Each decision from submit to end: pale while it waits, full in a slot; streams while they wait. */
function paintRequests(pen, scene, { run, band, dim }, { x }, colours) {
  const alpha = dim ? 0.55 : 1;
  for (const request of run.requests.values()) {
    if (request.came === null) continue;
    const decision = request.kind === "decision", colour = decision ? colours.decision : colours.held;
    const until = decision ? request.end : request.stays[0]?.from ?? request.end;
    const left = x(run.across(request.came)), right = x(until === null ? run.end() : run.across(until));
    if (right < LEFT || left > scene.width - RIGHT || (!decision && right - left < 2)) continue;
    const { y, height } = requestBar(run, band, request);
    pen.fillStyle = colour;
    pen.globalAlpha = alpha * 0.4;
    pen.fillRect(left, y, Math.max(right - left, 1.5), height);
    pen.globalAlpha = alpha;
    if (decision) {
      for (const stay of request.stays) {
        const start = x(run.across(stay.from)), end = x(stay.to === null ? run.end() : run.across(stay.to));
        pen.fillRect(start, y, Math.max(end - start, 1.5), height);
        if (stay.out) paintCross(pen, end, y + height / 2, colours.out);
      }
    }
    if (!dim && (scene.told === request.id || scene.chosen === request.id)) {
      pen.strokeStyle = colours.ink;
      pen.lineWidth = scene.told === request.id ? 2 : 1;
      pen.strokeRect(left - 1, y - 1, Math.max(right - left, 2) + 2, height + 2);
    }
  }
}

/** A band over each round with a piece of the request whose story is told. */
function paintStory(pen, scene, { run, band, end }, { from, to, x }, colours) {
  pen.fillStyle = colours.decision;
  pen.globalAlpha = 0.18;
  for (let place = from; place <= to; place++) {
    if (!scene.pieces.has(run.numbers[place])) continue;
    const left = x(run.drawn[place]);
    pen.fillRect(left, band, Math.max(1.5, x(run.drawn[place] + run.ends[place] - run.starts[place]) - left), end - band);
  }
  pen.globalAlpha = 1;
}

/** For each slot the gaps of its streams: as wide as they lasted, and as high. */
function paintGaps(pen, scene, { run, strips, strip, zero }, range, colours) {
  const { x } = range;
  const shown = run.gaps.map((own) => ({ own, from: placeOf(own.round, range.from - 1) + 1, to: placeOf(own.round, range.to) }));
  scene.quiet = middleOf(shown.flatMap(({ own, from, to }) => sampled(own, from, to)));
  const worst = shown.reduce((most, { own, from, to }) => Math.max(most, worstOf(own, from, to)), 0);
  const top = scene.top = niceAbove(Math.min(worst, 10 * (scene.quiet ?? worst)) || 1);
  const high = strip - 4;
  shown.forEach(({ own, from, to }, slot) => {
    const floor = strips + (slot + 1) * strip - 1;
    for (let k = from; k <= to; k++) {
      const end = run.drawn[own.round[k]] + run.ends[own.round[k]] - run.starts[own.round[k]];
      const right = x(end), left = x(Math.max(zero, run.across(own.at[k] - own.ms[k])));
      const paid = scene.story && scene.pieces.has(run.numbers[own.round[k]]) && scene.paid.has(own.id[k]);
      const tall = Math.max(1, Math.min(1, own.ms[k] / top) * high);
      pen.fillStyle = own.beside[k] ? colours.piece : colours.decode;
      pen.globalAlpha = scene.story ? (paid ? 1 : 0.3) : own.beside[k] ? 0.9 : 0.6;
      const wide = right - left;
      pen.fillRect(left, floor - tall, Math.max(wide > 3 ? wide - 1 : wide, 0.7), tall);
      if (own.ms[k] > top) {
        pen.fillStyle = colours.out;
        pen.fillRect(left, floor - high - 2, Math.max(wide - 1, 1), 2);
      }
    }
    pen.globalAlpha = 1;
    if (scene.quiet !== null) {
      pen.fillStyle = colours.ink;
      pen.globalAlpha = 0.45;
      pen.fillRect(LEFT, Math.round(floor - Math.min(1, scene.quiet / top) * high), scene.width, 1);
      pen.globalAlpha = 1;
    }
  });
}

function sampled(own, from, to) {
  const step = Math.max(1, Math.ceil((to - from) / 500)), found = [];
  for (let k = from; k <= to; k += step) if (!own.beside[k]) found.push(own.ms[k]);
  return found;
}

function worstOf(own, from, to) {
  let most = 0;
  for (let k = from; k <= to; k++) most = Math.max(most, own.ms[k]);
  return most;
}

function middleOf(values) {
  if (!values.length) return null;
  values.sort((a, b) => a - b);
  const middle = values.length >> 1;
  return values.length % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

/** The first of 1, 2, 5, 10, ... that is not below. */
function niceAbove(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= least * (1 - 1e-9));
}

/** Waits between rounds that are drawn short: a dashed line with their length. */
function paintCuts(pen, { run, band, end, zero }, { x }, colours) {
  run.cuts.from.forEach((from, place) => {
    const left = x(run.across(from)), right = left + (x(CUT_MS) - x(0));
    if (right < LEFT || run.across(from) < zero) return;
    pen.strokeStyle = colours.faint;
    pen.lineWidth = 1;
    pen.setLineDash([2, 3]);
    pen.strokeRect(left + 0.5, band, Math.max(1, right - left - 1), end - band);
    pen.setLineDash([]);
    const words = `${((run.cuts.to[place] - from) / 1000).toFixed(1)} s idle`;
    if (pen.measureText(words).width > right - left - 4) return;
    pen.fillStyle = colours.faint;
    pen.fillText(words, left + 4, band + BAND / 2);
  });
}

/** Marks at round numbers of seconds since the first round; the time that is left out in a cut has none. */
function paintAxis(pen, scene, colours) {
  const { run, zero } = scene.blocks.find((block) => block.zero !== null) ?? { zero: null };
  if (zero === null) return;
  const pixels = scene.width - LEFT - RIGHT, step = niceAbove((scene.span * 90) / pixels);
  const digits = Math.min(4, Math.max(0, 3 - Math.floor(Math.log10(step) + 1e-9)));
  const { from, to } = run.cuts, start = run.starts[placeOf(run.drawn, zero)];
  pen.textAlign = "center";
  pen.fillStyle = colours.faint;
  let right = 0;
  for (let piece = Math.max(0, placeOf(from, run.real(zero + scene.left)) + 1); piece <= from.length; piece++) {
    const begin = piece ? to[piece - 1] : start, end = from[piece] ?? Infinity;
    for (let mark = Math.max(0, Math.ceil((begin - start) / step)); start + mark * step <= end; mark++) {
      const at = run.across(start + mark * step) - zero - scene.left;
      if (at > scene.span) return;
      const x = LEFT + (at / scene.span) * pixels, words = `${((mark * step) / 1000).toFixed(digits)} s`;
      if (x < LEFT - 1) continue;
      pen.fillRect(Math.round(x), scene.axis, 1, 5);
      const half = pen.measureText(words).width / 2;
      if (x - half < right || x + half > scene.width) continue;
      pen.fillText(words, x, scene.axis + 14);
      right = x + half + 8;
    }
  }
}

function fitted(pen, text, room) {
  if (pen.measureText(text).width <= room) return text;
  let most = text.length;
  while (most > 1 && pen.measureText(`${text.slice(0, most)}…`).width > room) most--;
  return `${text.slice(0, most)}…`;
}
