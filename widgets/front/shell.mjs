// A view of a widget: its panels, each with a line on what was done in it last; the engine's end and troubles below them.
function render({ model, el }) {
  const own = sender(model);
  const status = h("div", { class: "lanes-status", role: "status", "aria-live": "polite" });
  const names = model.get("panels");
  const panels = h("div", { class: "lanes-panels" });
  const root = h("div", { class: `lanes${names.length > 1 ? " lanes-bench" : ""}` }, panels, status);
  const left = new AbortController();
  const draws = names.map((name) => {
    const send = (what, given) => own.send(what, given, name);
    const panel = PANELS[name]({ send, frame: () => model.get("frame"), tape: (of) => tape(own, name, of), left: left.signal });
    const told = h("div", { class: "lanes-told", role: "status", "aria-live": "polite" });
    panel.node.append(told);
    panels.append(panel.node);
    return (frame) => {
      say(told, frame.closed ? "" : fate(frame, own, name, panel.tells ?? []));
      if (!frame[name]) return;
      panel.draw(frame[name], frame);
      dropTapes(own, name);
    };
  });
  const draw = () => {
    const frame = model.get("frame");
    draws.forEach((one) => one(frame));
    root.classList.toggle("lanes-closed", frame.closed);
    say(status, frame.trouble || (frame.closed ? "The engine is closed: this is its last picture." : ""));
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
