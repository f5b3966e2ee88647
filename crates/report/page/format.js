// Numbers as people read them. `quantity.rs` formats the same way; change both together.

const NO_BREAK = "\u00a0";

function significant(value, digits) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "?";
  const magnitude = value === 0 ? 0 : Math.floor(Math.log10(Math.abs(value)));
  return value.toFixed(Math.max(0, Math.min(20, digits - 1 - magnitude)));
}

function seconds(value, digits = 3) {
  const size = Math.abs(value);
  if (size === 0) return "0" + NO_BREAK + "s";
  if (size >= 1) return significant(value, digits) + NO_BREAK + "s";
  if (size >= 1e-3) return significant(value * 1e3, digits) + NO_BREAK + "ms";
  if (size >= 1e-6) return significant(value * 1e6, digits) + NO_BREAK + "µs";
  return significant(value * 1e9, digits) + NO_BREAK + "ns";
}

function scaled(value, base, units) {
  let unit = 0;
  while (Math.abs(value) >= base && unit + 1 < units.length) {
    value /= base;
    unit += 1;
  }
  const text =
    unit === 0 && Number.isInteger(value)
      ? String(value)
      : Math.abs(value) >= 1000
        ? value.toFixed(0)
        : significant(value, 3);
  return text + NO_BREAK + units[unit];
}

const bytes = (value) => scaled(value, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]);
const metric = (value, unit) => scaled(value, 1000, ["", "k", "M", "G", "T", "P", "E"]) + unit;
const rate = (value) => scaled(value, 1000, ["", "k", "M", "G"]).replace(NO_BREAK, "");
const percent = (share, digits = 1) => (share * 100).toFixed(digits) + NO_BREAK + "%";
const count = (value) =>
  Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, ",");
const plural = (value, one, many) => count(value) + " " + (value === 1 ? one : many);

// A fact of a sheet: bytes in binary units, rates and frequencies with decimal prefixes, small counts as they are.
function withUnit(value, unit) {
  if (unit === "B" || unit === "bytes") return bytes(value);
  if (["B/s", "bytes/s", "FLOP/s", "Hz"].includes(unit)) return metric(value, unit.replace("bytes", "B"));
  if (unit === "s" || unit === "seconds") return seconds(value);
  const number = Number.isInteger(value) ? count(value) : String(+value.toPrecision(6));
  return unit ? number + NO_BREAK + unit : number;
}

// Texts of strangers: nothing invisible, nothing that turns the direction of writing.
const clean = (text) =>
  String(text).replace(/[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g, (c) =>
    /[\t\n\r]/.test(c) ? " " : "\ufffd",
  );

// A text as a sentence of its own: a first word of plain small letters gets a capital.
const sentence = (text) => (/^[a-z]+(?=[\s,:]|$)/.test(text) ? text[0].toUpperCase() + text.slice(1) : text);

// A step of 1, 2 or 5 times a power of ten so that `range` has about `parts` of them.
function niceStep(range, parts) {
  if (!(range > 0)) return Infinity;
  const raw = range / Math.max(1, parts);
  const power = 10 ** Math.floor(Math.log10(raw));
  const lead = raw / power;
  return (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10) * power;
}
