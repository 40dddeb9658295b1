"use strict";
// Draws the plots of a page in the colours of the reader's theme, each when it comes into view.
(() => {
  const probe = document.body.appendChild(document.createElement("i"));
  const colour = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };

  function draw(figure) {
    const { traces, x, y } = JSON.parse(figure.querySelector("script").textContent);
    const place = figure.querySelector(".plot");
    const line = { gridcolor: colour("grid"), linecolor: colour("line"), zerolinecolor: colour("line") };
    const axis = (more) => ({ automargin: true, exponentformat: "none", separatethousands: true, ...line, ...more });
    place.replaceChildren();
    Plotly.newPlot(place, traces, {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: colour("ink"), family: getComputedStyle(document.body).fontFamily, size: 12 },
      colorway: [0, 1, 2, 3, 4, 5, 6, 7].map((i) => colour(`c${i}`)),
      margin: { l: 10, r: 10, t: 10, b: 10 }, hovermode: "closest", legend: { orientation: "v" },
      xaxis: axis(x), yaxis: axis(y),
    }, {
      responsive: true, displaylogo: false, toImageButtonOptions: { format: "svg" },
      modeBarButtonsToRemove: ["sendChartToCloud", "select2d", "lasso2d", "autoScale2d"],
    });
  }

  const figures = document.querySelectorAll("figure.panel");
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries.filter((each) => each.isIntersecting)) {
      seen.unobserve(entry.target);
      draw(entry.target);
    }
  }, { rootMargin: "400px" });
  figures.forEach((figure) => seen.observe(figure));
  window.addEventListener("beforeprint", () => figures.forEach(draw));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => figures.forEach(draw));
})();
