// Moving and zooming the timeline with mouse, wheel and fingers.

function timelineGestures({ view, lanes, overview, box, moveTo, zoom, timeAt, draw }) {
  const fingers = new Map();
  let last = null;
  lanes.addEventListener("pointerdown", (event) => {
    fingers.set(event.pointerId, event);
    last = event;
    delete lanes.dataset.dragged;
  });
  lanes.addEventListener("pointermove", (event) => {
    if (!fingers.has(event.pointerId)) return;
    const width = view.to - view.from;
    if (fingers.size === 2) {
      const spread = () => {
        const [a, b] = [...fingers.values()];
        return Math.abs(a.clientX - b.clientX) || 1;
      };
      const before = spread();
      fingers.set(event.pointerId, event);
      const [a, b] = [...fingers.values()];
      lanes.dataset.dragged = "yes";
      zoom(before / spread(), timeAt({ clientX: (a.clientX + b.clientX) / 2 }));
      return;
    }
    const moved = event.clientX - last.clientX;
    if (!lanes.dataset.dragged && Math.abs(moved) < 4) return;
    if (!lanes.dataset.dragged) {
      lanes.dataset.dragged = "yes";
      lanes.setPointerCapture(event.pointerId);
      lanes.classList.add("dragging");
    }
    moveTo(view.from - (moved / box.clientWidth) * width, view.to - (moved / box.clientWidth) * width);
    if (event.pointerType === "mouse") lanes.scrollTop -= event.clientY - last.clientY;
    last = event;
    fingers.set(event.pointerId, event);
  });
  const lift = (event) => {
    fingers.delete(event.pointerId);
    last = [...fingers.values()][0] ?? null;
    lanes.classList.remove("dragging");
    // The click that ends a drag comes after this event and must still see that it was one.
    setTimeout(() => fingers.size || delete lanes.dataset.dragged, 0);
  };
  lanes.addEventListener("pointerup", lift);
  lanes.addEventListener("pointercancel", lift);
  box.addEventListener(
    "wheel",
    (event) => {
      const width = view.to - view.from;
      const line = event.deltaMode === 1 ? 30 : 1;
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        zoom(Math.exp(Math.max(-120, Math.min(120, event.deltaY * line)) * 0.004), timeAt(event));
      } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        event.preventDefault();
        const shift = (((event.deltaX || event.deltaY) * line) / box.clientWidth) * width;
        moveTo(view.from + shift, view.to + shift);
      }
    },
    { passive: false },
  );

  const jump = (event) => {
    const bounds = overview.getBoundingClientRect();
    const at = ((event.clientX - bounds.left) / bounds.width) * view.model.end;
    const width = view.to - view.from;
    if (width >= view.model.end) moveTo(at - view.model.end / 20, at + view.model.end / 20);
    else moveTo(at - width / 2, at + width / 2);
  };
  overview.addEventListener("pointerdown", (event) => {
    overview.setPointerCapture(event.pointerId);
    jump(event);
  });
  overview.addEventListener("pointermove", (event) => event.buttons && jump(event));
  draw();
}
