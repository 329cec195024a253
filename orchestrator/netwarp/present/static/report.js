// The page's common ground: data, small helpers, and which view is shown. Plain scripts, because file:// pages can
// load neither modules nor JSON.
"use strict";

const netwarp = (window.netwarp = {
  data: JSON.parse(document.getElementById("report-data").textContent),
});

// h("td", {class: "n"}, "text", node, ...): an element. Text only ever becomes text, never markup.
netwarp.h = function (tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false && child !== "") element.append(child);
  }
  return element;
};

// Numbers as netwarp/core/numbers.py formats them (tests/browser/test_numbers.py holds the two equal).

// Digits that Python would write: of two equally near ones the even one, where JavaScript takes the larger.
function digitsOf(size, method, count) {
  const text = size[method](count), longer = size[method](count + 30);
  const [, kept, rest] = /^([\d.]*?)\.?(\d{30})(?:e.*)?$/.exec(longer);
  return rest === "5" + "0".repeat(29) && Number(kept.at(-1)) % 2 === 0 ? text.replace(/^[\d.]+/, kept) : text;
}

// Fixed decimals, thin spaces between thousands, a true minus; a dash for nothing.
netwarp.fixed = function (value, places) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const [whole, rest] = digitsOf(Math.abs(value), "toFixed", places).split(".");
  const text = whole.replace(/\B(?=(\d{3})+$)/g, "\u202f") + (rest ? "." + rest : "");
  return value < 0 && /[1-9]/.test(text) ? "−" + text : text;
};

// A chosen number (a level, a bound, a mark of an axis), without digits that nobody chose.
netwarp.given = function (value, digits = 9) {
  const size = Math.abs(value), sign = value < 0 ? "−" : "";
  if (value === 0) return "0";
  const trimmed = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
  if (size >= 1e-4 && size < 1e9) return sign + trimmed(digitsOf(size, "toFixed", Math.max(0, digits - 1 - Math.floor(Math.log10(size)))));
  const [mantissa, power] = digitsOf(size, "toExponential", digits - 1).split("e");
  return `${sign}${trimmed(mantissa)}×10${[...power].map((one) => ({ "-": "⁻", "+": "" })[one] ?? "⁰¹²³⁴⁵⁶⁷⁸⁹"[one]).join("")}`;
};

// A measured number to `digits` significant digits; whole numbers whole.
netwarp.number = function (value, digits = 4) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e15) return netwarp.fixed(value, 0);
  if (size < 1e-4 || size >= 1e9) return netwarp.given(value, digits);
  return netwarp.fixed(value, Math.min(9, Math.max(0, digits - 1 - Math.floor(Math.log10(size)))));
};

// A share or a change: "2.35 %", "+12 %".
netwarp.percent = (ratio, digits = 3, signed = false) => `${signed && ratio > 0 ? "+" : ""}${netwarp.given(100 * ratio, digits)} %`;

// A number of things in words: counted(1, "cell") is "1 cell", counted(2, "cell") "2 cells".
netwarp.counted = (count, one, many) => `${netwarp.number(count)} ${count === 1 ? one : many || one + "s"}`;

// {divisor, unit} that shows the largest of `values` with a decimal prefix: bit/s -> kbit/s, s -> ms.
netwarp.scale = function (values, unit) {
  const base = { "bit/s": "bit/s", "byte/s": "byte/s", bytes: "B", byte: "B" }[unit];
  let largest = 0;
  for (const value of values) if (value !== null && Math.abs(value) > largest) largest = Math.abs(value);
  if (unit === "s" && largest > 0 && largest < 1) {
    return largest < 1e-3 ? { divisor: 1e-6, unit: "µs" } : { divisor: 1e-3, unit: "ms" };
  }
  for (const [divisor, prefix] of base ? [[1e9, "G"], [1e6, "M"], [1e3, "k"]] : []) {
    if (largest >= divisor) return { divisor, unit: prefix + base };
  }
  return { divisor: 1, unit: unit === "ratio" ? "" : unit };
};

// Loads a script file once; file:// pages can inject scripts where they cannot fetch.
netwarp.script = (function () {
  const loading = new Map();
  return function (path) {
    if (!loading.has(path)) {
      loading.set(path, new Promise((resolve, reject) => {
        const element = document.createElement("script");
        element.src = path;
        element.onload = resolve;
        element.onerror = () => { loading.delete(path); reject(new Error("cannot load " + path)); };
        document.head.append(element);
      }));
    }
    return loading.get(path);
  };
})();

// as orchestrator/netwarp/results/write.py: an apostrophe before text that a spreadsheet would compute
const FORMULA = /^(?:[=@\t\r]|[+-](?!(?:[0-9.][\p{L}\p{N}_ .%\/]*)?$))/u;

netwarp.csv = (rows) =>
  rows.map((row) => row.map((field) => {
    const plain = field === null || field === undefined ? "" : String(field);
    const text = typeof field === "string" && FORMULA.test(plain) ? "'" + plain : plain;
    return /[",\n\r]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
  }).join(",") + "\n").join("");

netwarp.download = function (name, text) {
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  const link = netwarp.h("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
};

// For screen readers: what just happened.
netwarp.say = (text) => { document.getElementById("status").textContent = text; };

// The line and marker of a variant, as the page has drawn it already, or drawn here for looks of our own.
netwarp.swatch = function (look) {
  const made = netwarp.h("span", { "aria-hidden": "true" });
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("viewBox", "-15 -7 30 14");
  svg.setAttribute("width", 30);
  svg.setAttribute("height", 14);
  svg.setAttribute("class", "swatch");
  svg.style.setProperty("--c", netwarp.dark() ? look.dark : look.light);
  if (!look.open) {
    const line = document.createElementNS(space, "path");
    line.setAttribute("class", "swatch-line");
    line.setAttribute("d", "M-14,0H14");
    if (netwarp.dashes[look.dash]) line.setAttribute("stroke-dasharray", netwarp.dashes[look.dash]);
    svg.append(line);
  }
  if (look.marker) {
    const mark = document.createElementNS(space, "path");
    mark.setAttribute("class", look.open ? "swatch-mark swatch-open" : "swatch-mark");
    mark.setAttribute("d", netwarp.shapes[look.marker]);
    if (look.open === "small") mark.setAttribute("transform", "scale(0.5)");
    svg.append(mark);
    if (look.open === "dot") {
      const dot = document.createElementNS(space, "circle");
      dot.setAttribute("class", "swatch-mark");
      dot.setAttribute("r", 1.3);
      svg.append(dot);
    }
  }
  made.append(svg);
  return made;
};
// A bar as thick as a path state is drawn.
netwarp.bar = function (look) {
  const made = netwarp.h("span", { class: "swatch-bar", "aria-hidden": "true" });
  made.style.height = look.width + "px";
  made.style.background = netwarp.dark() ? look.dark : look.light;
  return made;
};
netwarp.shapes = {
  circle: "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0Z",
  square: "M-3.6,-3.6h7.2v7.2h-7.2Z",
  "triangle-up": "M0,-4.6L4.4,3.4H-4.4Z",
  diamond: "M0,-5L5,0L0,5L-5,0Z",
  "triangle-down": "M0,4.6L4.4,-3.4H-4.4Z",
  cross: "M-1.6,-4.6h3.2v3h3v3.2h-3v3h-3.2v-3h-3v-3.2h3Z",
  x: "M-4.2,-2.2L-2.2,-4.2L0,-2L2.2,-4.2L4.2,-2.2L2,0L4.2,2.2L2.2,4.2L0,2L-2.2,4.2L-4.2,2.2L-2,0Z",
  star: "M0,-5.2L1.3,-1.8L5,-1.6L2.1,0.7L3.1,4.3L0,2.2L-3.1,4.3L-2.1,0.7L-5,-1.6L-1.3,-1.8Z",
};
netwarp.dashes = {
  dash: "5 3", dashdot: "6 2 1.5 2", longdash: "9 3", dot: "1.5 2.5", longdashdot: "9 3 1.5 3",
};

netwarp.dark = () => window.matchMedia("(prefers-color-scheme: dark)").matches;

// Where the reader went stays on the screen while charts are drawn above it and change its place: an element, or a
// distance from the top for the way back. What the reader does next lets go of it.
netwarp.hold = (function () {
  let held = null;
  const settle = () => {
    if (held === null) return;
    if (typeof held === "number") window.scrollTo({ top: held, behavior: "instant" });
    else held.scrollIntoView({ behavior: "instant" });
  };
  let next = null; // what the link that was followed last leads to
  const hold = (place) => { held = place; settle(); };
  hold.take = () => { const taken = next; next = null; return taken; };
  hold.section = () => (held instanceof Element ? held.closest("section") : null);
  for (const kind of ["wheel", "touchmove", "pointerdown", "keydown"]) {
    window.addEventListener(kind, () => { held = null; }, { capture: true, passive: true });
  }
  document.addEventListener("click", (event) => {
    const link = event.target.closest && event.target.closest('a[href^="#"]');
    const target = link && document.getElementById(decodeURIComponent(link.hash.slice(1).split("?")[0]));
    if (link) next = target;
    if (target) requestAnimationFrame(() => hold(target));
  });
  document.addEventListener("DOMContentLoaded", () => new ResizeObserver(settle).observe(document.getElementById("main")));
  // the browser would restore a place in a page whose charts are not drawn yet
  history.scrollRestoration = "manual";
  window.addEventListener("pagehide", () => history.replaceState({ ...history.state, place: window.scrollY }, ""));
  window.addEventListener("load", () => {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1).split("?")[0]));
    if (history.state && history.state.place !== undefined) hold(history.state.place);
    else if (target) hold(target);
  });
  return hold;
})();

// #cell=ID shows a cell, anything else the report; the place in the report is kept for the way back.
document.addEventListener("DOMContentLoaded", function () {
  const report = document.getElementById("report");
  const article = document.getElementById("cell");
  let place = 0;
  function route() {
    const address = netwarp.state.cell();
    const known = (id) => id !== undefined && netwarp.cells.numberOf(id) !== undefined;
    if (address && known(address.id)) {
      if (article.hidden) place = window.scrollY;
      report.hidden = true;
      article.hidden = false;
      document.documentElement.classList.add("cell-open");
      netwarp.showCell({ ...address, with: known(address.with) && address.with !== address.id ? address.with : undefined }, article);
      netwarp.hold(0);
    } else if (!article.hidden) {
      article.hidden = true;
      article.replaceChildren();
      report.hidden = false;
      document.documentElement.classList.remove("cell-open");
      document.title = document.title.replace(/^.* – cell of /, "");
      netwarp.hold(netwarp.hold.take() || place);
      if (netwarp.lastLink && netwarp.lastLink.isConnected) netwarp.lastLink.focus({ preventScroll: true });
    }
  }
  window.addEventListener("hashchange", route);
  route();
  document.addEventListener("click", (event) => {
    const link = event.target.closest && event.target.closest('a[href^="#cell="]');
    if (link && report.contains(link)) netwarp.lastLink = link;
  });
});

// Tables: which source the coloured differences are from.
for (const radio of document.querySelectorAll(".grid-against input")) {
  radio.addEventListener("change", () => {
    radio.closest(".grid-block").dataset.against = radio.value;
    netwarp.say("Differences are now from " + radio.parentElement.textContent.trim());
  });
}

// The part of the page that is being read is marked in the list of parts.
(function () {
  const links = new Map([...document.querySelectorAll(".sections a")].map((link) => [link.hash.slice(1), link]));
  const seen = new Map();
  const watch = new IntersectionObserver((entries) => {
    for (const entry of entries) seen.set(entry.target.id, entry.isIntersecting);
    const gone = netwarp.hold.section();
    const current = gone && links.has(gone.id) ? gone.id : [...links.keys()].find((id) => seen.get(id));
    for (const [id, link] of links) {
      if (id === current) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
    if (current) { // a phone's bar has not room for all of them
      const bar = links.get(current).closest("ul"), box = links.get(current).getBoundingClientRect();
      bar.scrollLeft += box.left + box.width / 2 - bar.getBoundingClientRect().left - bar.clientWidth / 2;
    }
  }, { rootMargin: "-64px 0px -60% 0px" });
  for (const id of links.keys()) watch.observe(document.getElementById(id));
})();
