// A run of rounds as its tape tells it: rounds, gaps, requests. Times are milliseconds since the engine's start.
const IDLE_MS = 1500;
const CUT_MS = 300;
const MOST_ROUNDS = 40000;
const LEFT_ROUNDS = 20000;
const KINDS = { s: "stream", d: "decision" };
const PARTS = new Map();

/** What each slot did, from "=|=~||#". */
function slotParts(works) {
  if (!PARTS.has(works)) PARTS.set(works, works.split("|"));
  return PARTS.get(works);
}

/** The last place whose value is not above `wanted`, or -1. */
function placeOf(values, wanted) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= wanted) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** With `cutting`, long waits between rounds are drawn short: `across` is where a time lies then. Beyond the `most` rounds
 * the older ones go. */
function timelineRun(slots, cutting, most = Infinity) {
  const run = {};
  const clear = () => Object.assign(run, {
    slots, used: 0, first: null, numbers: [], starts: [], ends: [], parts: [], seats: [], waiting: [], more: [],
    gaps: Array.from({ length: slots }, () => ({ at: [], ms: [], id: [], round: [], beside: [] })),
    requests: new Map(), rows: [], drawn: [], cuts: { from: [], to: [], taken: [] }, tokens: new Map(), seated: [],
  });
  clear();

  run.across = (at) => {
    const { from, to, taken } = run.cuts;
    const place = placeOf(from, at);
    if (place < 0) return at;
    if (at < to[place]) return from[place] - (taken[place - 1] ?? 0) + ((at - from[place]) / (to[place] - from[place])) * CUT_MS;
    return at - taken[place];
  };
  /** The time that lies at a drawn place; within a cut, its beginning. */
  run.real = (drawn) => {
    const { from, to, taken } = run.cuts;
    let place = from.length - 1;
    while (place >= 0 && drawn < from[place] - (taken[place - 1] ?? 0)) place--;
    if (place < 0) return drawn;
    const inside = drawn - from[place] + (taken[place - 1] ?? 0);
    return inside < CUT_MS ? from[place] : to[place] + inside - CUT_MS;
  };
  /** The place of the first round from a number on: past the end where there is none yet. */
  run.from = (number) => placeOf(run.numbers, number - 1) + 1;
  run.end = () => (run.ends.length ? run.across(run.ends.at(-1)) : null);
  /** The place of the round that runs at a drawn time, or -1. */
  run.at = (drawn) => {
    const place = placeOf(run.drawn, drawn);
    return place >= 0 && drawn <= run.across(run.ends[place]) ? place : -1;
  };

  /** Take what the tape knows by now; true where that is more than before. */
  run.take = (known) => {
    if (run.first === null || known.first > run.used) {
      clear();
      run.used = run.first = known.first;
    }
    if (run.numbers.length > most) forget(known);
    const before = run.used;
    for (; run.used < known.first + known.items.length; run.used++) takeItem(known.items[run.used - known.first]);
    return run.used > before;
  };

  /** Drop the oldest rounds, from the tape too; the first item left says who sits where. */
  const forget = (known) => {
    const oldest = run.numbers.at(-LEFT_ROUNDS);
    const drop = known.items.findIndex((item) => item[0] >= oldest);
    if (drop > 0) {
      const place = placeOf(run.numbers, known.items[drop][0]);
      known.items[drop][4] = run.seats[place].map((seat, slot) => [slot, seat.id, seat.kind[0]]).filter(Boolean);
      forgetItems(known, known.first + drop);
    }
    PARTS.clear();
    clear();
    run.used = run.first = known.first;
  };

  const takeItem = ([first, start, steps, works, seats, waiting, more]) => {
    if (seats) {
      run.seated = [];
      for (const [slot, id, kind] of seats) run.seated[slot] = { id, kind: KINDS[kind] };
    }
    let at = start;
    for (let k = 0; k < steps.length; k += 2) {
      takeRound(first + k / 2, at / 100, (at + steps[k]) / 100, slotParts(works), waiting, more || {});
      at += steps[k] + (steps[k + 1] ?? 0);
    }
  };

  const takeRound = (number, start, end, parts, waiting, more) => {
    const last = run.ends.at(-1);
    if (cutting && last !== undefined && start - last > IDLE_MS) {
      run.cuts.from.push(last);
      run.cuts.to.push(start);
      run.cuts.taken.push((run.cuts.taken.at(-1) ?? 0) + start - last - CUT_MS);
    }
    const place = run.numbers.length;
    run.numbers.push(number);
    run.starts.push(start);
    run.ends.push(end);
    run.drawn.push(run.across(start));
    run.parts.push(parts);
    run.seats.push(run.seated);
    run.waiting.push(waiting);
    run.more.push(more);
    for (const [id, kind, tokens, at] of more.came ?? []) came(id, KINDS[kind], tokens, at / 100);
    for (const [slot, id] of more.out ?? []) leave(id, slot, start, true);
    run.seated.forEach((seat, slot) => sit(seat, slot, start));
    for (const slot of more.got ?? drew(parts)) gained(slot, place, end, Boolean(more.piece));
    for (const [slot, id, kind, reason] of more.end ?? []) {
      const request = run.requests.get(id) ?? came(id, KINDS[kind], null, null);
      const seated = slot !== null && run.seated[slot]?.id === id;
      if (slot !== null) leave(id, slot, seated ? end : start, false);
      Object.assign(request, { end: seated ? end : Math.max(start, request.came ?? start), reason });
      if (request.came !== null && (request.kind === "decision" || !request.stays.length)) run.rows[request.row] = request.end;
    }
  };

  const drew = (parts) => parts.flatMap((signs, slot) => (signs.includes("=") ? [slot] : []));

  const came = (id, kind, tokens, at) => {
    const busy = run.rows.findIndex((until) => at !== null && until <= at);
    const row = busy < 0 ? run.rows.length : busy;
    const request = { id, kind, tokens, came: at, stays: [], end: null, reason: null, row };
    if (at === null) request.row = 0;
    else run.rows[row] = Infinity;
    run.requests.set(id, request);
    return request;
  };

  /** Whoever is seated has a stay that goes on; a stream leaves the queue with its first. */
  const sit = (seat, slot, start) => {
    const request = run.requests.get(seat.id) ?? came(seat.id, seat.kind, null, null);
    const last = request.stays.at(-1);
    if (last && last.to === null && last.slot === slot) return;
    request.stays.push({ slot, from: start, to: null, out: false });
    if (request.kind === "stream" && request.came !== null) run.rows[request.row] = start;
  };

  const leave = (id, slot, at, out) => {
    const last = run.requests.get(id)?.stays.at(-1);
    if (last && last.slot === slot && last.to === null) Object.assign(last, { to: at, out });
  };

  const gained = (slot, place, end, beside) => {
    const id = run.seated[slot]?.id;
    const before = run.tokens.get(id);
    run.tokens.set(id, end);
    if (id === undefined || before === undefined) return;
    const own = run.gaps[slot];
    own.at.push(end);
    own.ms.push(end - before);
    own.id.push(id);
    own.round.push(place);
    own.beside.push(beside);
  };
  return run;
}
