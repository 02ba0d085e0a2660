// A view of a widget: its panels, and the lines about troubles, acts and the engine's end below them.
function render({ model, el }) {
  const own = sender(model);
  const status = h("div", { class: "lanes-status", role: "status", "aria-live": "polite" });
  const names = model.get("panels");
  const panels = h("div", { class: "lanes-panels" });
  const root = h("div", { class: `lanes${names.length > 1 ? " lanes-bench" : ""}` }, panels, status);
  const left = new AbortController();
  const draws = names.map((name) => {
    const port = { send: own.send, frame: () => model.get("frame"), tape: (of) => tape(own, name, of), left: left.signal };
    const panel = PANELS[name](port);
    panels.append(panel.node);
    return (frame) => {
      if (!frame[name]) return;
      panel.draw(frame[name], frame);
      dropTapes(own, name);
    };
  });
  const draw = () => {
    const frame = model.get("frame");
    draws.forEach((one) => one(frame));
    root.classList.toggle("lanes-closed", frame.closed);
    say(status, frame.trouble || fate(frame, own) || (frame.closed ? "The engine is closed: this is its last picture." : ""));
  };
  model.on("change:frame", draw);
  own.listeners.add(draw);
  el.append(root);
  draw();
  return () => {
    model.off("change:frame", draw);
    own.listeners.delete(draw);
    left.abort();
  };
}

export default { render };
