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

  // Shown on the screen, and not only read aloud (clipped away, it or what it stands in).
  function shown(element) {
    if (!element.checkVisibility({ visibilityProperty: true })) return false;
    for (let one = element; one; one = one.parentElement) if (getComputedStyle(one).clipPath !== "none") return false;
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

  return {
    clean, seen, shown,
    openAll: () => document.querySelectorAll("details").forEach((one) => { one.open = true; }),
    tableFaults: (within = "body") => tables(within).flatMap(tableFaults),
    countTables: (within = "body") => tables(within).length,
    heads: (within) => [...document.querySelectorAll(`${within} thead th`)].filter(shown).map((head) => clean(seen(head))),
    values: (selector) => values(document.querySelector(selector)),
  };
})();
