// The chart of a cell: panels on one time axis, faults shaded, events as marks.
"use strict";

netwarp.timeline = (function () {
  // which series make a panel, in order; anything else that was sampled gets a panel of its own below
  const PANELS = [
    { key: "goodput_bit_s", title: "goodput", unit: "bit/s" },
    { key: "throughput_bit_s", title: "throughput by path", unit: "bit/s" },
    { key: "cwnd_bytes", title: "cwnd by path", unit: "bytes" },
    { key: "srtt_s", title: "smoothed RTT by path", unit: "s" },
  ];
  const PALETTE = [
    { light: "#0072B2", dark: "#56A8E0", dash: "solid" }, { light: "#D55E00", dark: "#F28C45", dash: "solid" },
    { light: "#009E73", dark: "#3CC79D", dash: "solid" }, { light: "#CC79A7", dark: "#E39BC3", dash: "solid" },
    { light: "#B07D00", dark: "#E6B022", dash: "dash" }, { light: "#56B4E9", dark: "#8FD0F7", dash: "dash" },
  ];
  const INK = { light: "#333333", dark: "#D0D0D0", dash: "solid" };
  const UNITS = [["_bit_s", "bit/s"], ["_bytes", "bytes"], ["_packets", "packets"], ["_s", "s"], ["_ratio", ""]];
  const unitOf = (key) => (UNITS.find(([end]) => key.endsWith(end)) || [null, ""])[1];

  // what the eye looks for first gets a sign of its own
  const MARKS = {
    cut: "x", blackhole: "x", link: "x", repair: "circle-open", change: "diamond-open", notification: "square-open",
    heartbeat: "triangle-up-open", heartbeat_ack: "triangle-down-open", first_retransmission_other_path: "triangle-right",
    failover: "star-diamond", first_new_data_other_path: "star", first_new_data_after_repair: "star-open", outage: "line-ns-open", switch_primary: "diamond",
  };

  const QUIET = ["heartbeat", "heartbeat_ack", "outage"]; // in the lane, but without a line through all panels

  // Every series: {name, title, unit, flow, path, t, v, binned}. Binned ones start at t and last bin_s.
  function columns(cell) {
    const found = [];
    const { bin_s: bin, flows } = cell.series;
    const add = (key, flow, path, t, v, binned) => {
      const panel = PANELS.find((one) => one.key === key) || { title: key.replace(/_/g, " "), unit: unitOf(key) };
      found.push({ name: key, title: panel.title, unit: panel.unit, flow, path, t, v, binned });
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
    }
    return found;
  }

  // One look a path (of a flow, where there are several): the same in every panel.
  function looks(cell) {
    const flows = Object.keys(cell.series.flows);
    const several = flows.length > 1;
    const found = new Map();
    for (const one of columns(cell)) {
      const key = one.flow + " " + one.path;
      if (found.has(key) || (!one.path && !several)) continue;
      found.set(key, { text: several ? [one.flow, one.path].filter(Boolean).join(", ") : one.path, look: PALETTE[found.size % PALETTE.length] });
    }
    return found;
  }

  // What happened, in order of time: the timeline's faults and repairs, notifications, what the analysis saw.
  function events(cell) {
    const list = (cell.series ? cell.series.events : []).map((event) => ({ ...event, text: event.text || event.kind.replace(/_/g, " ") }));
    return list.sort((one, other) => one.t_s - other.t_s);
  }

  function panelsOf(cell) {
    const all = columns(cell);
    const keys = [...new Set([...PANELS.map((one) => one.key), ...all.map((one) => one.name)])];
    return keys.map((key) => ({ key, series: all.filter((one) => one.name === key && one.v.some((v) => v !== null)) }))
      .filter((panel) => panel.series.length)
      .map((panel) => {
        const { title, unit } = panel.series[0];
        let scale = netwarp.scale(panel.series.flatMap((one) => one.v), unit);
        if (unit === "s") scale = { divisor: 1e-3, unit: "ms" };
        return { ...panel, title, ...scale };
      });
  }

  function describe(cell) {
    const panels = panelsOf(cell).map((panel) => panel.title).join(", ");
    const faults = cell.series.faults.map((fault) => `${fault.action} of ${fault.link} from ${fault.from_s} to ${fault.to_s} s`);
    return panels + (faults.length ? "; fault: " + faults.join(", ") : "") + ". The numbers are in the table below.";
  }

  const LANE = 44, PANEL = 150, GAP = 34, FOOT = 50;

  const heightOf = (panels) => LANE + panels * (PANEL + GAP) + FOOT;

  function make(cell, range, colours) {
    const { plain, colour, baseLayout } = netwarp.charts;
    const panels = panelsOf(cell);
    const found = looks(cell);
    const list = events(cell);
    const height = heightOf(panels.length);
    const inner = height - FOOT - 10;
    const layout = baseLayout(colours);
    const axis = layout.axisTemplate;
    delete layout.yaxis;
    const traces = [];
    const annotations = [];
    let top = LANE;
    panels.forEach((panel, place) => {
      const id = place ? place + 1 : "";
      top += GAP;
      layout["yaxis" + id] = {
        ...axis, domain: [Math.max(0, 1 - (top + PANEL) / inner), 1 - top / inner], rangemode: "tozero", nticks: 5,
        automargin: false, exponentformat: "none", fixedrange: true,
      };
      annotations.push({
        text: `<b>${plain(panel.title)}</b>${panel.unit ? " (" + plain(panel.unit) + ")" : ""}`, xref: "paper", yref: "paper", x: 0,
        y: 1 - top / inner, xanchor: "left", yanchor: "bottom", yshift: 2, showarrow: false, font: { size: 12, color: colours.text },
      });
      top += PANEL;
      for (const one of panel.series) {
        const known = found.get(one.flow + " " + one.path) || { text: "", look: INK };
        const t = one.binned ? [...one.t, Math.min(one.t.length * cell.series.bin_s, cell.series.duration_s)] : one.t;
        const v = one.binned ? [...one.v, one.v[one.v.length - 1]] : one.v;
        traces.push({
          type: "scatter", mode: "lines", x: t, y: v.map((value) => (value === null ? null : value / panel.divisor)), yaxis: "y" + id,
          name: plain([known.text, panel.title.replace(" by path", "")].filter(Boolean).join(" ")),
          line: { color: colour(known.look), width: 1.6, shape: "hv", dash: known.look.dash },
          hovertemplate: `%{y:.4~g} ${plain(panel.unit)}`,
        });
      }
    });
    const lane = panels.length + 1;
    layout["yaxis" + lane] = { domain: [1 - (LANE - 12) / inner, 1], visible: false, range: [0, 1], fixedrange: true };
    traces.push({
      type: "scatter", mode: "markers", x: list.map((event) => event.t_s), y: list.map(() => 0.25), yaxis: "y" + lane,
      name: "event", text: list.map((event) => plain(event.text)), hovertemplate: "%{text}<extra></extra>",
      marker: {
        symbol: list.map((event) => MARKS[event.kind] || "circle"), size: 10,
        color: colours.text, line: { width: 1.5 },
      },
    });
    layout.shapes = cell.series.faults.map((fault) => ({
      type: "rect", xref: "x", yref: "paper", x0: fault.from_s, x1: fault.to_s ?? cell.series.duration_s, y0: 0, y1: 1,
      fillcolor: colours.fault, line: { width: 0 }, layer: "below",
    }));
    for (const fault of cell.series.faults) {
      annotations.push({
        text: plain(`${fault.action} of ${fault.link}`), xref: "x", yref: "paper", x: fault.from_s, y: 1, xanchor: "left", yanchor: "top",
        showarrow: false, font: { size: 12, color: colours.soft },
      });
    }
    const marked = list.filter((event) => !QUIET.includes(event.kind));
    if (marked.length <= 60) {
      for (const event of marked) {
        layout.shapes.push({ type: "line", xref: "x", yref: "paper", x0: event.t_s, x1: event.t_s, y0: 0, y1: 1 - (LANE - 14) / inner,
          line: { color: colours.faultLine, width: 1, dash: "dot" }, layer: "below" });
      }
    }
    Object.assign(layout.xaxis, {
      anchor: "y" + (panels.length > 1 ? panels.length : ""), title: { text: "time since T0 (s)", standoff: 8 }, showline: true,
      range: range || [0, cell.series.duration_s], hoverformat: ".4~f", showspikes: true, spikemode: "across", spikethickness: 1,
      spikedash: "solid", spikecolor: colours.soft, spikesnap: "cursor",
    });
    Object.assign(layout, { annotations, height, hovermode: "x unified", hoversubplots: "axis", margin: { l: 52, r: 10, t: 10, b: FOOT } });
    return { traces, layout };
  }

  async function draw(chart, cell) {
    chart.style.height = heightOf(panelsOf(cell).length) + "px"; // at once: nothing below jumps when it is drawn
    let range = null;
    chart.netwarpCell = cell;
    await netwarp.charts.draw(chart, (colours) => make(cell, range, colours));
    if (!chart.isConnected) return netwarp.charts.forget(chart); // left before it was drawn
    chart.on("plotly_relayout", (change) => {
      if (change["xaxis.range[0]"] !== undefined) range = [change["xaxis.range[0]"], change["xaxis.range[1]"]];
      else if (change["xaxis.range"]) range = change["xaxis.range"];
      else if (change["xaxis.autorange"]) range = null;
    });
  }

  function zoom(chart, from, to) {
    const end = chart.netwarpCell.series.duration_s;
    const range = from === null ? [0, end] : [Math.max(0, from), Math.min(end, to)];
    window.Plotly.relayout(chart, { "xaxis.range": range });
    netwarp.say(`Showing ${netwarp.number(range[0])} to ${netwarp.number(range[1])} seconds`);
  }

  function step(chart, factor) {
    const [from, to] = chart.layout.xaxis.range;
    const middle = (from + to) / 2, half = ((to - from) / 2) * factor;
    zoom(chart, middle - half, middle + half);
  }

  const legend = (cell) => [...looks(cell).values()].map((one) =>
    netwarp.h("span", { class: "legend-label" }, netwarp.swatch(one.look), one.text));

  return { draw, zoom, step, columns, events, describe, legend };
})();
