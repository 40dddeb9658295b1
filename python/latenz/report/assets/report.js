"use strict";
// Draws the figures when they come into view, and serves the buttons of the page.
(() => {
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

  // ---- looks ---------------------------------------------------------------------------------

  /** The colours of the current theme, resolved by the browser. */
  function currentLook(width) {
    const probe = document.body.appendChild(document.createElement("i"));
    const colour = (name) => {
      probe.style.color = `var(--${name})`;
      return getComputedStyle(probe).color;
    };
    const look = {
      width, ink: colour("ink"), soft: colour("soft"), grid: colour("grid"), card: colour("card"),
      line: colour("line"), alert: colour("violates"), series: [0, 1, 2, 3, 4, 5, 6, 7].map((i) => colour(`c${i}`)),
    };
    probe.remove();
    return look;
  }

  const colourOf = (series, look) => look.series[series.colour % look.series.length];
  const dashOf = (series) => dashes[(series.dash + Math.floor(series.colour / 8)) % dashes.length];
  const faded = (colour, alpha) => colour.replace(/^rgb\((.*)\)$/, `rgba($1, ${alpha})`);

  function axis(look, title, more = {}) {
    return {
      title: { text: title, standoff: 8, font: { size: 12 } }, gridcolor: look.grid, linecolor: look.line,
      zerolinecolor: look.line, tickcolor: look.line, automargin: true, exponentformat: "none",
      separatethousands: true, tickangle: 0, ...(look.width < 480 ? sparse(more) : {}), ...more,
    };
  }

  /** Fewer ticks where there is little room. */
  function sparse({ type, range }) {
    if (type !== "log") return { nticks: 4 };
    return range && range[1] - range[0] > 1.5 ? { dtick: Math.ceil((range[1] - range[0]) / 4) } : { nticks: 3 };
  }

  /** An axis with a row for each sample set; long names lose their beginning. */
  function rowAxis(labels, look) {
    const room = Math.max(12, Math.floor(look.width / 18));
    const short = labels.map((label) => (label.length > room ? `…${label.slice(1 - room)}` : label));
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
      legend: { orientation: "h", y: -0.22, yanchor: "top", x: 0, font: { size: 12 } }, ...more,
    };
  }

  /** Range of a logarithmic axis around values and limits, in decades. */
  function logRange(values, size) {
    const decades = positive(values).map((value) => Math.log10(value / size));
    const low = decades.reduce((a, b) => Math.min(a, b), Infinity);
    const high = decades.reduce((a, b) => Math.max(a, b), -Infinity);
    if (low > high) return [0, 1];
    const margin = 0.05 * (high - low) + 0.003;
    return [low - margin, high + margin];
  }

  /** Lines and names of the deadlines across an axis. */
  function limitLines(limits, size, look, across, logarithmic) {
    const other = across === "x" ? "y" : "x";
    return {
      shapes: limits.map((limit) => ({
        type: "line", line: { color: look.alert, width: 1.5, dash: "dash" }, [`${other}ref`]: "paper",
        [`${across}0`]: limit.ns / size, [`${across}1`]: limit.ns / size, [`${other}0`]: 0, [`${other}1`]: 1,
      })),
      annotations: limits.map((limit, i) => ({
        text: plain(limit.name), showarrow: false, font: { color: look.alert, size: 11 }, [`${other}ref`]: "paper",
        [across]: logarithmic ? Math.log10(limit.ns / size) : limit.ns / size, [other]: 1,
        ...(across === "x" ? { yanchor: "bottom", yshift: 12 * (i % 2) } : { xanchor: "right", yanchor: "bottom" }),
      })),
    };
  }

  // ---- figures: each takes the data of a panel and gives traces and layout ----------------------

  function averages({ series, limits, timeBase }, look, logarithmic) {
    const [size, unit] = axisUnit(series.map((one) => one.mean ?? one.max));
    const rows = [...series].reverse();
    const most = Math.max(...series.map((one) => one.max ?? one.mean));
    const near = limits.filter((limit) => logarithmic || limit.ns <= 1.5 * most);
    const bars = (name, key, colour) => ({
      type: "bar", orientation: "h", name, y: rows.map((_, i) => i), constraintext: "none",
      x: rows.map((one) => (one[key] === null ? null : one[key] / size)),
      text: rows.map((one) => (one[key] === null ? "" : duration(one[key]))), textposition: "outside",
      cliponaxis: false, textangle: 0, hoverinfo: "text", textfont: { color: look.ink, size: 11 },
      hovertext: rows.map((one) => (one[key] === null ? "" : `${plain(one.label)}: ${name} ${full(one[key])}`)),
      marker: { color: colour, pattern: { shape: patterns[timeBase], fillmode: "overlay", fgcolor: look.card, size: 7, solidity: 0.3 } },
    });
    const lines = limitLines(near, size, look, "x", logarithmic);
    const highest = Math.max(most, ...near.map((limit) => limit.ns)) / size;
    return {
      data: [bars("maximum", "max", look.series[1]), bars("average", "mean", look.series[0])],
      layout: layout(look, {
        ...lines, barmode: "group", bargap: 0.3,
        xaxis: axis(look, `latency [${unit}]`, logarithmic ? { type: "log" } : { range: [0, (look.width < 480 ? 1.45 : 1.22) * highest] }),
        yaxis: rowAxis(rows.map((one) => one.label), look), legend: { orientation: "h", yref: "container", y: 0, yanchor: "bottom", x: 0, traceorder: "reversed" },
        margin: { l: 10, r: 14, t: 34, b: 84 },
      }),
    };
  }

  function violins({ series, limits, timeBase }, look) {
    const marks = series.flatMap((one) => one.marks.map((mark) => mark.ns));
    const [size, unit] = axisUnit(series.map((one) => one.marks[0]?.ns ?? one.latency[0]));
    const place = (i) => series.length - 1 - i;
    const traces = series.flatMap((one, i) => {
      const colour = colourOf(one, look);
      const scaled = one.latency.map((ns) => ns / size);
      const shown = one.marks.filter((mark) => mark.ns > 0);
      const unknown = [one.latency.at(-1), shown.at(-1)?.ns ?? 0];
      return [
        {
          type: "scatter", mode: "lines", fill: "toself", hoverinfo: "skip", line: { color: colour, width: 1 },
          fillcolor: faded(colour, 0.35), fillpattern: { shape: patterns[timeBase], fgcolor: colour, solidity: 0.3 },
          x: [...scaled, ...scaled.toReversed()],
          y: [...one.width.map((w) => place(i) + 0.42 * w), ...one.width.map((w) => place(i) - 0.42 * w).toReversed()],
        },
        {
          type: "scatter", mode: "lines", hoverinfo: "skip", line: { color: colour, width: 1, dash: "dot" },
          x: unknown[1] > unknown[0] ? unknown.map((ns) => ns / size) : [], y: [place(i), place(i)],
        },
        {
          type: "scatter", mode: "markers", hoverinfo: "text", cliponaxis: false,
          x: shown.map((mark) => mark.ns / size), y: shown.map(() => place(i)),
          text: shown.map((mark) => `${plain(one.label)}: ${mark.name} ${full(mark.ns)}`),
          marker: {
            color: look.ink, size: shown.map((mark) => (mark.name === "median" ? 16 : 8)),
            symbol: shown.map((mark) => markSymbols[mark.name]),
            line: { color: look.ink, width: shown.map((mark) => (mark.name === "median" ? 2 : 1)) },
          },
        },
      ];
    });
    const all = [...marks, ...limits.map((limit) => limit.ns), ...series.flatMap((one) => one.latency)];
    return {
      data: traces,
      layout: layout(look, {
        ...limitLines(limits, size, look, "x", true), showlegend: false,
        xaxis: axis(look, `latency [${unit}]`, { type: "log", range: logRange(all, size) }),
        yaxis: rowAxis(series.map((one) => one.label).toReversed(), look),
      }),
    };
  }

  /** The outline of bars, down to the axis where bars do not touch. */
  function outline(one, size, floor) {
    const x = [];
    const y = [];
    one.left.forEach((left, i) => {
      if (i === 0 || one.right[i - 1] !== left) {
        if (i > 0) {
          x.push(one.right[i - 1] / size);
          y.push(floor);
        }
        x.push(left / size);
        y.push(floor);
      }
      x.push(left / size, one.right[i] / size);
      y.push(one.count[i], one.count[i]);
    });
    x.push(one.right.at(-1) / size);
    y.push(floor);
    return { x, y };
  }

  function histograms({ series, limits, timeBase }, look, scale) {
    const floor = 0.6;
    const [size, unit] = scale || axisUnit(series.map((one) => one.left[one.count.indexOf(Math.max(...one.count))]));
    const traces = series.flatMap((one) => {
      const colour = colourOf(one, look);
      const group = { legendgroup: one.label, name: plain(one.label) };
      const made = [
        {
          ...group, ...outline(one, size, floor), type: "scatter", mode: "lines", hoverinfo: "skip", fill: "tozeroy",
          line: { color: colour, width: 1.5, dash: dashOf(one) }, fillcolor: faded(colour, 0.12),
          fillpattern: { shape: patterns[timeBase], fgcolor: faded(colour, 0.5), solidity: 0.2 },
        },
        {
          ...group, type: "scatter", mode: "markers", showlegend: false, hoverinfo: "text",
          x: one.left.map((left, i) => (scale ? (left + one.right[i]) / 2 : Math.sqrt(left * one.right[i])) / size), y: one.count,
          marker: { color: colour, size: 9, opacity: 0 },
          text: one.left.map((left, i) =>
            `${plain(one.label)}: ${grouped(one.count[i])} samples from ${duration(left)} to below ${duration(one.right[i])}`),
        },
      ];
      if (one.beyond) {
        const text = `${plain(one.label)}: ${grouped(one.beyond)} samples beyond the tool's range, known only to be at or above ${full(one.beyondFrom)}`;
        const end = Math.max(one.max ?? 0, one.beyondFrom * 1.12);
        made.push({
          ...group, showlegend: false, type: "scatter", mode: "lines+markers", fill: "tozeroy",
          x: [one.beyondFrom, one.beyondFrom, Math.sqrt(one.beyondFrom * end), end, end].map((ns) => ns / size),
          y: [floor, one.beyond, one.beyond, one.beyond, floor], text: [text, text, text, text, text], hoverinfo: "text",
          marker: { size: [0, 0, 9, 0, 0], symbol: "triangle-right", color: colour }, fillcolor: "rgba(0,0,0,0)",
          line: { color: colour, dash: "dot", width: 1.5 }, fillpattern: { shape: "x", fgcolor: faded(colour, 0.7) },
        });
      }
      return made;
    });
    const ends = series.flatMap((one) => [...one.left, ...one.right, one.beyondFrom ?? 0, (one.beyond && one.max) || 0]);
    const most = Math.max(...series.flatMap((one) => [...one.count, one.beyond ?? 0]));
    return {
      data: traces,
      layout: layout(look, {
        ...limitLines(limits, size, look, "x", true),
        xaxis: axis(look, `latency [${unit}]`, { type: "log", range: logRange([...ends, ...limits.map((l) => l.ns)], size) }),
        yaxis: axis(look, "samples", { type: "log", range: [Math.log10(floor), Math.log10(most) + 0.15], dtick: 1 }),
      }),
    };
  }

  function exceedance({ series, limits }, look) {
    const [size, unit] = axisUnit(series.map((one) => one.latency[0]));
    const traces = series.flatMap((one) => {
      const colour = colourOf(one, look);
      const kept = one.latency.map((_, i) => i).filter((i) => one.latency[i] > 0);
      const x = kept.map((i) => one.latency[i] / size);
      const group = { legendgroup: one.label, type: "scatter", mode: "lines" };
      const edge = { ...group, showlegend: false, hoverinfo: "skip", x, line: { width: 0, shape: "vh" } };
      const made = [
        { ...edge, y: kept.map((i) => one.lower[i]) },
        { ...edge, y: kept.map((i) => one.upper[i]), fill: "tonexty", fillcolor: faded(colour, 0.18) },
        {
          ...group, name: plain(one.label), x, y: kept.map((i) => one.atOrAbove[i] / one.n), hoverinfo: "text",
          line: { color: colour, width: 2, dash: dashOf(one), shape: "vh" },
          text: kept.map((i) =>
            `${plain(one.label)}: ${grouped(one.atOrAbove[i])} of ${grouped(one.n)} activations at or above ${full(one.latency[i])}`
            + `<br>share ${rate(one.atOrAbove[i] / one.n)}, 95 % band ${rate(one.lower[i])} to ${rate(one.upper[i])}`),
        },
      ];
      if (one.beyond && one.max > one.beyondFrom) {
        made.push({
          ...group, showlegend: false, x: [one.beyondFrom / size, one.max / size], y: [one.beyond / one.n, one.beyond / one.n],
          mode: "lines+markers", marker: { symbol: "triangle-right", color: colour, size: 8 }, hoverinfo: "text",
          line: { color: colour, width: 1.5, dash: "dot" },
          text: Array(2).fill(`${plain(one.label)}: ${grouped(one.beyond)} samples lie somewhere between ${full(one.beyondFrom)} and ${full(one.max)}`),
        });
      }
      if (one.tail) {
        made.push({
          ...group, showlegend: false, x: one.tail.latency.map((ns) => ns / size), y: one.tail.share,
          line: { color: colour, width: 1.5, dash: "dot" }, hoverinfo: "text",
          text: one.tail.latency.map((ns, i) => `${plain(one.label)}, fitted tail: ${rate(one.tail.share[i])} at or above ${duration(ns)}`),
        });
      }
      return made;
    });
    const ends = series.flatMap((one) => [...one.latency, one.max ?? 0, ...(one.tail?.latency ?? [])]);
    const least = Math.min(...series.map((one) => Math.min(1 / one.n, ...(one.tail?.share ?? []))));
    return {
      data: traces,
      layout: layout(look, {
        ...limitLines(limits, size, look, "x", true),
        xaxis: axis(look, `latency [${unit}]`, { type: "log", range: logRange([...ends, ...limits.map((l) => l.ns)], size) }),
        yaxis: axis(look, "share of activations at or above", {
          type: "log", range: [Math.log10(least) - 0.4, 0.15], dtick: 1, exponentformat: "power", showexponent: "all",
        }),
      }),
    };
  }

  function series({ series: all, limits }, look, logarithmic) {
    const [size, unit] = axisUnit(all.map((one) => one.max[Math.floor(one.max.length / 2)]));
    const timed = all.every((one) => one.timesKnown);
    const most = Math.max(...all.flatMap((one) => one.max.reduce((a, b) => Math.max(a, b), 0)));
    const near = limits.filter((limit) => logarithmic || limit.ns <= 1.5 * most);
    const when = (at) => (timed ? `${grouped(at)} s` : `sample ${grouped(at)}`);
    const traces = all.flatMap((one) => {
      const colour = colourOf(one, look);
      const group = { legendgroup: one.label, type: "scatter" };
      const made = [
        {
          ...group, mode: "lines", showlegend: false, hoverinfo: "skip", x: one.at, y: one.min.map((ns) => ns / size),
          line: { color: colour, width: 0.5 },
        },
        {
          ...group, mode: "lines+markers", name: plain(one.label), x: one.at, y: one.max.map((ns) => ns / size), hoverinfo: "text",
          fill: one.peaksOnly ? "none" : "tonexty", fillcolor: faded(colour, 0.25), line: { color: colour, width: 1 },
          marker: { color: colour, size: 3, opacity: one.at.length > 400 ? 0 : 1 },
          text: one.max.map((ns, i) => `${plain(one.label)}, ${when(one.at[i])}: largest ${full(ns)}`
            + (one.peaksOnly ? "" : `<br>smallest nearby ${full(one.min[i])}`)),
        },
      ];
      if (one.missed.length) {
        made.push({
          ...group, mode: "markers", name: `${plain(one.label)}, skipped activations`, hoverinfo: "text",
          x: one.missed.map(([i]) => one.at[i]), y: one.missed.map(([i]) => one.max[i] / size),
          text: one.missed.map(([i, missed]) => `${plain(one.label)}, ${when(one.at[i])}: ${grouped(missed)} activations skipped`),
          marker: { symbol: "triangle-down", size: 10, color: look.alert, line: { color: look.card, width: 1 } },
        });
      }
      return made;
    });
    return {
      data: traces,
      layout: layout(look, {
        ...limitLines(near, size, look, "y", logarithmic),
        xaxis: axis(look, timed ? "time since the first sample [s]" : "number of the sample"),
        yaxis: axis(look, `latency [${unit}]`, logarithmic ? { type: "log" } : { rangemode: "tozero" }),
      }),
    };
  }

  /** A histogram for each handling over a linear axis, and a line at the average of all. */
  function handling(data, look) {
    const { series: all, mean } = data;
    const longest = Math.max(...all.map((one) => one.right.at(-1)));
    const [size, unit] = axisUnit([longest]);
    const made = histograms(data, look, [size, unit]);
    const near = mean < 0.1 * longest ? "left" : mean > 0.9 * longest ? "right" : "center";
    return {
      data: made.data,
      layout: {
        ...made.layout,
        shapes: [{ type: "line", x0: mean / size, x1: mean / size, yref: "paper", y0: 0, y1: 1, line: { color: look.ink, width: 2 } }],
        annotations: [{
          text: `average ${duration(mean)}`, showarrow: false, x: mean / size, yref: "paper", y: 1, yanchor: "bottom",
          xanchor: near, font: { size: 12 },
        }],
        xaxis: axis(look, `latency [${unit}]`, { range: [0, (1.02 * longest) / size] }),
        yaxis: { ...made.layout.yaxis, title: { ...made.layout.yaxis.title, text: "interrupts" } },
      },
    };
  }

  function learning({ series: all, learned }, look) {
    const [size, unit] = axisUnit(all.flatMap((one) => one.mean));
    const traces = all.map((one, i) => ({
      type: "scatter", mode: "lines", name: plain(one.label), x: one.at, y: one.mean.map((ns) => ns / size), hoverinfo: "text",
      line: { color: look.series[i % look.series.length], width: 2, dash: dashes[Math.floor(i / 8) % dashes.length] },
      text: one.at.map((at, k) => `${plain(one.label)}, interrupt ${grouped(at)}: average ${duration(one.mean[k])}`),
    }));
    const shade = { type: "rect", x0: 0, x1: learned, yref: "paper", y0: 0, y1: 1, fillcolor: look.grid, line: { width: 0 }, layer: "below" };
    return {
      data: traces,
      layout: layout(look, {
        shapes: learned ? [shade] : [],
        annotations: learned ? [{
          text: "learning phase", showarrow: false, x: learned / 2, yref: "paper", y: 1, yanchor: "bottom", font: { size: 11 },
        }] : [],
        xaxis: axis(look, "number of the interrupt", { rangemode: "tozero" }),
        yaxis: axis(look, `average latency [${unit}]`, { rangemode: "tozero" }),
      }),
    };
  }

  /** Lines over the size of messages: median, 99 % quantile, and the raw limit beside them. */
  function sizes({ series: all }, look) {
    const [size, unit] = axisUnit(all.flatMap((one) => one.median));
    const line = (one, i, values, name, dash) => ({
      type: "scatter", mode: "lines+markers", name: plain(one.label), legendgroup: one.label, hoverinfo: "text",
      showlegend: dash === "solid", x: one.bytes, y: values.map((ns) => (ns === null ? null : ns / size)),
      marker: { size: dash === "solid" ? 7 : 4 },
      line: { color: look.series[i % look.series.length], width: dash === "solid" ? 2 : 1, dash },
      text: one.bytes.map((bytes, k) => `${plain(one.label)}, ${grouped(bytes)} B: ${name} ${duration(values[k] ?? 0)}`),
    });
    const at = [...new Set(all.flatMap((one) => one.bytes))].sort((a, b) => a - b);
    return {
      data: all.flatMap((one, i) => [
        line(one, i, one.median, "median", "solid"), line(one, i, one.p99, "99 % quantile", "dot"),
        line(one, i, one.raw, "raw limit", "dash"),
      ]),
      layout: layout(look, {
        xaxis: axis(look, "size of the message [B]", { type: "log", tickvals: at, ticktext: at.map(grouped) }),
        yaxis: axis(look, `latency [${unit}]`, { type: "log" }),
      }),
    };
  }

  /** The greatest control error in stretches of time, and the cycles missed there. */
  function control({ series: [{ label, at, max, missed }], most }, look) {
    const told = (k) => `${plain(label)}, ${grouped(at[k])} s: at most ${grouped(max[k])} µrad`;
    const common = { type: "scatter", hoverinfo: "text" };
    return {
      data: [
        {
          ...common, mode: "lines", name: "greatest error", x: at, y: max.map((urad) => Math.max(urad, 1)),
          line: { color: look.series[0], width: 1 }, text: max.map((_, k) => told(k)),
        },
        {
          ...common, mode: "markers", name: "cycles missed", marker: { color: look.alert, size: 8, symbol: "triangle-up" },
          x: missed.map(([k]) => at[k]), y: missed.map(([k]) => Math.max(max[k], 1)),
          text: missed.map(([k, count]) => `${told(k)}<br>${grouped(count)} cycles missed`),
        },
      ],
      layout: layout(look, {
        xaxis: axis(look, "time since the first cycle [s]", { rangemode: "tozero" }),
        yaxis: axis(look, "greatest control error [µrad]", { type: "log", range: [0, Math.log10(most) + 0.1], dtick: 1 }),
      }),
    };
  }

  const drawings = { averages, violins, histograms, exceedance, series, handling, learning, sizes, control };
  const scalable = { averages: () => false, series: ({ series: all }) => prefersLogarithm(all) };

  /** Single peaks far above the rest would flatten everything else on a linear axis. */
  function prefersLogarithm(all) {
    const peaks = all.flatMap((one) => one.max).sort((a, b) => a - b);
    const allPositive = all.every((one) => one.min.every((ns) => ns > 0));
    return allPositive && peaks.at(-1) > 20 * peaks[Math.floor(peaks.length / 2)];
  }

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

  function draw(panel) {
    if (panel.data === null) {
      panel.data = JSON.parse(figureData(panel.figure));
      if (scalable[panel.kind]) addScaleSwitch(panel);
    }
    const { data, layout: made } = drawings[panel.kind](panel.data, currentLook(panel.plot.clientWidth), panel.logarithmic);
    const config = {
      responsive: true, displaylogo: false, displayModeBar: "hover", toImageButtonOptions: { format: "svg", filename: panel.figure.id },
      modeBarButtonsToRemove: ["sendChartToCloud", "select2d", "lasso2d", "autoScale2d"],
    };
    library().react(panel.plot, data, made, config);
    panel.drawn = true;
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
  /** Paper is light and cannot be scrolled: every figure is drawn, in light colours. */
  function preparePrint() {
    if (themeBeforePrint !== null) return;
    themeBeforePrint = root.dataset.theme ?? "";
    root.dataset.theme = "light";
    openedForPrint = [...document.querySelectorAll("#verdicts details:not([open])")];
    openedForPrint.forEach((details) => (details.open = true));
    panels.forEach(draw);
  }
  function afterPrint() {
    if (themeBeforePrint === null) return;
    if (themeBeforePrint) root.dataset.theme = themeBeforePrint;
    else delete root.dataset.theme;
    themeBeforePrint = null;
    openedForPrint.forEach((details) => (details.open = false));
    redraw();
  }
  addEventListener("beforeprint", preparePrint);
  addEventListener("afterprint", afterPrint);
  matchMedia("print").addEventListener("change", (event) => (event.matches ? preparePrint() : afterPrint()));

  // ---- summary tables: unit, sorting, CSV -------------------------------------------------------

  const tables = [...document.querySelectorAll("table.summary")];
  const unitSelect = document.getElementById("unit");

  function inUnit(text, size) {
    if (size > 1) return grouped((Number(text) / size).toFixed(3));
    return grouped(/^-?\d+$/.test(text) ? text : Number(text).toFixed(2));
  }

  unitSelect.addEventListener("change", () => {
    for (const table of tables) {
      const size = Number(unitSelect.value || table.dataset.size);
      table.querySelector(".unit").textContent = units.find(([one]) => one === size)[1];
      table.querySelectorAll("td[data-ns]").forEach((cell) => (cell.textContent = inUnit(cell.dataset.ns, size)));
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
    table.tBodies[0].append(...[...table.tBodies[0].rows].sort(compare));
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
})();
