// What stands around the rounds on the canvas: names, tracks, the axis, waits that are drawn short.
/** Names at the left, tracks of the slots, base lines of the strips. */
function paintFrame(pen, scene, { run, dim, title, figures, head, band, first, lane, strips, strip }, colours) {
  const right = scene.width - RIGHT;
  pen.textAlign = "left";
  if (title) {
    pen.fillStyle = colours.ink;
    pen.font = "600 12px system-ui, sans-serif";
    pen.fillText(fitted(pen, title, scene.width - 8), 0, head + 10);
    pen.font = "11px system-ui, sans-serif";
    pen.fillStyle = colours.faint;
    pen.fillText(fitted(pen, figures, scene.width - 8), 0, head + 26);
  }
  pen.fillStyle = colours.faint;
  pen.fillText("queue and", 0, band + 12);
  pen.fillText("decisions", 0, band + 26);
  for (let slot = 0; slot < run.slots; slot++) {
    const bar = laneBar(lane, first, slot);
    pen.fillStyle = colours.track;
    pen.fillRect(LEFT, bar.y, right - LEFT, bar.height);
    const named = slot % Math.ceil(12 / strip) === 0; // where a strip is lower than a text, every second one has a name
    pen.fillStyle = colours.faint;
    if (named) pen.fillText(`slot ${slot}`, 0, bar.y + bar.height / 2);
    if (dim) continue;
    pen.fillStyle = colours.rule;
    pen.fillRect(LEFT, strips + (slot + 1) * strip - 1, right - LEFT, 1);
    pen.fillStyle = colours.faint;
    if (named) pen.fillText(`gaps ${slot}`, 0, strips + (slot + 0.5) * strip);
  }
}

/** The first of 1, 2, 5, 10, ... (or of other steps) that is not below. */
function niceAbove(least, steps = [1, 2, 5, 10]) {
  const power = 10 ** Math.floor(Math.log10(least));
  return steps.map((step) => step * power).find((step) => step >= least * (1 - 1e-9));
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
      const half = pen.measureText(words).width / 2, middle = Math.min(x, scene.width - half);
      if (middle - half < right) continue;
      pen.fillText(words, middle, scene.axis + 14);
      right = middle + half + 8;
    }
  }
}

function fitted(pen, text, room) {
  if (pen.measureText(text).width <= room) return text;
  let most = text.length;
  while (most > 1 && pen.measureText(`${text.slice(0, most)}…`).width > room) most--;
  return `${text.slice(0, most)}…`;
}
