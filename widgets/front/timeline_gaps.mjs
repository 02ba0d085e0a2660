// The strips of gaps below the slots: what the streams waited between two tokens.
/** For each slot the gaps of its streams: as wide as they lasted, and as high. */
function paintGaps(pen, scene, { run, strips, strip, zero }, range, colours) {
  const { x } = range;
  const shown = run.gaps.map((own) => ({ own, from: placeOf(own.round, range.from - 1) + 1, to: placeOf(own.round, range.to) }));
  scene.quiet = middleOf(shown.flatMap(({ own, from, to }) => sampled(own, from, to)));
  const worst = shown.reduce((most, { own, from, to }) => Math.max(most, worstOf(own, from, to)), 0);
  const top = scene.top = niceAbove(Math.min(worst, 10 * (scene.quiet ?? worst)) || 1, [1, 1.5, 2, 3, 4, 6, 8, 10]);
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
    if (scene.quiet !== null && from <= to) {
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
