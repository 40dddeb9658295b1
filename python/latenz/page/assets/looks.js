// ---- looks ---------------------------------------------------------------------------------

/** The colours of the current theme, resolved by the browser. */
function currentLook(width, height, fixed) {
  const probe = document.body.appendChild(document.createElement("i"));
  const colour = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const look = {
    width, height, fixed, aside: width < 480 ? 70 : 110, ink: colour("ink"), soft: colour("soft"), grid: colour("grid"), card: colour("card"),
    line: colour("line"), alert: colour("violates"), series: [0, 1, 2, 3, 4, 5, 6, 7].map((i) => colour(`c${i}`)),
  };
  probe.remove();
  return look;
}

const colourOf = (series, look) => look.series[series.colour % look.series.length];
/** Runs, and more than eight conditions, differ by dashes. */
const dashOf = (series) => dashes[(series.dash + Math.floor(series.colour / 8)) % dashes.length];
/** One of several is thin beside all of them together. */
const widthOf = (series) => (series.role === "set" ? 1 : 2.2);
/** Among many lines only those of pools are named, unless nothing else is drawn. */
const isNamed = (series, all) => series.role !== "set" || all.length <= 6 || all.every((one) => one.role === "set");
const nameOf = (series, all) => plain(series.latest && all.some((one) => one.role === "pooled") ? `${series.label}, the latest` : series.label);
const faded = (colour, alpha) => colour.replace(/^rgb\((.*)\)$/, `rgba($1, ${alpha})`);

function axis(look, title, more = {}) {
  return {
    title: { text: title, standoff: 8, font: { size: 12 } }, gridcolor: look.grid, linecolor: look.line,
    zerolinecolor: look.line, tickcolor: look.line, automargin: true, exponentformat: "none",
    separatethousands: true, tickangle: 0, ...(look.width < 480 ? sparse(more) : {}), ...more,
  };
}

/** Fewer ticks where there is little room. */
const sparse = ({ type }) => (type === "log" ? {} : { nticks: 4 });

/** Numbers at which a logarithmic axis is labelled, and small ticks between them. */
function logTicks([low, high], most) {
  const decades = Math.log10(high / low);
  const from = Math.floor(Math.log10(low));
  const powers = Array.from({ length: Math.ceil(Math.log10(high)) - from + 1 }, (_, i) => from + i);
  const within = (values) => values.filter((value) => value >= low * 0.999 && value <= high * 1.001);
  const times = (factors) => within(powers.flatMap((power) => factors.map((factor) => factor * 10 ** power)));
  const minor = decades <= 6 ? times([2, 3, 4, 5, 6, 7, 8, 9]) : [];
  for (const factors of [[1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9], [1, 2, 3, 5, 7], [1, 2, 5], [1, 3]]) {
    const found = times(factors);
    if (found.length >= 2 && found.length <= most) return { tickvals: found, minor };
  }
  const every = Math.max(1, Math.ceil(within(powers.map((power) => 10 ** power)).length / most));
  const labelled = within(powers.filter((power) => power % every === 0).map((power) => 10 ** power));
  if (labelled.length >= 2) return { tickvals: labelled, minor };
  const step = 10 ** Math.floor(Math.log10((high - low) / 2));
  const nice = [1, 2, 5, 10].map((factor) => factor * step).find((one) => (high - low) / one <= most) ?? 10 * step;
  const first = Math.ceil(low / nice);
  return { tickvals: Array.from({ length: Math.max(0, Math.floor(high / nice) - first + 1) }, (_, i) => (first + i) * nice), minor: [] };
}

/** A logarithmic axis of time over nanoseconds: each label is a time with its unit. */
function timeAxis(look, range, across = "x", title = "latency") {
  const { tickvals, minor } = logTicks(range, across === "y" ? 8 : Math.max(3, Math.floor(look.width / 95)));
  return axis(look, title, {
    type: "log", range: range.map(Math.log10), tickvals, ticktext: tickvals.map(duration),
    minor: { tickmode: "array", tickvals: minor, ticks: "outside", ticklen: 3, tickcolor: look.line },
  });
}

/** A logarithmic axis of shares: 1 in so many. */
function shareAxis(look, least) {
  const powers = Array.from({ length: Math.floor(-Math.log10(least)) + 1 }, (_, i) => i);
  const every = Math.ceil(powers.length / 8);
  const shown = powers.filter((power) => power % every === 0);
  const raised = (power) => [...String(power)].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("");
  const told = (power) => (power === 0 ? "all" : `1 in ${power < 6 ? grouped(10 ** power) : `10${raised(power)}`}`);
  return axis(look, look.width < 480 ? "" : "share of activations at or above", {
    type: "log", range: [Math.log10(least) - 0.1, 0.15], tickvals: shown.map((power) => 10 ** -power), ticktext: shown.map(told),
  });
}

/** A range in ns with a margin on a logarithmic axis; one value alone gets room on both sides. */
function roomy([low, high]) {
  const margin = Math.max(0.04 * Math.log10(high / low), 0.02);
  return [low / 10 ** margin, high * 10 ** margin];
}

/** Names without what all begin with; what is still too long loses its middle. */
function shortened(labels, room) {
  const cut = (text) => Math.max(text.lastIndexOf("/") + 1, text.lastIndexOf(": ") < 0 ? 0 : text.lastIndexOf(": ") + 2);
  let shared = labels.length > 1 ? labels[0].slice(0, cut(labels[0])) : "";
  while (shared && !labels.every((label) => label.startsWith(shared))) shared = shared.slice(0, cut(shared.slice(0, -1).replace(/[:/]$/, "")));
  const rest = labels.map((label) => label.slice(shared.length));
  const half = Math.floor((room - 1) / 2);
  return rest.map((label) => (label.length > room ? `${label.slice(0, half)}…${label.slice(-half)}` : label));
}

/** An axis with a row for each line. */
function rowAxis(labels, look) {
  const short = shortened(labels, Math.max(14, Math.floor(look.width / 18)));
  return axis(look, "", {
    tickvals: labels.map((_, i) => i), ticktext: short.map(plain), range: [-0.6, labels.length - 0.4],
    zeroline: false, showgrid: false,
  });
}

function layout(look, more) {
  return {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", margin: { l: 10, r: 14, t: 34, b: 10 },
    font: { color: look.ink, family: getComputedStyle(document.body).fontFamily, size: 12 },
    hoverlabel: { bgcolor: look.card, bordercolor: look.line, font: { color: look.ink }, align: "left", namelength: 0 },
    hovermode: "closest", dragmode: "zoom", showlegend: true,
    legend: { orientation: "h", yref: "container", y: 0, yanchor: "bottom", x: 0, font: { size: 12 } },
    ...(look.fixed ? { autosize: false, width: look.width, height: look.height } : {}), ...more,
  };
}

const limitText = ({ name, ns }) => plain(name.replace(/\s/g, "") === duration(ns).replace(" ", "") ? duration(ns) : `${name} ${duration(ns)}`);

/**
 * Lines and names of the deadlines across an axis of time; an arrow at the edge for those beyond it.
 *
 * Names that would overlap stand above each other, and none reaches beyond the plot.
 */
function limitLines(limits, look, across, { range, place = (ns) => ns, log = false }) {
  const other = across === "x" ? "y" : "x";
  const [low, high] = log ? range.map(Math.log10) : range;
  const at = (ns) => (log ? Math.log10(ns) : place(ns));
  const inside = limits.filter((limit) => at(limit.ns) <= high);
  const beyond = limits.filter((limit) => at(limit.ns) > high);
  const length = (across === "x" ? look.width - look.aside : look.height) || 1;
  const taken = [];
  const level = (from, to) => {
    let found = 0;
    while (taken.some((one) => one.level === found && one.from < to && from < one.to)) found += 1;
    taken.push({ from, to, level: found });
    return found;
  };
  const ahead = { x: "→", y: "↑" }[across];
  const label = (text, centre, anchor, where) => {
    const half = 3.6 * text.length;
    const [from, to] = across === "y" ? [centre - 8, centre + 8]
      : anchor === "right" ? [centre - 2 * half, centre] : anchor === "left" ? [centre, centre + 2 * half] : [centre - half, centre + half];
    const found = level(from, to);
    const common = { text, showarrow: false, font: { color: look.alert, size: 11 }, ...where };
    return across === "x" ? { ...common, yref: "paper", y: 1, yanchor: "bottom", yshift: 14 * found, xanchor: anchor }
      : { ...common, xref: "paper", x: 1, xanchor: "right", yanchor: "bottom", xshift: -90 * found };
  };
  const annotations = [
    ...inside.map((limit) => {
      const text = limitText(limit);
      const centre = ((at(limit.ns) - low) / (high - low)) * length;
      const half = 3.6 * text.length;
      return label(text, centre, centre < half ? "left" : centre > length - half ? "right" : "center", { [across]: at(limit.ns) });
    }),
    ...beyond.map((limit) => label(`${limitText(limit)} ${ahead}`, length, "right", { [`${across}ref`]: "paper", [across]: 1 })),
  ];
  const levels = Math.max(1, ...taken.map((one) => one.level + 1));
  return {
    shapes: inside.map((limit) => ({
      type: "line", line: { color: look.alert, width: 1.5, dash: "dash" }, [`${other}ref`]: "paper",
      [`${across}0`]: place(limit.ns), [`${across}1`]: place(limit.ns), [`${other}0`]: 0, [`${other}1`]: 1,
    })),
    annotations,
    margin: { l: 10, r: 14, t: 20 + (across === "x" ? 14 * levels : 14), b: 10 },
  };
}
