// The timeline on its canvas: the queue, a lane for each slot, a strip of gaps for each slot's streams, the axis.
const LEFT = 62, RIGHT = 12, TITLE = 36, BAND = 40, AXIS = 24, SPACE = 12;
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
  const placed = blocks.map(({ run, dim, title, figures }) => {
    const lane = run.slots <= 8 ? 30 : run.slots <= 16 ? 20 : run.slots <= 32 ? 13 : 8;
    const strip = run.slots <= 8 ? 26 : run.slots <= 16 ? 18 : run.slots <= 32 ? 12 : 7;
    const head = y, band = (y += title ? TITLE : 0), first = (y += BAND + 4);
    const strips = (y += run.slots * lane + (dim ? 0 : 10));
    if (!dim) y += run.slots * strip;
    const part = { run, dim, title, figures, head, band, first, lane, strips, strip, end: y };
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
  const edge = Math.max(LEFT, x(zero));
  pen.rect(edge, 0, Math.max(0, scene.width - RIGHT - edge), scene.height);
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

function laneBar(lane, first, slot) {
  const names = lane >= 26 ? 13 : 0;
  return { y: first + slot * lane + names, height: lane - names - (lane > 8 ? 3 : 2) };
}

/** Two passes: what goes on round after round, narrow rounds as one; then what must not be lost between pixels. */
function paintLanes(pen, scene, { run, first, lane, dim }, { from, to, x }, colours) {
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
    if (lane >= 26) paintNames(pen, dim ? {} : scene, scene.width, run, slot, y, height, x, colours);
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
function paintNames(pen, { told, chosen }, width, run, slot, y, height, x, colours) {
  let free = LEFT - 1;
  for (const request of run.requests.values()) {
    for (const stay of request.stays) {
      if (stay.slot !== slot) continue;
      const left = Math.max(LEFT, x(run.across(stay.from)));
      const right = Math.min(width - RIGHT, x(stay.to === null ? run.end() : run.across(stay.to)));
      if (right < LEFT || left > width - RIGHT) continue;
      const marked = told === request.id || chosen === request.id;
      pen.fillStyle = marked ? colours.decision : colours.ink;
      pen.font = `${request.kind === "decision" || marked ? "600 " : ""}11px system-ui, sans-serif`;
      const texts = [`${request.kind} ${request.id}`, String(request.id)];
      const text = texts.find((one) => left >= free && pen.measureText(one).width < right - left + 2);
      if (text) {
        pen.fillText(text, left, y - 7);
        free = left + pen.measureText(text).width + 6;
      }
      if (stay.out && stay.to !== null && right > LEFT) paintCross(pen, right, y + height / 2, colours);
    }
  }
  pen.font = "11px system-ui, sans-serif";
}

function paintCross(pen, x, y, colours) {
  for (const [colour, width] of [[colours.card, 5], [colours.out, 2]]) {
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    strokeCross(pen, x, y);
  }
}

function strokeCross(pen, x, y) {
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

/** Where a request leaves the upper part: a decision with its end, a stream with its first slot; null while it is there. */
const queuedUntil = (request) => (request.kind === "decision" ? request.end : request.stays[0]?.from ?? request.end);

/** Each decision from submit to end: pale while it waits, full in a slot; streams while they wait. */
function paintRequests(pen, scene, { run, band, dim }, { x }, colours) {
  const alpha = dim ? 0.55 : 1;
  for (const request of run.requests.values()) {
    if (request.came === null) continue;
    const decision = request.kind === "decision", colour = decision ? colours.decision : colours.held;
    const until = queuedUntil(request);
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
        if (stay.out) paintCross(pen, end, y + height / 2, colours);
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
