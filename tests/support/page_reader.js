// What a reader of a page sees of its tables: where a value stands, not where the markup puts it.
// Loaded into a page by tests/support/page_reader.py.
"use strict";

window.reader = (function () {
  const NEAR = 1.5; // CSS pixels: borders that are shared and fractions of a pixel
  const clean = (text) => text.replace(/\s+/g, " ").trim();
  const middle = (box) => [(box.left + box.right) / 2, (box.top + box.bottom) / 2];

  // Text of an element as it is seen: not that of readers aloud, nor of what is not shown.
  function seen(element) {
    if (element.nodeType === Node.TEXT_NODE) return element.data;
    if (!(element instanceof Element) || !shown(element)) return "";
    const parts = [...element.childNodes].map(seen).join("");
    return getComputedStyle(element).display.startsWith("inline") ? parts : ` ${parts} `;
  }

  // Whether it, or what it stands in, is clipped away; remembered while one rule looks at the page.
  const clips = new Map();
  function clipped(element) {
    if (!element) return false;
    if (!clips.has(element)) clips.set(element, clipped(element.parentElement) || getComputedStyle(element).clipPath !== "none");
    return clips.get(element);
  }
  const anew = (rule) => (...given) => { clips.clear(); return rule(...given); };

  // Shown on the screen, and not only read aloud (clipped away, it or what it stands in).
  function shown(element) {
    if (!element.checkVisibility({ visibilityProperty: true })) return false;
    if (clipped(element)) return false;
    const box = element.getBoundingClientRect();
    return getComputedStyle(element).display === "contents" || (box.width > 0 && box.height > 0);
  }

  // Each cell of a table with its columns and rows, by the rules of HTML for spans (13.1.3 of the living standard).
  function places(table) {
    const found = [];
    const taken = new Map();
    [...table.rows].forEach((row, y) => {
      let x = 0;
      for (const cell of row.cells) {
        while (taken.get(`${x} ${y}`)) x += 1;
        const last = cell.rowSpan === 0 ? row.parentElement.rows.length : cell.rowSpan;
        found.push({ cell, row, x, y, right: x + cell.colSpan, bottom: y + last });
        for (let i = x; i < x + cell.colSpan; i += 1) for (let j = y; j < y + last; j += 1) taken.set(`${i} ${j}`, true);
        x += cell.colSpan;
      }
    });
    return found;
  }

  const name = (table) => clean(table.caption?.textContent || table.closest("[aria-label]")?.getAttribute("aria-label") || table.className);

  // Faults of one table: a value that does not stand below the heading of its column or beside that of its row.
  function tableFaults(table) {
    const all = places(table);
    const faults = [];
    const heads = all.filter(({ cell }) => cell.closest("thead"));
    const body = all.filter(({ cell }) => !cell.closest("thead") && shown(cell));
    const say = (cell, what) => faults.push(`${name(table)}: "${clean(seen(cell)).slice(0, 40)}" ${what}`);
    for (const one of body) {
      const box = one.cell.getBoundingClientRect();
      const lines = getComputedStyle(one.row).display === "table-row";
      if (!lines) { // a row as a card: every part of it within the card
        const card = one.row.getBoundingClientRect();
        if (box.left < card.left - NEAR || box.right > card.right + NEAR || box.top < card.top - NEAR || box.bottom > card.bottom + NEAR) say(one.cell, "is outside its card");
      }
      for (const head of heads.filter((head) => head.x < one.right && one.x < head.right)) {
        const title = clean(seen(head.cell)) || clean(head.cell.textContent);
        if (!title || !clean(seen(one.cell))) continue;
        if (lines && shown(head.cell)) {
          const above = head.cell.getBoundingClientRect();
          const inside = head.right - head.x >= one.right - one.x ? [box, above] : [above, box];
          if (inside[0].left < inside[1].left - NEAR || inside[0].right > inside[1].right + NEAR) say(one.cell, `is not below "${title}"`);
          if (box.top < above.bottom - NEAR) say(one.cell, `is not under "${title}", but beside or above it`);
        } else if (one.cell.tagName === "TD" && !one.cell.querySelector(".badge")) {
          const label = getComputedStyle(one.cell, "::before").content;
          if (!label.includes(title) && one.cell.dataset.label !== title) say(one.cell, `has no heading to be seen (${title})`);
          else if (label === "none") say(one.cell, `does not show its label (${title})`);
        }
      }
      if (one.cell.tagName !== "TD" || !lines) continue;
      for (const { cell } of body.filter((head) => head.cell.tagName === "TH" && head.y < one.bottom && one.y < head.bottom)) {
        const beside = cell.getBoundingClientRect();
        if (box.top < beside.top - NEAR || box.bottom > beside.bottom + NEAR) say(one.cell, `is not beside "${clean(seen(cell)).slice(0, 40)}"`);
        if (box.left < beside.right - NEAR && box.right > beside.left + NEAR) say(one.cell, `covers "${clean(seen(cell)).slice(0, 40)}"`);
      }
    }
    return faults;
  }

  const tables = (within) => [...document.querySelectorAll(`${within} table`)].filter(shown);

  // Each value of a table with the headings that a reader finds above and beside it, by where they are on the screen.
  function values(table) {
    const heads = [...table.querySelectorAll("thead th")].filter(shown);
    const sides = [...table.querySelectorAll("tbody th")].filter(shown);
    return [...table.querySelectorAll("tbody td")].filter(shown).map((cell) => {
      const [x, y] = middle((cell.querySelector(".grid-value") || cell).getBoundingClientRect());
      const above = heads.map((head) => [head, head.getBoundingClientRect()]).filter(([, box]) => box.left <= x && x <= box.right);
      const beside = sides.map((head) => [head, head.getBoundingClientRect()]).filter(([, box]) => box.top <= y && y <= box.bottom);
      return {
        text: clean(seen(cell.querySelector(".grid-value") || cell)),
        above: above.sort((a, b) => a[1].top - b[1].top).map(([head]) => clean(seen(head))),
        beside: beside.sort((a, b) => a[1].left - b[1].left).map(([head]) => clean(seen(head))),
      };
    });
  }

  // What is wider than its place, but for boxes made to be scrolled: those take the keyboard, or are code or the tabs.
  function sideways() {
    const faults = [];
    const root = document.documentElement;
    if (root.scrollWidth > root.clientWidth + 1) {
      const wide = [...document.querySelectorAll("body *")].filter((one) => shown(one) && one.getBoundingClientRect().right > root.clientWidth + 1 && !scrolled(one));
      faults.push(`the page is ${root.scrollWidth} px wide in ${root.clientWidth}: ${wide.slice(0, 2).map(describe).join(", ")}`);
    }
    for (const one of document.querySelectorAll("body *")) {
      if (one.scrollWidth <= one.clientWidth + 1 || !shown(one) || !one.clientWidth) continue;
      const style = getComputedStyle(one);
      if (!/auto|scroll/.test(style.overflowX)) continue;
      const made = one.tabIndex >= 0 || one.matches("pre, nav ul, select, textarea, input");
      if (!made) faults.push(`${describe(one)} scrolls sideways and takes no keyboard`);
    }
    return faults;
  }
  const scrolled = (element) => { // in a box that is scrolled
    for (let one = element.parentElement; one; one = one.parentElement) if (getComputedStyle(one).overflowX !== "visible") return one;
    return null;
  };
  const describe = (one) => `<${one.tagName.toLowerCase()}${one.id ? "#" + one.id : ""}${one.getAttribute("class") ? "." + one.getAttribute("class") : ""}> "${clean(one.textContent).slice(0, 30)}"`;

  // Texts with their boxes, one a line of text.
  function texts(within = document.body, inWindow = false) {
    const found = [];
    const walker = document.createTreeWalker(within, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = walker.currentNode, element = node.parentElement;
      if (inWindow) {
        const edge = element.getBoundingClientRect();
        if (edge.bottom < 0 || edge.top > innerHeight || edge.right < 0 || edge.left > innerWidth) continue;
      }
      if (!node.data.trim() || element.closest("script, style, noscript, select, .js-plotly-plot, [aria-hidden=true]") || !shown(element)) continue;
      const range = document.createRange();
      range.selectNodeContents(node);
      for (const box of range.getClientRects()) if (box.width > 1 && box.height > 1) found.push({ node, element, box });
    }
    return found;
  }

  // Texts that end where a box that cannot be scrolled cuts them, or outside their drawing.
  function cut() {
    const faults = [];
    for (const { node, element, box } of texts()) {
      for (let one = element; one && one !== document.body; one = one.parentElement) {
        const style = getComputedStyle(one);
        const drawing = one.tagName === "svg" && style.overflow !== "visible";
        if (!drawing && !/hidden|clip/.test(style.overflowX + style.overflowY)) continue;
        const edge = one.getBoundingClientRect();
        if (box.left < edge.left - NEAR || box.right > edge.right + NEAR || box.top < edge.top - 3 || box.bottom > edge.bottom + 3) {
          faults.push(`"${clean(node.data).slice(0, 50)}" is cut by ${describe(one)}`);
        }
        break;
      }
    }
    return faults;
  }

  // Texts of the window that something else lies over. What stands still while others are scrolled (position: sticky) is
  // looked at where it is alone.
  function covered() {
    const faults = [];
    const bar = document.querySelector(".sections");
    const top = bar ? Math.max(0, bar.getBoundingClientRect().bottom) : 0;
    for (const { node, element, box } of texts(document.body, true)) {
      const [x, y] = middle(box);
      if (x < 0 || x >= innerWidth || y < top + 1 || y >= innerHeight - 1) continue;
      const frame = scrolled(element)?.getBoundingClientRect();
      if (frame && (x < frame.left || x > frame.right || y < frame.top || y > frame.bottom)) continue;
      const above = document.elementFromPoint(x, y);
      if (!above || above === element || above.contains(element) || element.contains(above)) continue;
      if (above.closest("a, button, label, summary, svg")?.contains(element)) continue;
      if (getComputedStyle(above.closest("th, thead") || above).position === "sticky" || above.closest("nav")) continue;
      faults.push(`"${clean(node.data).slice(0, 50)}" is covered by ${describe(above)}`);
    }
    return faults;
  }

  const frame = () => new Promise(requestAnimationFrame);

  // From the top to the end, a window at a time: what is looked for in each, once its charts are drawn.
  async function throughout(look) {
    const faults = new Set();
    for (let y = 0; ; y += innerHeight * 0.8) {
      scrollTo({ top: y, behavior: "instant" });
      await settled();
      look().forEach((fault) => faults.add(fault));
      if (y + innerHeight >= document.documentElement.scrollHeight) return [...faults];
    }
  }

  // The page stands still for some frames, and the charts in the window are drawn.
  async function settled() {
    for (let still = 0, last = ""; still < 6;) {
      await frame();
      const waiting = [...document.querySelectorAll(".chart")].some((chart) => {
        const box = chart.getBoundingClientRect();
        return shown(chart) && !chart.dataset.drawn && box.bottom > -200 && box.top < innerHeight + 200;
      });
      const now = `${scrollY} ${document.documentElement.scrollHeight} ${waiting}`;
      still = now === last && !waiting ? still + 1 : 0;
      last = now;
    }
  }

  // After a link within the page was followed and everything is drawn: how far its target is from where it should be.
  function away(target) {
    const wanted = parseFloat(getComputedStyle(document.documentElement).scrollPaddingTop) || 0;
    const most = document.documentElement.scrollHeight - innerHeight;
    const ideal = Math.min(Math.max(0, target.getBoundingClientRect().top + scrollY - wanted), most);
    return Math.abs(scrollY - ideal);
  }

  // Units in brackets of headings whose values have another: "Goodput (bit/s)" above Mbit/s.
  function units() {
    if (!isReport()) return [];
    const known = /\((bit\/s|kbit\/s|Mbit\/s|Gbit\/s|byte\/s|kbyte\/s|Mbyte\/s|s|ms|µs|B|kB|MB)\)/;
    return [...document.querySelectorAll(".grid-block")].filter(shown).flatMap((block) => {
      const title = known.exec(block.querySelector("h3").textContent);
      const said = clean(block.querySelector(".conditions").textContent).split(";")[0].split(", ").at(-1);
      return title && said !== title[1] ? [`"${clean(block.querySelector("h3").textContent)}" stands above values in ${said}`] : [];
    }).concat([...document.querySelectorAll("figure[data-figure]")].filter(shown).flatMap((block) => {
      const title = known.exec(block.querySelector("h3").textContent);
      const drawn = netwarp.data.figures[block.dataset.figure];
      const unit = (drawn.kind === "chart" ? drawn.y : drawn.value || drawn.y || {}).unit;
      return title && unit !== undefined && unit !== title[1] ? [`"${clean(block.querySelector("h3").textContent)}" stands above an axis in ${unit}`] : [];
    }));
  }

  // The label of a heading without its unit.
  const unitless = (text) => clean(text).replace(/\s*\([^()]*\)\s*[\u2195\u2191\u2193]?$/, "").replace(/[\u2195\u2191\u2193]/g, "").trim();

  // Columns of one table that read alike: nobody can tell a factor from a metric of the same name.
  function headings(table) {
    if (table.tHead === null || table.tHead.rows.length !== 1 || !isReport()) return [];
    const last = [...table.tHead.rows[0].cells].filter(shown);
    const names = last.map((head) => unitless(seen(head))).filter(Boolean);
    return names.filter((one, i) => names.indexOf(one) !== i).map((one) => `${name(table)}: two columns are called "${one}"`);
  }

  // The list of cells has results, all of them on a wide screen.
  function cellsList() {
    const table = document.getElementById("cell-table");
    if (!table || !shown(table)) return [];
    const faults = [];
    const box = table.closest(".cells-box");
    if (innerWidth >= 1400 && box.scrollWidth > box.clientWidth + 1) faults.push(`the list of cells is ${box.scrollWidth} px wide in ${box.clientWidth}`);
    const done = [...table.tBodies[0].rows].filter((row) => row.textContent.includes("COMPLETED"));
    const some = done.some((row) => [...row.querySelectorAll("td.n")].some((cell) => /\d/.test(cell.textContent)));
    if (done.length && !some) faults.push("the list of cells has no result");
    return faults;
  }

  // A run's report; the page of an analysis has the names of its CSV files.
  const isReport = () => document.getElementById("summary") !== null && document.getElementById("setup") !== null;

  // Names that only files have, where a reader is told something.
  function rawNames() {
    if (!isReport()) return [];
    const known = /\b[\w.]+_r\d+_[0-9a-f]{10}\b|\bns2_\d+\b|\b[a-z]+(?:_[a-z0-9]+)*_(?:bit_s|byte_s|ratio|packets)\b/;
    return texts().filter(({ node, element }) => known.test(node.data) && !element.closest("#run, code, pre, .cell-id, .links, .note, .watch-packet"))
      .map(({ node }) => `"${clean(node.data).slice(0, 60)}" has a name of files`);
  }

  // The first number of each table is in view, beside its label.
  function firstNumbers() {
    if (!isReport()) return [];
    return [...document.querySelectorAll("table")].filter(shown).flatMap((table) => {
      const cell = [...table.querySelectorAll("tbody td.n")].filter(shown).find((one) => /\d/.test(one.textContent));
      const box = table.closest(".scroll")?.getBoundingClientRect();
      if (!cell || !box || cell.matches(".grid-source")) return [];
      const [left, right] = [cell.getBoundingClientRect().left, cell.getBoundingClientRect().right];
      return right > box.right + NEAR && left - box.left > 0.6 * box.width ? [`${name(table)}: its labels leave no room for the first number`] : [];
    });
  }

  // Of a report as it opens: what was found is on the first screen, and the set-up is no longer than two.
  function opening() {
    const faults = [];
    const found = document.querySelector("#summary :is(.grid, .summary-claims, .conclusion)");
    if (found && innerWidth >= 1000 && found.getBoundingClientRect().top + scrollY > innerHeight) faults.push("the first screen has no result");
    const setup = document.getElementById("setup");
    if (setup && innerWidth >= 1000 && setup.offsetHeight > 2 * innerHeight) faults.push(`the set-up is ${setup.offsetHeight} px high`);
    return faults;
  }

  // Each choice of a verdict that says how many claims have it shows as many.
  function claimCounts() {
    const form = document.getElementById("claim-filters");
    if (!form) return [];
    const select = form.elements.verdict, before = select.value;
    const faults = [...select.options].flatMap((option) => {
      select.value = option.value;
      select.dispatchEvent(new Event("input", { bubbles: true }));
      const count = [...document.querySelectorAll("table.claims > tbody")].filter(shown).length;
      return Number(/\((\d+)\)$/.exec(option.textContent)[1]) === count ? [] : [`${option.textContent}: ${count} are shown`];
    });
    select.value = before;
    select.dispatchEvent(new Event("input", { bubbles: true }));
    return faults;
  }

  // Labels of one drawing that lie over each other, or end outside it. lines: [text, box], a line of letters each.
  function overprinted(lines, edge, title) {
    const faults = [];
    lines.forEach(([text, box], i) => {
      if (box.left < edge.left - NEAR || box.right > edge.right + NEAR || box.top < edge.top - NEAR || box.bottom > edge.bottom + NEAR) {
        faults.push(`${title}: the label "${text}" ends outside the drawing`);
      }
      for (const [other, there] of lines.slice(0, i)) {
        if (box.left < there.right - NEAR && there.left < box.right - NEAR && box.top < there.bottom - NEAR && there.top < box.bottom - NEAR) {
          faults.push(`${title}: the label "${text}" lies over "${other}"`);
        }
      }
    });
    return faults;
  }

  // Labels of the drawings in the window: charts, which are several SVG each, and pictures. A line of letters has room for
  // accents above and descenders below, which two lines may share.
  function labels() {
    const drawings = [...document.querySelectorAll(".chart, svg")].filter((one) => shown(one) && !one.parentElement.closest(".chart, svg") && (!one.matches(".chart") || one.dataset.drawn));
    return drawings.flatMap((drawing) => {
      const edge = drawing.getBoundingClientRect();
      if (edge.bottom < 0 || edge.top > innerHeight) return [];
      const lines = [...drawing.querySelectorAll("text")].flatMap((text) => {
        if (!shown(text) || text.closest(".hoverlayer, defs, title")) return [];
        const parts = text.querySelectorAll("tspan");
        return [...(parts.length ? parts : [text])].filter((one) => clean(one.textContent)).map((one) => {
          const { left, right, top, bottom } = one.getBoundingClientRect();
          const upright = bottom - top > right - left && clean(one.textContent).length > 2;
          const [x, y] = upright ? [0.15 * (right - left), 0] : [0, 0.15 * (bottom - top)];
          return [clean(one.textContent).slice(0, 40), { left: left + x, right: right - x, top: top + y, bottom: bottom - y }];
        });
      });
      return overprinted(lines, edge, drawing.getAttribute("aria-label")?.slice(0, 60) || describe(drawing));
    });
  }

  // Of an SVG file whose letters are paths: matplotlib says each text before its letters, and draws a line of them at a time.
  function printedLabels() {
    const edge = document.documentElement.getBoundingClientRect();
    const lines = [...document.querySelectorAll("[id^=text_]")].flatMap((text) => {
      const said = [...text.childNodes].find((one) => one.nodeType === Node.COMMENT_NODE);
      const drawn = [...text.querySelectorAll("g")].filter((one) => one.querySelector(":scope > use"));
      return drawn.map((one) => [clean(said?.data ?? text.id).slice(0, 40), one.getBoundingClientRect()]);
    });
    return lines.length ? overprinted(lines, edge, decodeURIComponent(location.pathname.split("/").at(-1))) : ["no label is found"];
  }

  const rules = { cellsList, labels, rawNames, firstNumbers, opening, claimCounts, sideways, cut, covered, units,
    headings: () => [...document.querySelectorAll("table")].filter(shown).flatMap(headings),
    tableFaults: (within = "body") => tables(within).flatMap(tableFaults),
    values: (selector) => values(document.querySelector(selector)),
    heads: (within) => [...document.querySelectorAll(`${within} thead th`)].filter(shown).map((head) => clean(seen(head))),
  };
  return {
    ...Object.fromEntries(Object.entries(rules).map(([name, rule]) => [name, anew(rule)])),
    clean, seen, shown, printedLabels, throughout, settled, away,
    openAll: () => document.querySelectorAll("details").forEach((one) => { one.open = true; }),
    countTables: (within = "body") => tables(within).length,
    // Several heads of a row stand below each other in one column.
    isNarrow: (within) => [...document.querySelectorAll(`${within} .grid-more`)].some(shown),
  };
})();
