const root = document.documentElement;
const units = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
const dashes = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
const patterns = { silicon: "", virtual: "/", simulated: ".", published: "-" };
const markSymbols = { median: "line-ns", "99 %": "diamond", "99.9 %": "diamond-open", max: "x" };

// ---- numbers -------------------------------------------------------------------------------

const grouped = (number) => {
  const [whole, part] = String(number).split(".");
  return whole.replace(/\B(?=(\d{3})+$)/g, ",") + (part === undefined ? "" : `.${part}`);
};

function duration(ns) {
  const [size, unit] = units.find(([limit]) => Math.abs(ns) >= limit) ?? [1, "ns"];
  return `${Number((ns / size).toPrecision(4))} ${unit}`;
}

const full = (ns) => `${duration(ns)} (${grouped(ns)} ns)`;
const rate = (share) => (share >= 0.01 ? `${Number((100 * share).toPrecision(4))} %` : share.toExponential(2));
/** Plotly reads a little markup in texts; names from files must not be taken for it. */
const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
const spoken = (text) => text.replace(/<br>/g, ", ").replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&");
const positive = (values) => values.filter((value) => value > 0);

/** The unit of an axis: the largest in which the typical value is at least one. */
function axisUnit(values) {
  const sorted = positive(values).sort((a, b) => a - b);
  const typical = sorted[Math.floor(sorted.length / 2)] ?? 1;
  return units.find(([size]) => typical >= size) ?? [1, "ns"];
}
