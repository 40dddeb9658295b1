// ---- figures: each takes the data of a panel and gives traces and layout ----------------------

/** More lines than these are not filled: fills upon fills hide each other. */
const mostFilled = 3;

function averages({ series, limits, timeBase }, look, logarithmic) {
  const [size, unit] = logarithmic ? [1, ""] : axisUnit(series.map((one) => one.max ?? one.mean));
  const rows = [...series].reverse();
  const values = positive(series.flatMap((one) => [one.max, one.mean]));
  const most = Math.max(...values, 1);
  const highest = Math.max(most, ...limits.map((limit) => limit.ns).filter((ns) => ns <= 1.5 * most));
  const bars = (name, key, colour) => ({
    type: "bar", orientation: "h", name, y: rows.map((_, i) => i), constraintext: "none",
    x: rows.map((one) => (one[key] === null ? null : one[key] / size)),
    text: rows.map((one) => (one[key] === null ? "" : duration(one[key]))), textposition: "outside",
    cliponaxis: false, textangle: 0, hoverinfo: "text", textfont: { color: look.ink, size: 11 },
    hovertext: rows.map((one) => (one[key] === null ? "" : `${plain(one.label)}: ${name} ${full(one[key])}`)),
    marker: { color: colour, pattern: { shape: patterns[timeBase], fillmode: "overlay", fgcolor: look.card, size: 7, solidity: 0.3 } },
  });
  const room = look.width < 480 ? 1.45 : 1.18;
  const range = logarithmic ? [Math.min(...values, most) / 2, highest * 10 ** (0.12 * Math.log10(highest / Math.min(...values, most) + 2))]
    : [0, (room * highest) / size];
  return {
    data: [bars("maximum", "max", look.series[1]), bars("average", "mean", look.series[0])],
    layout: layout(look, {
      barmode: "group", bargap: 0.25,
      ...limitLines(limits, look, "x", { range, log: logarithmic, place: (ns) => ns / size }),
      xaxis: logarithmic ? timeAxis(look, range) : axis(look, `latency [${unit}]`, { range }),
      yaxis: rowAxis(rows.map((one) => one.label), look),
      legend: { orientation: "h", yref: "container", y: 0, yanchor: "bottom", x: 0, traceorder: "reversed" },
    }),
  };
}

function violins({ series, limits, timeBase, range }, look) {
  const place = (i) => series.length - 1 - i;
  const traces = series.flatMap((one, i) => {
    const colour = colourOf(one, look);
    const shown = one.marks.filter((mark) => mark.ns > 0);
    const unknown = [one.latency.at(-1), shown.at(-1)?.ns ?? 0];
    return [
      {
        type: "scatter", mode: "lines", fill: "toself", hoverinfo: "skip", line: { color: colour, width: 1 },
        fillcolor: faded(colour, 0.35), fillpattern: { shape: patterns[timeBase], fgcolor: colour, solidity: 0.3 },
        x: [...one.latency, ...one.latency.toReversed()],
        y: [...one.width.map((w) => place(i) + 0.42 * w), ...one.width.map((w) => place(i) - 0.42 * w).toReversed()],
      },
      {
        type: "scatter", mode: "lines", hoverinfo: "skip", line: { color: colour, width: 1, dash: "dot" },
        x: unknown[1] > unknown[0] ? unknown : [], y: [place(i), place(i)],
      },
      {
        type: "scatter", mode: "markers", hoverinfo: "text", cliponaxis: false,
        x: shown.map((mark) => mark.ns), y: shown.map(() => place(i)),
        text: shown.map((mark) => `${plain(one.label)}: ${mark.name} ${full(mark.ns)}`),
        marker: {
          color: look.ink, size: shown.map((mark) => (mark.name === "median" ? 14 : 7)),
          symbol: shown.map((mark) => markSymbols[mark.name]),
          line: { color: look.ink, width: shown.map((mark) => (mark.name === "median" ? 2 : 1)) },
        },
      },
    ];
  });
  const ends = roomy(range);
  return {
    data: traces,
    layout: layout(look, {
      ...limitLines(limits, look, "x", { range: ends, log: true }), showlegend: false,
      xaxis: timeAxis(look, ends), yaxis: rowAxis(series.map((one) => one.label).toReversed(), look),
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

function histograms({ series, limits, timeBase, range }, look, scale) {
  const floor = 0.6;
  const [size] = scale || [1, "ns"];
  const filled = series.length <= mostFilled;
  const traces = series.flatMap((one) => {
    const colour = colourOf(one, look);
    const group = { legendgroup: one.label, name: nameOf(one, series), showlegend: isNamed(one, series) };
    const made = [
      {
        ...group, ...outline(one, size, floor), type: "scatter", mode: "lines", hoverinfo: "skip", fill: filled ? "tozeroy" : "none",
        line: { color: colour, width: 0.75 * widthOf(one), dash: dashOf(one) }, fillcolor: faded(colour, 0.12),
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
  const most = Math.max(...series.flatMap((one) => [...one.count, one.beyond ?? 0]));
  const ends = scale ? null : roomy(range);
  return {
    data: traces,
    layout: layout(look, {
      ...(scale ? {} : { ...limitLines(limits, look, "x", { range: ends, log: true }), xaxis: timeAxis(look, ends) }),
      yaxis: axis(look, "samples", { type: "log", range: [Math.log10(floor), Math.log10(most) + 0.15], dtick: Math.ceil(Math.log10(most) / 8) || 1 }),
    }),
  };
}

function exceedance({ series, limits, range }, look) {
  const many = series.filter((one) => one.role !== "set").length > mostFilled;
  const isBanded = (one) => one.role !== "set" && !many;
  const traces = series.flatMap((one) => {
    const colour = colourOf(one, look);
    const kept = one.latency.map((_, i) => i).filter((i) => one.latency[i] > 0);
    const x = kept.map((i) => one.latency[i]);
    const group = { legendgroup: one.label, type: "scatter", mode: "lines", showlegend: isNamed(one, series) };
    const banded = isBanded(one);
    const edge = { ...group, showlegend: false, hoverinfo: "skip", x, line: { width: 0, shape: "vh" } };
    const made = [
      ...(!banded ? [] : [
        { ...edge, y: kept.map((i) => one.lower[i]) },
        { ...edge, y: kept.map((i) => one.upper[i]), fill: "tonexty", fillcolor: faded(colour, 0.18) },
      ]),
      {
        ...group, name: nameOf(one, series), x, y: kept.map((i) => one.atOrAbove[i] / one.n), hoverinfo: "text",
        line: { color: colour, width: widthOf(one), dash: dashOf(one), shape: "vh" },
        text: kept.map((i) =>
          `${plain(one.label)}: ${grouped(one.atOrAbove[i])} of ${grouped(one.n)} activations at or above ${full(one.latency[i])}`
          + `<br>share ${rate(one.atOrAbove[i] / one.n)}, 95 % band ${rate(one.lower[i])} to ${rate(one.upper[i])}`),
      },
    ];
    if (one.beyond && one.max > one.beyondFrom) {
      made.push({
        ...group, showlegend: false, x: [one.beyondFrom, one.max], y: [one.beyond / one.n, one.beyond / one.n],
        mode: "lines+markers", marker: { symbol: "triangle-right", color: colour, size: 8 }, hoverinfo: "text",
        line: { color: colour, width: 1.5, dash: "dot" },
        text: Array(2).fill(`${plain(one.label)}: ${grouped(one.beyond)} samples lie somewhere between ${full(one.beyondFrom)} and ${full(one.max)}`),
      });
    }
    if (one.tail && banded) {
      made.push({
        ...group, showlegend: false, x: one.tail.latency, y: one.tail.share,
        line: { color: colour, width: 1.5, dash: "dot" }, hoverinfo: "text",
        text: one.tail.latency.map((ns, i) => `${plain(one.label)}, fitted tail: ${rate(one.tail.share[i])} at or above ${duration(ns)}`),
      });
    }
    return made;
  });
  const least = Math.min(...series.map((one) => Math.min(0.5 / one.n, ...(one.tail?.share ?? []))));
  const farthest = Math.max(range[1], ...series.map((one) => one.tail?.latency.at(-1) ?? 0));
  const ends = roomy([range[0], farthest]);
  return {
    data: traces,
    layout: layout(look, {
      ...limitLines(limits, look, "x", { range: ends, log: true }), xaxis: timeAxis(look, ends), yaxis: shareAxis(look, least),
    }),
  };
}

function series({ series: all, limits }, look, logarithmic) {
  const [size, unit] = logarithmic ? [1, "ns"] : axisUnit(all.map((one) => one.max[Math.floor(one.max.length / 2)]));
  const timed = all.every((one) => one.timesKnown);
  const most = Math.max(...all.flatMap((one) => one.max.reduce((a, b) => Math.max(a, b), 0)));
  const least = Math.min(...all.flatMap((one) => positive(one.min).concat(positive(one.max)).reduce((a, b) => Math.min(a, b), Infinity)), most);
  const near = limits.filter((limit) => limit.ns <= (logarithmic ? 10 : 1.5) * most).map((limit) => limit.ns);
  const range = logarithmic ? roomy([least, Math.max(most, ...near)]) : [0, (1.08 * Math.max(most, ...near)) / size];
  const banded = all.length <= mostFilled;
  const latest = Math.max(...all.map((one) => one.at.at(-1) ?? 0), 0);
  const [step, stepUnit] = units.find(([ns]) => 1e9 * latest >= ns) ?? [1, "ns"];
  const at = (one) => (timed ? one.at.map((seconds) => (1e9 * seconds) / step) : one.at);
  const when = (at) => (timed ? duration(1e9 * at) : `sample ${grouped(at)}`);
  const traces = all.flatMap((one) => {
    const colour = colourOf(one, look);
    const group = { legendgroup: one.label, type: "scatter" };
    const made = [
      {
        ...group, mode: "lines", showlegend: false, hoverinfo: "skip", x: at(one), y: one.min.map((ns) => ns / size),
        line: { color: colour, width: banded ? 0.5 : 0 },
      },
      {
        ...group, mode: "lines+markers", name: plain(one.label), x: at(one), y: one.max.map((ns) => ns / size), hoverinfo: "text",
        fill: one.peaksOnly || !banded ? "none" : "tonexty", fillcolor: faded(colour, 0.25), line: { color: colour, width: 1, dash: one.dash ? dashes[one.dash % dashes.length] : "solid" },
        marker: { color: colour, size: 3, opacity: one.at.length > 400 ? 0 : 1 },
        text: one.max.map((ns, i) => `${plain(one.label)}, ${when(one.at[i])}: largest ${full(ns)}`
          + (one.peaksOnly ? "" : `<br>smallest nearby ${full(one.min[i])}`)),
      },
    ];
    if (one.missed.length) {
      made.push({
        ...group, mode: "markers", name: `${plain(one.label)}, skipped activations`, hoverinfo: "text",
        x: one.missed.map(([i]) => at(one)[i]), y: one.missed.map(([i]) => one.max[i] / size),
        text: one.missed.map(([i, missed]) => `${plain(one.label)}, ${when(one.at[i])}: ${grouped(missed)} activations skipped`),
        marker: { symbol: "triangle-down", size: 10, color: look.alert, line: { color: look.card, width: 1 } },
      });
    }
    return made;
  });
  return {
    data: traces,
    layout: layout(look, {
      ...limitLines(limits, look, "y", { range, log: logarithmic, place: (ns) => ns / size }),
      xaxis: axis(look, timed ? `time since the first sample [${stepUnit}]` : "number of the sample"),
      yaxis: logarithmic ? timeAxis(look, range, "y") : axis(look, `latency [${unit}]`, { range }),
    }),
  };
}
