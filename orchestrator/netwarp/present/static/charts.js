// Everything that knows Plotly: loading it late, one look for all charts, light and dark.
"use strict";

netwarp.charts = (function () {
  const drawn = new Map(); // element -> function that draws it again

  const load = () => netwarp.script("assets/plotly.min.js");

  function theme() {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(name).trim();
    return {
      text: read("--text"), soft: read("--soft"), grid: read("--rule"), paper: read("--paper"),
      missing: read("--untested-bg"), fault: read("--fault"), faultLine: read("--fault-line"), dark: netwarp.dark(),
    };
  }

  // Plotly reads a little HTML in its texts; names are not HTML.
  const plain = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

  // Letters are about this wide: tick labels stand at 13 px.
  const LETTER = 7;

  // A text in lines no wider than `width` pixels, as far as its words allow.
  function wrap(text, width) {
    const room = Math.max(4, Math.floor(width / LETTER));
    const lines = [];
    for (const word of String(text).split(" ")) {
      const last = lines.length - 1;
      if (last >= 0 && lines[last].length + 1 + word.length <= room) lines[last] += " " + word;
      else lines.push(word);
    }
    return lines;
  }
  const broken = (text, width) => wrap(text, width).map(plain).join("<br>");

  // An axis title that is not longer than its axis.
  const title = (text, standoff, room) => ({ text: broken(text, room), standoff, font: { size: 13 } });

  // 1, 2, 5 and their tens between two values: the marks of a logarithmic axis or colour bar.
  function decades(low, high) {
    const found = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
      for (const step of high > 1000 * low ? [1] : [1, 2, 5]) {
        const value = Number((step * 10 ** power).toPrecision(6));
        if (value >= low * 0.999 && value <= high * 1.001) found.push(value);
      }
    }
    return found;
  }

  // Whether places side by side are too narrow for the longest word of their labels.
  const LINE = 17, UPRIGHT = 24;
  function crowded(axis, width) {
    const room = width / Math.max(1, axis.text.length) - LETTER;
    return axis.text.some((text) => String(text).split(" ").some((word) => word.length * LETTER > Math.max(room, 4 * LETTER)));
  }

  // Labels along a horizontal axis `width` pixels long: places side by side get several lines, numbers that would touch a
  // line of their own below.
  function tickTexts(axis, width) {
    const texts = axis.ticks || axis.text;
    if (axis.kind === "category" && crowded(axis, width)) {
      const every = Math.ceil((LINE * texts.length) / Math.max(LINE, width)); // upright, a line of letters each
      return texts.map((text, i) => (i % every ? "" : plain(text.length > UPRIGHT ? text.slice(0, UPRIGHT - 1) + "\u2026" : text)));
    }
    if (axis.kind === "category") return texts.map((text) => broken(text, width / Math.max(1, texts.length) - LETTER));
    const at = axis.at.map((value) => (axis.kind === "log" ? Math.log10(value) : value));
    const [low, high] = [Math.min(...at), Math.max(...at)];
    const middle = (i) => width * (0.05 + 0.9 * (high > low ? (at[i] - low) / (high - low) : 0.5));
    const ends = []; // of the last label of each line
    const found = texts.map(plain);
    for (const i of at.map((_, place) => place).sort((one, other) => at[one] - at[other])) {
      const half = (texts[i].length * LETTER) / 2;
      if (!half) continue; // shares its neighbour's label
      let line = 0;
      while (ends[line] !== undefined && middle(i) - half < ends[line] + LETTER) line++;
      ends[line] = middle(i) + half;
      found[i] = "<br>".repeat(line) + found[i];
    }
    return found;
  }

  const colour = (look) => (netwarp.dark() ? look.dark : look.light);

  function baseLayout(colours) {
    const axis = {
      gridcolor: colours.grid, linecolor: colours.soft, zeroline: false, ticks: "outside", tickcolor: colours.grid,
      ticklen: 4, automargin: true, tickfont: { color: colours.soft },
    };
    return {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", showlegend: false,
      font: { family: "system-ui, sans-serif", size: 13, color: colours.text },
      margin: { l: 8, r: 12, t: 8, b: 8 },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: colours.soft, activecolor: colours.text },
      hoverlabel: { bgcolor: colours.paper, bordercolor: colours.soft, font: { color: colours.text }, namelength: -1 },
      // a finger scrolls the page; the buttons zoom
      dragmode: small ? false : "zoom",
      xaxis: { ...axis }, yaxis: { ...axis }, axisTemplate: axis,
    };
  }

  const small = window.matchMedia("(pointer: coarse), (max-width: 640px)").matches;
  const config = {
    displaylogo: false, responsive: true, displayModeBar: small ? false : "hover",
    // named one by one: Plotly's own set has a button that sends the chart to its makers' server
    modeBarButtons: [["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"]], plotlyServerURL: "",
    doubleClick: "reset",
  };

  // make(colours) -> {traces, layout, still: nothing to zoom}; drawn now, and again when the theme changes.
  async function draw(element, make) {
    await load();
    const again = async () => {
      const { traces, layout, still } = make(theme());
      delete layout.axisTemplate;
      await window.Plotly.react(element, traces, layout, still ? { ...config, displayModeBar: false } : config);
    };
    drawn.set(element, again);
    await again();
    element.dataset.drawn = "yes";
    return element;
  }

  function forget(element) {
    drawn.delete(element);
    if (window.Plotly && element.dataset.drawn) window.Plotly.purge(element);
  }

  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const again of drawn.values()) again();
  });

  // A click on a point that is one cell opens it.
  function opensCells(element) {
    element.on("plotly_click", (event) => {
      const cells = event.points[0].customdata && event.points[0].customdata[0];
      if (Array.isArray(cells) && cells.length === 1) location.hash = "cell=" + encodeURIComponent(cells[0]);
    });
  }

  return { load, draw, forget, theme, plain, wrap, broken, title, crowded, tickTexts, decades, colour, baseLayout, opensCells };
})();
