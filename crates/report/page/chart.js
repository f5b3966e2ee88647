// What charts are drawn with: a field with two scales, lines, labels and a grid.

// The field of a chart `width` by `height` with room for labels around it. `across` and `up` are the values at its
// edges; `x` and `y` turn values into places.
function plot({ width, height, across, up }) {
  const [left, right, top, bottom] = [62, width - 8, 22, height - 23];
  const [from, to] = across;
  return {
    width,
    height,
    left,
    right,
    top,
    bottom,
    from,
    to,
    up,
    x: (value) => left + ((value - from) / (to - from || 1)) * (right - left),
    y: (value) => bottom - (Math.min(value, up) / up) * (bottom - top),
  };
}

const line = (x1, y1, x2, y2, attributes) =>
  svg("line", { x1, y1, x2, y2, stroke: "var(--line)", ...attributes });
const level = (field, value, attributes) =>
  line(field.left, field.y(value), field.right, field.y(value), attributes);
const upright = (field, x, attributes) => line(x, field.top, x, field.bottom, attributes);

// A label; `side` says where it stands from its place: start, middle or end.
const label = (x, y, side, text, tone) =>
  svg("text", { x, y, "text-anchor": side, style: tone ? `fill:var(--${tone})` : null }, text);

// Horizontal lines at round values, each with its label.
function grid(field, step, text) {
  const parts = [];
  for (let value = 0; value <= field.up; value += step) {
    parts.push(level(field, value), label(field.left - 8, field.y(value) + 4, "end", text(value)));
  }
  return parts;
}

const drawing = (field, name, parts) =>
  svg(
    "svg",
    { viewBox: `0 0 ${field.width} ${field.height}`, height: field.height, role: "img", "aria-label": name },
    parts,
  );
