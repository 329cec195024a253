// The chart of a cell, or of two cells: panels on one time axis, faults shaded, events as marks, path states as bars.
"use strict";

netwarp.timeline = (function () {
  // which series make a panel, in order; `thin`: drawn into the same panel, finer; anything else sampled comes below
  const PANELS = [
    { keys: ["goodput_bit_s"], title: "goodput", unit: "bit/s" },
    { keys: ["throughput_bit_s"], title: "throughput by path", unit: "bit/s" },
    { keys: ["cwnd_bytes"], thin: "ssthresh_bytes", title: "cwnd by path", note: "dotted: ssthresh", unit: "bytes" },
    { keys: ["flight_bytes"], title: "in flight by path", unit: "bytes" },
    { keys: ["outstanding_packets", "outstanding_chunks"], title: "outstanding", unit: "" },
    { keys: ["srtt_s"], title: "smoothed RTT by path", unit: "s" },
    { keys: ["rto_s"], title: "RTO by path", unit: "s" },
  ];
  const TITLES = { outstanding_packets: "outstanding packets", outstanding_chunks: "outstanding chunks", ssthresh_bytes: "ssthresh" };
  const known = netwarp.data.series; // titles and units of the series that figures over time draw
  const palette = netwarp.data.palette;
  const INK = { light: "#333333", dark: "#D0D0D0" };
  const UNITS = [["_bit_s", "bit/s"], ["_bytes", "bytes"], ["_packets", ""], ["_chunks", ""], ["_s", "s"], ["_ratio", ""]];
  const unitOf = (key) => (UNITS.find(([end]) => key.endsWith(end)) || [null, ""])[1];
  const DASHES = ["solid", "dash"]; // of the first and the second cell

  // what the eye looks for first gets a sign of its own
  const MARKS = {
    cut: "x", blackhole: "x", link: "x", repair: "circle-open", change: "diamond-open", notification: "square-open",
    heartbeat: "triangle-up-open", heartbeat_ack: "triangle-down-open", first_retransmission_other_path: "triangle-right",
    first_useful_arrival_other_path: "star-diamond", first_new_data_other_path: "star", first_new_data_after_repair: "star-open", outage: "line-ns-open", switch_primary: "diamond",
  };
  // the same for the legend; text, never a coloured picture (U+FE0E)
  const SIGNS = {
    x: "×", "circle-open": "○", "diamond-open": "◇", "square-open": "□", "triangle-up-open": "△", "triangle-down-open": "▽", "triangle-right": "▸",
    "star-diamond": "✦", star: "★", "star-open": "☆", "line-ns-open": "|", diamond: "◆", circle: "●",
  };
  const signOf = (kind) => SIGNS[MARKS[kind] || "circle"] + "\uFE0E";
  const QUIET = ["heartbeat", "heartbeat_ack", "outage"]; // in the lane, but without a line through all panels
  // the worse a path's state the thicker its bar: read without colour, too
  const STATES = {
    ACTIVE: { width: 3, light: "#009E73", dark: "#3CC79D", text: "active" },
    PF: { width: 8, light: "#B07D00", dark: "#E6B022", text: "potentially failed" },
    POTENTIALLY_FAILED: { width: 8, light: "#B07D00", dark: "#E6B022", text: "potentially failed" },
    INACTIVE: { width: 13, light: "#D55E00", dark: "#F28C45", text: "inactive" },
    UNCONFIRMED: { width: 3, light: "#888888", dark: "#999999", text: "unconfirmed" },
  };
  const stateLook = (name) => STATES[name] || { width: 8, light: "#7A5195", dark: "#B48ACB", text: name.toLowerCase().replace(/_/g, " ") };

  // Every series: {name, title, unit, flow, path, t, v, binned}. Binned ones start at t and last bin_s.
  function columns(cell) {
    const found = [];
    const { bin_s: bin, flows } = cell.series;
    const add = (key, flow, path, t, v, binned) => {
      const panel = PANELS.find((one) => one.keys.includes(key));
      const title = TITLES[key] || (panel || known[key] || { title: key.replace(/_/g, " ") }).title;
      found.push({ name: key, title, unit: (panel || known[key] || { unit: unitOf(key) }).unit, flow, path, t, v, binned });
    };
    const bins = (values) => values.map((_, i) => Number((i * bin).toFixed(6)));
    for (const [flow, one] of Object.entries(flows)) {
      for (const [key, values] of Object.entries(one)) {
        if (Array.isArray(values)) add(key, flow, "", bins(values), values, true);
      }
      for (const [path, kinds] of Object.entries(one.paths)) {
        for (const [key, values] of Object.entries(kinds)) if (Array.isArray(values)) add(key, flow, path, bins(values), values, true);
      }
      for (const [path, kinds] of Object.entries(one.samples)) {
        for (const [key, values] of Object.entries(kinds)) add(key, flow, path, values.t_s, values.v, false);
      }
      // what the kernel's tracepoints add to the samples of the same path
      for (const [path, { t_s: t, ...kinds }] of Object.entries(one.trace || {})) {
        for (const [key, values] of Object.entries(kinds)) if (!(key in (one.samples[path] || {}))) add(key, flow, path, t, values, false);
      }
    }
    return found;
  }

  // One look a path (of a flow, where there are several): the same in every panel, and in both cells.
  function looks(cells) {
    const all = cells.flatMap(columns);
    const several = new Set(all.map((one) => one.flow)).size > 1;
    const found = new Map();
    for (const one of all) {
      const key = one.flow + " " + one.path;
      if (found.has(key) || (!one.path && !several)) continue;
      found.set(key, { text: several ? [one.flow, one.path].filter(Boolean).join(", ") : one.path, look: { ...palette[found.size % palette.length], dash: "solid" } });
    }
    return found;
  }

  // Events in order of time: the timeline's faults and repairs, notifications, what the analysis saw.
  function events(cell) {
    const list = (cell.series ? cell.series.events : []).map((event) => ({ ...event, text: event.text || event.kind.replace(/_/g, " ") }));
    return list.sort((one, other) => one.t_s - other.t_s);
  }

  // [{flow, path, spans: [{from, to, state}]}] of the paths of a cell; nothing where no path ever changes.
  function states(cell) {
    const found = Object.entries(cell.series.flows).flatMap(([flow, one]) => Object.entries(one.states || {}).map(([path, changes]) => ({
      flow, path, spans: changes.map(([from, state], i) => ({ from, state, to: i + 1 < changes.length ? changes[i + 1][0] : cell.series.duration_s })),
    })));
    return found.some((one) => one.spans.length > 1) ? found : [];
  }

  function panelsOf(cells) {
    const all = cells.flatMap((cell, number) => columns(cell).map((one) => ({ ...one, number })));
    const thin = PANELS.map((one) => one.thin).filter(Boolean);
    const own = [...new Set(all.map((one) => one.name))].filter((key) => !thin.includes(key) && !PANELS.some((one) => one.keys.includes(key)))
      .map((key) => ({ keys: [key] }));
    const there = (one) => one.v.some((v) => v !== null);
    return [...PANELS, ...own].map((panel) => ({
      panel, series: all.filter((one) => panel.keys.includes(one.name) && there(one)), thin: all.filter((one) => one.name === panel.thin && there(one)),
    })).filter(({ series }) => series.length).map(({ panel, series, thin: finer }) => {
      const unit = series[0].unit;
      let scale = netwarp.scale([...series, ...finer].flatMap((one) => one.v), unit);
      if (unit === "s") {
        const largest = Math.max(...series.flatMap((one) => one.v.filter((v) => v !== null)));
        scale = largest < 10 ? { divisor: 1e-3, unit: "ms" } : { divisor: 1, unit: "s" };
      }
      const names = [...new Set(series.map((one) => one.title))];
      return { series, thin: finer, title: names.length === 1 ? names[0] : panel.title, note: finer.length ? panel.note : "", ...scale };
    });
  }

  function describe(cells) {
    const panels = panelsOf(cells).map((panel) => panel.title).join(", ");
    const faults = cells[0].series.faults.map((fault) => `${fault.action} of ${fault.link} from ${fault.from_s} to ${fault.to_s} s`);
    return panels + (faults.length ? "; fault: " + faults.join(", ") : "") + ". The numbers are in the table below.";
  }

  const PANEL = 150, GAP = 34, FOOT = 50, BAR = 20;
  // Marks that would cover each other go into rows below each other, as far as there are any; a cell has rows of its own.
  const ROW = 13, MOST_ROWS = 5, MARK = 9;
  function rowsOf(cell, width) {
    const ends = [];
    return events(cell).map((event) => {
      const x = (event.t_s / cell.series.duration_s) * width;
      const free = ends.findIndex((end) => x - end >= MARK);
      const row = free >= 0 ? free : Math.min(ends.length, MOST_ROWS - 1);
      ends[row] = x;
      return row;
    });
  }
  const lanesOf = (cells, width) => cells.map((cell) => rowsOf(cell, width)).map((rows) => ({ rows, deep: Math.max(1, ...rows.map((row) => row + 1)) }));
  const laneOf = (cells, width) => 24 + lanesOf(cells, width).reduce((sum, { deep }) => sum + 9 + ROW * deep, 0);
  const barsOf = (cells) => cells.flatMap((cell, number) => states(cell).map((one) => ({ ...one, number })));
  const heightOf = (cells, width) => {
    const bars = barsOf(cells).length;
    return laneOf(cells, width) + panelsOf(cells).length * (PANEL + GAP) + (bars ? bars * BAR + GAP : 0) + FOOT;
  };

  function make(cells, range, colours, width) {
    const { plain, colour, baseLayout } = netwarp.charts;
    const panels = panelsOf(cells);
    const found = looks(cells);
    const bars = barsOf(cells);
    const height = heightOf(cells, width);
    const inner = height - FOOT - 10;
    const lane = laneOf(cells, width);
    const lanes = lanesOf(cells, width);
    const duration = Math.max(...cells.map((cell) => cell.series.duration_s));
    const layout = baseLayout(colours);
    const axis = layout.axisTemplate;
    delete layout.yaxis;
    const traces = [];
    const annotations = [];
    let top = lane;
    let axes = 0;
    const add = (title, size, more) => {
      top += GAP;
      const id = ++axes > 1 ? axes : "";
      layout["yaxis" + id] = { ...axis, domain: [Math.max(0, 1 - (top + size) / inner), 1 - top / inner], automargin: false, fixedrange: true, ...more };
      annotations.push({ text: title, xref: "paper", yref: "paper", x: 0, y: 1 - top / inner, xanchor: "left", yanchor: "bottom", yshift: 2,
        showarrow: false, font: { size: 12, color: colours.text } });
      top += size;
      return "y" + id;
    };
    const whose = (number) => (cells.length > 1 ? ["A", "B"][number] : "");
    const line = (one, panel, yaxis, finer) => {
      const { text, look } = found.get(one.flow + " " + one.path) || { text: "", look: INK };
      const { bin_s: bin, duration_s: end } = cells[one.number].series;
      const t = one.binned ? [...one.t, Math.min(one.t.length * bin, end)] : one.t;
      const v = one.binned ? [...one.v, one.v[one.v.length - 1]] : one.v;
      traces.push({
        type: "scatter", mode: look.marker && !finer ? "lines+markers" : "lines", x: t, y: v.map((value) => (value === null ? null : value / panel.divisor)), yaxis,
        marker: { symbol: look.marker, size: 7, maxdisplayed: 8, color: colour(look) }, // a line is known by its marker, too
        name: plain([whose(one.number), text, one.title.replace(" by path", "")].filter(Boolean).join(" ")),
        line: { color: colour(look), width: finer ? 1.1 : 1.6, shape: "hv", dash: finer ? "dot" : DASHES[one.number] },
        opacity: one.number ? 0.85 : 1, text: v.map((value) => value === null ? "" : netwarp.number(value / panel.divisor)), hovertemplate: `%{text} ${plain(panel.unit)}`,
      });
    };
    panels.forEach((panel) => {
      const title = `<b>${plain(panel.title)}</b>${panel.unit ? " (" + plain(panel.unit) + ")" : ""}${panel.note ? "  " + plain(panel.note) : ""}`;
      const yaxis = add(title, PANEL, { rangemode: "tozero", nticks: 5, exponentformat: "none" });
      for (const one of panel.thin) line(one, panel, yaxis, true);
      for (const one of panel.series) line(one, panel, yaxis, false);
    });
    if (bars.length) {
      const names = bars.map((bar) => [whose(bar.number), new Set(bars.map((one) => one.flow)).size > 1 ? bar.flow : "", bar.path].filter(Boolean).join(" "));
      const yaxis = add("<b>path state</b>  the thicker, the worse", bars.length * BAR, {
        range: [bars.length - 0.5, -0.5], tickvals: names.map((_, i) => i), ticktext: names.map(plain), showgrid: false, ticks: "",
      });
      bars.forEach((bar, place) => {
        for (const state of new Set(bar.spans.map((span) => span.state))) {
          const look = stateLook(state);
          const own = bar.spans.filter((span) => span.state === state);
          traces.push({
            type: "scatter", mode: "lines", yaxis, x: own.flatMap((span) => [span.from, span.to, null]), y: own.flatMap(() => [place, place, null]),
            name: plain(`${names[place]} is ${look.text}`), line: { color: colour(look), width: look.width }, hoverinfo: "skip",
          });
        }
        // one invisible point a sample of the axis would be heavy: the hover says the state at each change
        traces.push({
          type: "scatter", mode: "markers", yaxis, x: bar.spans.map((span) => span.from), y: bar.spans.map(() => place), marker: { size: 1, opacity: 0 },
          name: plain(names[place]), text: bar.spans.map((span) => plain(stateLook(span.state).text)), hovertemplate: "%{text}",
        });
      });
    }
    const bottom = axes;
    const marks = ++axes;
    layout["yaxis" + marks] = { domain: [1 - lane / inner, 1 - 14 / inner], visible: false, range: [lanes.reduce((sum, { deep }) => sum + deep + 0.7, 0) - 0.5, -0.7], fixedrange: true };
    cells.forEach((cell, number) => {
      const list = events(cell);
      const above = lanes.slice(0, number).reduce((sum, { deep }) => sum + deep + 0.7, 0);
      traces.push({
        type: "scatter", mode: "markers", x: list.map((event) => event.t_s), y: lanes[number].rows.map((row) => above + row), yaxis: "y" + marks,
        name: plain(`event ${whose(number)}`), text: list.map((event) => plain([whose(number), event.text].filter(Boolean).join(": "))), hovertemplate: "%{text}<extra></extra>",
        marker: { symbol: list.map((event) => MARKS[event.kind] || "circle"), size: MARK, color: number ? colours.soft : colours.text, line: { width: 1.5 } },
      });
    });
    const list = events(cells[0]);
    layout.shapes = cells.flatMap((cell, number) => cell.series.faults.map((fault) => ({
      type: "rect", xref: "x", yref: "paper", x0: fault.from_s, x1: fault.to_s ?? cell.series.duration_s, y0: 0, y1: 1, layer: "below",
      fillcolor: number ? "rgba(0,0,0,0)" : colours.fault, line: { width: number ? 1 : 0, dash: "dash", color: colours.faultLine },
    })));
    for (const fault of cells[0].series.faults) {
      annotations.push({
        text: plain(`${fault.action} of ${fault.link}`), xref: "x", yref: "paper", x: fault.from_s, y: 1, xanchor: "left", yanchor: "top",
        showarrow: false, font: { size: 12, color: colours.soft },
      });
    }
    const marked = list.filter((event) => !QUIET.includes(event.kind));
    if (cells.length === 1 && marked.length <= 60) {
      for (const event of marked) {
        layout.shapes.push({ type: "line", xref: "x", yref: "paper", x0: event.t_s, x1: event.t_s, y0: 0, y1: 1 - 16 / inner,
          line: { color: colours.faultLine, width: 1, dash: "dot" }, layer: "below" });
      }
    }
    Object.assign(layout.xaxis, {
      anchor: "y" + (bottom > 1 ? bottom : ""), title: { text: "time since T0 (s)", standoff: 8 }, showline: true,
      range: range || [0, duration], hoverformat: ".4~f", showspikes: true, spikemode: "across", spikethickness: 1,
      spikedash: "solid", spikecolor: colours.soft, spikesnap: "cursor",
    });
    Object.assign(layout, { annotations, height, hovermode: "x unified", hoversubplots: "axis", margin: { l: 52, r: 10, t: 10, b: FOOT } });
    return { traces, layout };
  }

  // cells: one or two. range: what to show first, or null. moved(range or null): called after each zoom.
  async function draw(chart, cells, range, moved) {
    const width = chart.clientWidth - 62; // of the axis: less what make() leaves beside it
    chart.style.height = heightOf(cells, width) + "px"; // at once: nothing below jumps when it is drawn
    chart.netwarpEnd = Math.max(...cells.map((cell) => cell.series.duration_s));
    await netwarp.charts.draw(chart, (colours) => make(cells, range, colours, width));
    if (!chart.isConnected) return netwarp.charts.forget(chart); // left before it was drawn
    chart.on("plotly_relayout", (change) => {
      if (change["xaxis.range[0]"] !== undefined) range = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
      else if (change["xaxis.range"]) range = change["xaxis.range"];
      else if (change["xaxis.autorange"]) range = null;
      else return;
      moved(range && (range[0] > 0 || range[1] < chart.netwarpEnd) ? range : null);
    });
  }

  function zoom(chart, from, to) {
    const end = chart.netwarpEnd;
    const range = from === null ? [0, end] : [Math.max(0, from), Math.min(end, to)];
    window.Plotly.relayout(chart, { "xaxis.range": range });
    netwarp.say(`Showing ${netwarp.number(range[0])} to ${netwarp.number(range[1])} seconds`);
  }

  function step(chart, factor) {
    const [from, to] = chart.layout.xaxis.range;
    const middle = (from + to) / 2, half = ((to - from) / 2) * factor;
    zoom(chart, middle - half, middle + half);
  }

  const legend = (cells) => {
    const named = [...looks(cells).values()].map((one) =>
      netwarp.h("span", { class: "legend-label" }, netwarp.swatch({ ...one.look, dash: "solid" }), one.text));
    const used = new Set(cells.flatMap((cell) => states(cell)).flatMap((one) => one.spans.map((span) => span.state)));
    const bars = [...used].map(stateLook).map((look) => netwarp.h("span", { class: "legend-label" }, netwarp.bar(look), look.text));
    const kinds = new Set(cells.flatMap(events).map((event) => event.kind));
    const marks = [...kinds].map((kind) =>
      netwarp.h("span", { class: "legend-label legend-event" }, netwarp.h("b", { "aria-hidden": "true" }, signOf(kind)), kind.replace(/_/g, " ")));
    return [...named, ...bars, ...marks];
  };

  return { draw, zoom, step, columns, events, describe, legend, DASHES, INK };
})();
