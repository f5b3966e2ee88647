// Elements from data. Every text becomes a text node, never markup.

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") element.style.cssText = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(clean(child)));
  }
  return element;
}

const h = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

const color = (name) =>
  getComputedStyle(document.documentElement)
    .getPropertyValue("--" + name)
    .trim();
const swatch = (name, idle) =>
  h("span", { class: idle ? "swatch idle" : "swatch", style: `background-color:var(--${name})` });
const meter = (share, bad) =>
  h(
    "div",
    { class: "meter" },
    h("i", { class: bad ? "bad" : null, style: `width:${Math.min(100, share * 100)}%` }),
  );

// Text in which `…` stands for code.
const rich = (text) =>
  text.split(/(`[^`]*`)/).map((part) => (/^`[^`]+`$/.test(part) ? h("code", null, part.slice(1, -1)) : part));

// A definition list of the pairs whose value is known.
const facts = (pairs) =>
  h(
    "dl",
    null,
    pairs
      .filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false)
      .map(([name, value]) => [h("dt", null, name), h("dd", null, value)]),
  );

// A table; a column is {head, cell, right, wide}. `wide` columns are left out on narrow screens.
function table(columns, rows) {
  const kind = (column) => [column.right && "right", column.wide && "wide"].filter(Boolean).join(" ") || null;
  return h(
    "div",
    { class: "scroll" },
    h(
      "table",
      null,
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          columns.map((column) => h("th", { class: kind(column) }, column.head)),
        ),
      ),
      h(
        "tbody",
        null,
        rows.map((row) =>
          h(
            "tr",
            null,
            columns.map((column) => h("td", { class: kind(column) }, column.cell(row))),
          ),
        ),
      ),
    ),
  );
}

// A number with its name, a graphic and what to know about it.
const tile = (name, value, unit, graphic, ...details) =>
  h(
    "div",
    { class: "tile" },
    h("span", { class: "name" }, name),
    h("span", { class: "value" }, value, unit && h("small", null, " " + unit)),
    graphic,
    details.filter(Boolean).map((detail) => h("span", { class: "detail" }, detail)),
  );

// A section of the page with its link in the bar at the top.
function section(id, title, lead, ...content) {
  return h(
    "section",
    { id },
    h("h2", null, title),
    lead ? h("p", { class: "lead" }, lead) : null,
    ...content,
  );
}

// Draws now and whenever the width of `element` or the colour scheme changes.
function redrawn(element, draw) {
  let width = 0;
  const again = () => {
    if (element.clientWidth > 0) draw((width = element.clientWidth));
  };
  // Drawing changes heights, which an observer must not do within its own call.
  new ResizeObserver(() => element.clientWidth !== width && requestAnimationFrame(again)).observe(element);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  return element;
}
