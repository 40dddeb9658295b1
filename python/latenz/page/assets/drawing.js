// ---- drawing, when a figure comes into view ---------------------------------------------------

let plotly = null;
/** Compiling the plotting library takes a moment: only when the first figure is needed. */
function library() {
  if (plotly === null) {
    const script = document.createElement("script");
    script.textContent = document.getElementById("plotly-source").textContent;
    document.head.append(script);
    plotly = globalThis.Plotly;
  }
  return plotly;
}

const panels = [...document.querySelectorAll("figure.panel")].map((figure) => ({
  figure, kind: figure.dataset.kind, plot: figure.querySelector(".plot"), data: null, logarithmic: false, drawn: false,
}));

/** Width of a figure on paper: A4 and Letter hold it between their margins, with the panel's edge. */
const paperWidth = 660;
let onPaper = false;

function draw(panel) {
  if (panel.data === null) {
    panel.data = JSON.parse(figureData(panel.figure));
    if (scalable[panel.kind]) addScaleSwitch(panel);
  }
  const data = chosen(panel);
  panel.plot.style.setProperty("--rows", data.series.length);
  panel.plot.style.width = onPaper ? `${paperWidth}px` : "";
  const { clientWidth, clientHeight } = panel.plot;
  const look = currentLook(onPaper ? paperWidth : clientWidth, clientHeight, onPaper);
  panel.drawn = true;
  panel.empty ??= panel.plot.parentElement.insertBefore(Object.assign(document.createElement("p"), { className: "aside", hidden: true }), panel.plot);
  panel.empty.hidden = data.series.length > 0;
  panel.empty.textContent = "Nothing of it is among the conditions, CPUs and runs chosen above.";
  panel.plot.hidden = data.series.length === 0;
  if (panel.plot.hidden) return;
  const { data: traces, layout: made } = drawings[panel.kind](data, look, panel.logarithmic);
  const config = {
    responsive: true, displaylogo: false, displayModeBar: "hover", toImageButtonOptions: { format: "svg", filename: panel.figure.id },
    modeBarButtonsToRemove: ["sendChartToCloud", "select2d", "lasso2d", "autoScale2d"],
  };
  library().react(panel.plot, traces, made, { ...config, responsive: !onPaper });
}

const figureData = (figure) => figure.querySelector('script[type="application/json"]').textContent;
const redraw = () => panels.filter((panel) => panel.drawn).forEach(draw);

function addScaleSwitch(panel) {
  panel.logarithmic = scalable[panel.kind](panel.data);
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Logarithmic";
  button.setAttribute("aria-pressed", panel.logarithmic);
  button.addEventListener("click", () => {
    panel.logarithmic = !panel.logarithmic;
    button.setAttribute("aria-pressed", panel.logarithmic);
    draw(panel);
  });
  panel.figure.querySelector(".switches").append(button);
}

const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries.filter((one) => one.isIntersecting)) {
    watcher.unobserve(entry.target);
    draw(panels.find((panel) => panel.figure === entry.target));
  }
}, { rootMargin: "300px" });
panels.forEach((panel) => watcher.observe(panel.figure));

/** The arrow keys walk over the values of a plot as the pointer does. */
function walk(panel, event) {
  const step = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
  if (!step || !panel.drawn) return;
  event.preventDefault();
  const texts = panel.plot.data.map((trace) => trace.hovertext ?? trace.text ?? []);
  const curves = texts.map((_, i) => i).filter((i) => texts[i].length);
  panel.at ??= [0, -1];
  const curve = Math.min(Math.max(panel.at[0] + step[1], 0), curves.length - 1);
  const last = texts[curves[curve]].length - 1;
  const point = Math.min(Math.max(step[1] ? 0 : panel.at[1] + step[0], 0), last);
  panel.at = [curve, point];
  library().Fx.hover(panel.plot, [{ curveNumber: curves[curve], pointNumber: point }]);
  document.getElementById("value").textContent = spoken(texts[curves[curve]][point]);
}
panels.forEach((panel) => panel.plot.addEventListener("keydown", (event) => walk(panel, event)));

// ---- theme and print --------------------------------------------------------------------------

const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const themeButton = document.getElementById("theme");
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : prefersDark.matches);
const showTheme = () => themeButton.setAttribute("aria-pressed", isDark());

themeButton.addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  try {
    localStorage.setItem("latenz-theme", root.dataset.theme);
  } catch {
    // Not remembered where the browser keeps nothing for local files.
  }
  showTheme();
  redraw();
});
prefersDark.addEventListener("change", () => {
  showTheme();
  redraw();
});
showTheme();

let themeBeforePrint = null;
let openedForPrint = [];
const isShown = (panel) => !panel.figure.closest("details:not([open])");
/** Paper is light and cannot be scrolled: what is not folded is drawn at its width, in light colours. */
function preparePrint() {
  if (themeBeforePrint !== null) return;
  themeBeforePrint = root.dataset.theme ?? "";
  root.dataset.theme = "light";
  openedForPrint = [...document.querySelectorAll("#provenance > details:not([open]), details.to-print:not([open])")];
  openedForPrint.forEach((details) => (details.open = true));
  onPaper = true;
  panels.filter(isShown).forEach(draw);
}
function afterPrint() {
  if (themeBeforePrint === null) return;
  if (themeBeforePrint) root.dataset.theme = themeBeforePrint;
  else delete root.dataset.theme;
  themeBeforePrint = null;
  onPaper = false;
  openedForPrint.forEach((details) => (details.open = false));
  redraw();
}
addEventListener("beforeprint", preparePrint);
addEventListener("afterprint", afterPrint);
matchMedia("print").addEventListener("change", (event) => (event.matches ? preparePrint() : afterPrint()));
