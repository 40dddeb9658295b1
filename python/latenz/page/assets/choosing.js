// ---- what is drawn: conditions, runs, CPUs ---------------------------------------------------------

const boxes = [...document.querySelectorAll("#choose input")];
/** Kinds with a row for each line: the latest of several would only repeat their maximum. */
const rowKinds = ["averages", "violins"];

const picked = (name) => new Set(boxes.filter((box) => box.name === name && box.checked).map((box) => box.value));
const offered = (name) => boxes.some((box) => box.name === name);

/** The data of a panel with the lines that are to be drawn. */
function chosen(panel) {
  const [conditions, runs] = [picked("condition"), picked("run")];
  const cpu = boxes.find((box) => box.name === "cpu" && box.checked)?.value ?? "together";
  const wanted = (line) => {
    if (line.choice && offered("condition") && !conditions.has(line.choice)) return false;
    if (line.run && offered("run") && !runs.has(line.run)) return false;
    if (line.role === undefined || line.role === "single") return cpu === "together" || cpu === "each" || line.cpu === null || String(line.cpu) === cpu;
    if (cpu === "each") return line.role === "set";
    if (cpu !== "together") return line.role === "set" && String(line.cpu) === cpu;
    return line.role === "pooled" || (line.latest && !rowKinds.includes(panel.kind));
  };
  return { ...panel.data, series: (panel.data.series ?? []).filter((line) => line.choice === undefined || wanted(line)) };
}

boxes.forEach((box) => box.addEventListener("change", redraw));
document.querySelectorAll("#choose button").forEach((button) => button.addEventListener("click", () => {
  boxes.filter((box) => box.name === "condition").forEach((box) => (box.checked = button.value === "all"));
  redraw();
}));
