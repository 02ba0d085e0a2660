// Fingers, mouse and wheel on the timeline: told as shares of its width, so that nothing else knows of events.

/** Listeners for a canvas. A plain wheel is left to the page; with ctrl or cmd, or as a pinch, it zooms. */
function timelineHands({ share, zoom, pan, tap, over }) {
  const fingers = new Map();
  let moved = 0, apart = 0;
  const spot = (event) => ({ x: event.offsetX, y: event.offsetY });
  const pinch = () => {
    const [a, b] = [...fingers.values()], now = Math.max(10, Math.abs(a.x - b.x));
    if (apart) zoom(apart / now, share((a.x + b.x) / 2));
    apart = now;
  };
  const lift = (event) => {
    fingers.delete(event.pointerId);
    apart = 0;
  };
  return {
    onwheel: (event) => {
      const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
      if (event.ctrlKey || event.metaKey) zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) / 60), share(spot(event).x));
      else if (sideways) pan(share(event.deltaX) - share(0));
      else return;
      event.preventDefault();
    },
    onpointerdown: (event) => {
      if (event.button !== 0) return;
      fingers.set(event.pointerId, spot(event));
      moved = 0;
      event.target.setPointerCapture(event.pointerId);
    },
    onpointermove: (event) => {
      const at = spot(event), before = fingers.get(event.pointerId);
      if (before) {
        fingers.set(event.pointerId, at);
        moved += Math.abs(at.x - before.x);
        if (fingers.size === 2) pinch();
        else if (moved > 3) pan(share(before.x) - share(at.x));
      }
      over(at);
    },
    onpointerup: (event) => {
      const single = fingers.size === 1 && fingers.has(event.pointerId);
      lift(event);
      if (single && moved <= 3) tap(spot(event));
    },
    onpointercancel: lift,
    onpointerleave: () => over(null),
  };
}
