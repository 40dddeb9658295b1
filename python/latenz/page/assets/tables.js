// ---- summary tables: unit, sorting, CSV -------------------------------------------------------

const tables = [...document.querySelectorAll("table.summary")];
const shownRows = 12;
const unitSelect = document.getElementById("unit");

/** As many decimals as the clock resolves; averages have one more. The same rule as in words.py. */
function inUnit(cell, size) {
  const text = cell.dataset.ns;
  const resolution = Number(cell.parentElement.dataset.resolution);
  const resolved = Math.ceil(Math.log10(size / resolution)) + (cell.dataset.finer && resolution > 1 ? 1 : 0);
  if (size > 1) return grouped((Number(text) / size).toFixed(Math.min(Math.max(resolved, 0), 3)));
  if (/^-?\d+$/.test(text)) return grouped(text);
  return grouped(Number(text).toFixed(resolution > 1 ? Math.min(Math.max(resolved, 0), 2) : 2));
}

unitSelect.addEventListener("change", () => {
  for (const table of tables) {
    const size = Number(unitSelect.value || table.dataset.size);
    table.querySelector(".unit").textContent = units.find(([one]) => one === size)[1];
    table.querySelectorAll("td[data-ns]").forEach((cell) => (cell.textContent = inUnit(cell, size)));
  }
});

function sortBy(table, heading) {
  const descending = heading.getAttribute("aria-sort") === "ascending";
  const column = heading.cellIndex;
  const value = (row) => {
    const cell = row.cells[column];
    return cell.dataset.ns ?? cell.dataset.count ?? (column === 0 ? cell.textContent : "");
  };
  const compare = (a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x === "" || y === "") return (x === "") - (y === "");
    const order = column === 0 ? x.localeCompare(y, "en", { numeric: true }) : Number(x) - Number(y);
    return descending ? -order : order;
  };
  table.querySelectorAll("th[aria-sort]").forEach((other) => other.removeAttribute("aria-sort"));
  heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
  const ordered = [...table.tBodies[0].rows].sort(compare);
  ordered.forEach((row, i) => row.classList.toggle("more", i >= shownRows));
  table.tBodies[0].append(...ordered);
}

for (const table of tables) {
  for (const heading of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    button.addEventListener("click", () => sortBy(table, heading));
    heading.append(button);
  }
}

/** A field that a spreadsheet takes for text: quoted, and never a formula. */
const csvText = (text) => `"${text.replace(/^(?=[=+\-@\t\r])/, "'").replace(/"/g, '""')}"`;

function csv() {
  const keys = [...new Set(tables.flatMap((table) => [...table.tHead.rows[0].cells].map((cell) => cell.dataset.key)))];
  const lines = tables.flatMap((table) => [...table.tBodies[0].rows].map((row) => {
    const cells = new Map([...row.cells].map((cell) => [cell.dataset.key, cell]));
    const fields = keys.slice(1).map((key) => cells.get(key)?.dataset.ns ?? cells.get(key)?.dataset.count ?? "");
    return [csvText(cells.get("name").textContent), table.dataset.timeBase, ...fields].join(",");
  }));
  return `${["name", "time_base", ...keys.slice(1)].join(",")}\n${lines.join("\n")}\n`;
}

const say = (text) => (document.getElementById("csv-done").textContent = text);
document.getElementById("copy-csv").addEventListener("click", () => {
  const copied = navigator.clipboard?.writeText(csv()) ?? Promise.reject(new Error("no clipboard"));
  copied.then(() => say("Copied."), () => say("This browser does not let a local file copy: download it instead."));
});
document.getElementById("save-csv").addEventListener("click", () => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([csv()], { type: "text/csv" }));
  link.download = "latenz-summary.csv";
  link.click();
  URL.revokeObjectURL(link.href);
});

document.querySelectorAll(".show-all button").forEach((button) => button.addEventListener("click", () => {
  const paragraph = button.parentElement;
  paragraph.previousElementSibling.querySelector("table").classList.remove("short");
  paragraph.remove();
}));
