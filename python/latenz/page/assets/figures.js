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

/** Ratios with their intervals, a row each, around the line where both sides are alike. */
function forest({ series: rows, allowed }, look) {
  const ends = rows.flatMap((row) => [row.ratio, row.low ?? row.ratio, row.high ?? row.ratio]).filter((value) => value > 0);
  const limits = allowed.map((limit) => limit.ratio);
  const range = roomy([Math.min(...ends, ...limits, 0.9), Math.max(...ends, ...limits, 1.1)]);
  const { tickvals } = logTicks(range, Math.max(3, Math.floor(look.width / 95)));
  const place = rows.map((_, i) => rows.length - 1 - i);
  const beside = (ratio) => (ratio ** 2 > range[0] * range[1] ? { xanchor: "right", xshift: 4 } : { xanchor: "left", xshift: -4 });
  const told = (row) => `${plain(row.label)}: ${Number(row.ratio.toPrecision(4))}`
    + (row.low === null ? ", no interval" : `, ${Number(row.low.toPrecision(4))} to ${Number(row.high.toPrecision(4))}`);
  const colour = (row) => (row.low > 1 ? look.alert : row.high !== null && row.high < 1 ? look.series[2] : look.soft);
  return {
    data: [
      ...rows.map((row, i) => ({
        type: "scatter", mode: "lines", hoverinfo: "skip", y: [place[i], place[i]],
        x: row.low === null ? [] : [row.low, row.high], line: { color: colour(row), width: 2.5 },
      })),
      {
        type: "scatter", mode: "markers", hoverinfo: "text", x: rows.map((row) => row.ratio), y: place, text: rows.map(told),
        marker: { size: 9, color: rows.map(colour), symbol: rows.map((row) => (row.low === null ? "circle-open" : "circle")) },
      },
    ],
    layout: layout(look, {
      showlegend: false,
      shapes: [
        { type: "line", x0: 1, x1: 1, yref: "paper", y0: 0, y1: 1, line: { color: look.ink, width: 1 } },
        ...limits.map((ratio) => ({
          type: "line", x0: ratio, x1: ratio, yref: "paper", y0: 0, y1: 1, line: { color: look.alert, width: 1.5, dash: "dash" },
        })),
      ],
      annotations: allowed.map((limit, i) => ({
        x: Math.log10(limit.ratio), ...beside(limit.ratio), yref: "paper", y: 1, yanchor: "bottom", yshift: 14 * i,
        text: plain(limit.name), showarrow: false, font: { size: 11, color: look.alert },
      })),
      xaxis: axis(look, "B / A", { type: "log", range: range.map(Math.log10), tickvals, ticktext: tickvals.map((value) => String(Number(value.toPrecision(3)))) }),
      yaxis: rowAxis(rows.map((row) => row.label).toReversed(), look),
    }),
  };
}

/** What was seen of each source, what a search found, the bound and the deadline: a row each. */
function bounds({ series: rows }, look) {
  const kinds = [
    ["largest seen", "seen", look.series[0], "circle", 10], ["worst found by search", "found", look.series[1], "diamond-open", 11],
    ["bound", "bound", look.ink, "line-ns-open", 22], ["deadline", "deadline", look.alert, "x-thin-open", 11],
  ];
  const ends = positive(rows.flatMap((row) => [row.least, ...kinds.map(([, key]) => row[key])]));
  const range = roomy([Math.min(...ends), Math.max(...ends)]);
  const place = rows.map((_, i) => rows.length - 1 - i);
  const marks = kinds.map(([name, key, colour, symbol, size]) => {
    const shown = rows.map((_, i) => i).filter((i) => rows[i][key] > 0);
    return {
      type: "scatter", mode: "markers", name, hoverinfo: "text", x: shown.map((i) => rows[i][key]), y: shown.map((i) => place[i]),
      text: shown.map((i) => `${plain(rows[i].label)}: ${name} ${full(rows[i][key])}`),
      marker: { size, color: colour, symbol, line: { color: colour, width: symbol === "circle" ? 0 : 2.5 } },
    };
  });
  const spans = rows.map((row, i) => ({
    type: "scatter", mode: "lines", hoverinfo: "skip", showlegend: false, x: row.least > 0 ? [row.least, row.seen] : [], y: [place[i], place[i]],
    line: { color: look.series[0], width: 2.5 },
  }));
  return {
    data: [...spans, ...marks.filter((mark) => mark.x.length)],
    layout: layout(look, { xaxis: timeAxis(look, range), yaxis: rowAxis(rows.map((row) => row.label).toReversed(), look) }),
  };
}

const drawings = { bounds, forest, averages, violins, histograms, exceedance, series, handling, learning, sizes, control };
const scalable = { averages: () => false, series: ({ series: all }) => prefersLogarithm(all) };

/** Single peaks far above the rest would flatten everything else on a linear axis. */
function prefersLogarithm(all) {
  const peaks = all.flatMap((one) => one.max).sort((a, b) => a - b);
  const allPositive = all.every((one) => one.min.every((ns) => ns > 0));
  return allPositive && peaks.at(-1) > 20 * peaks[Math.floor(peaks.length / 2)];
}
