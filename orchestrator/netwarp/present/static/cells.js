// The list of cells: search, filters, sorting. Its data is assets/cell-list.js; of its rows only those that were
// scrolled to are in the page.
"use strict";

(function () {
  const { h } = netwarp;
  const table = document.getElementById("cell-table");
  const form = document.getElementById("cell-filters");
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const titles = heads.map((head) => head.textContent.trim());
  let list = null; // as present/cell_list.py writes it: columns of distinct fields, and each row's of them
  let texts = null; // what the search looks into, a text a row; made when something is first searched
  let numbers = new Map(); // cell id -> its row
  let order = []; // every row, in the order it is sorted by
  let listed = []; // those of them that fit the filters; the first `made` are in the page
  let made = 0;
  let behind = null; // {claim, numbers}: only the cells a claim is tested on
  let sorted = { column: "", descending: false };

  const field = (row, column) => list.columns[column].words[list.columns[column].of[row]];
  const outcome = (row) => list.outcomes[list.outcome[row]];
  const opens = (row) => outcome(row)[0] !== "NOT_RUN";

  // The same row as templates/cells.html.j2 makes.
  function make(row) {
    const [name, symbol, kind] = outcome(row);
    const id = list.ids[row], number = String(row + 1);
    return h("tr", { class: !opens(row) && "cells-missing", title: id },
      h("th", { scope: "row", "data-label": list.labels[row] }, opens(row)
        ? h("a", { href: "#cell=" + encodeURIComponent(id), "aria-label": `Cell ${number}: ${list.labels[row]}` }, number) : number),
      h("td", {}, h("span", { class: "badge " + kind, title: list.reasons[row] },
        h("span", { "aria-hidden": "true" }, symbol), " ", h("span", { class: "cells-word" }, name))),
      list.columns.slice(0, list.shown).map((column, i) => h("td", { class: column.number ? "n" : "cells-level" }, field(row, i)[0] || "–")));
  }

  // Rows are made a screen or two ahead of the reader.
  const end = h("div", { "aria-hidden": "true" });
  const box = table.parentElement;
  const watch = new IntersectionObserver((entries) => { if (entries.some((entry) => entry.isIntersecting)) more(); }, { root: box, rootMargin: "600px" });
  const note = document.getElementById("cells-more");
  if (note) note.remove();
  box.append(end);

  function more() {
    const next = listed.slice(made, made + list.at_once);
    body.append(...next.map(make));
    made += next.length;
    watch.unobserve(end); // observed anew, it is looked at anew: the rows may not have filled the screen
    if (made < listed.length) watch.observe(end);
  }

  function show() {
    body.replaceChildren();
    made = 0;
    box.scrollTop = 0;
    more();
  }

  // what a filter is called in the address: the heading of its column
  const nameOf = (select) => (select.name === "outcome" ? "outcome" : list.headings[Number(select.dataset.field)]);

  function filter() {
    const words = form.elements.text.value.toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = [...form.querySelectorAll("select")].filter((select) => select.value);
    if (words.length && !texts) {
      texts = list.ids.map((id, row) => [row + 1, outcome(row)[0], ...list.columns.map((_, i) => field(row, i)[0]), id].join(" ").toLowerCase());
    }
    listed = order.filter((row) => (!behind || behind.numbers.has(row)) && words.every((word) => texts[row].includes(word)) &&
      chosen.every((select) => (select.name === "outcome" ? outcome(row)[0] : field(row, Number(select.dataset.field))[0]) === select.value));
    document.getElementById("cell-count").textContent =
      (listed.length === order.length ? "" : `${netwarp.number(listed.length)} of `) + netwarp.counted(order.length, "cell");
    const only = document.getElementById("cells-behind");
    only.hidden = !behind;
    only.querySelector("b").textContent = behind ? behind.claim : "";
    document.getElementById("cells-none").hidden = listed.length > 0;
    show();
  }

  function remember() {
    const chosen = Object.fromEntries([...form.querySelectorAll("select")].map((select) => [nameOf(select), select.value]));
    netwarp.state.write("cells", { text: form.elements.text.value, ...chosen, claim: behind && behind.claim,
      sort: sorted.column && (sorted.descending ? "-" : "") + sorted.column });
  }

  // The number and the text that a row sorts by in a column of the table.
  function keyOf(row, column) {
    if (column === 0) return [String(row + 1), row];
    return column === 1 ? [outcome(row)[0], null] : field(row, column - 2);
  }

  function sort(column, descending) {
    const keys = order.map((_, row) => keyOf(row, column));
    order = order.map((_, row) => row).sort((one, other) => {
      const [[text, a], [otherText, b]] = [keys[one], keys[other]];
      if (a === null && b === null) return text.localeCompare(otherText);
      if (a === null || b === null) return a === null ? 1 : -1; // nothing measured: always last
      return descending ? b - a : a - b;
    });
    if (descending && keys.every(([, number]) => number === null)) order.reverse();
    heads.forEach((head, i) => {
      if (i === column) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    sorted = { column: titles[column], descending };
  }

  heads.forEach((head, column) => {
    const button = h("button", { type: "button", class: "cells-sort" }, titles[column]);
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      sort(column, head.getAttribute("aria-sort") === "ascending");
      filter();
      remember();
    });
  });

  // a click anywhere in a row opens the cell; the link in it is what the keyboard reaches
  body.addEventListener("click", (event) => {
    const link = event.target.closest("tr").querySelector("a");
    if (link && !event.target.closest("a") && !String(window.getSelection())) link.click();
  });
  form.addEventListener("input", () => { filter(); remember(); });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => { behind = null; filter(); remember(); }));
  document.querySelector("#cells-behind button").addEventListener("click", () => { behind = null; filter(); remember(); });

  // Called by assets/cell-list.js. The first rows are in the page already.
  netwarp.cellsListed = function (data) {
    list = data;
    numbers = new Map(list.ids.map((id, row) => [id, row]));
    order = list.ids.map((_, row) => row);
    listed = order;
    made = body.rows.length;
    if (made < listed.length) watch.observe(end);
    netwarp.state.on("cells", (values) => {
      form.elements.text.value = values.text || "";
      for (const select of form.querySelectorAll("select")) select.value = values[nameOf(select)] || "";
      const spans = Object.hasOwn(netwarp.data.claims, values.claim) ? netwarp.data.claims[values.claim] : null;
      behind = spans && { claim: values.claim, numbers: new Set(spans.flatMap(([first, last]) => order.map((_, row) => row).slice(first, last + 1))) };
      const [descending, heading] = [/^-/.test(values.sort || ""), (values.sort || "").replace(/^-/, "")];
      const column = titles.indexOf(heading);
      if (column >= 0) sort(column, descending);
      filter();
    });
  };

  netwarp.cells = {
    get count() { return list.ids.length; },
    numberOf: (id) => numbers.get(id),
    idOf: (row) => list.ids[row],
    script: (id) => (Object.hasOwn(list.scripts, id) ? list.scripts[id] : id + ".js"),

    // The cells before and after this one, as the list stands now.
    neighbours(id) {
      const there = listed.filter(opens);
      const at = there.indexOf(numbers.get(id));
      const hash = (row) => (row === undefined ? null : "#cell=" + encodeURIComponent(list.ids[row]));
      return { before: at > 0 ? hash(there[at - 1]) : null, after: at >= 0 ? hash(there[at + 1]) : null, at, of: there.length };
    },

    // For choosing a cell to compare with: every other, with the one factor it differs in, if it is one.
    *beside(id) {
      const own = numbers.get(id);
      const factors = [...form.querySelectorAll("[data-field]")].map((select) => Number(select.dataset.field));
      for (const row of list.ids.keys()) {
        if (row === own || !opens(row)) continue;
        const differing = factors.filter((column) => field(row, column)[0] !== field(own, column)[0]);
        yield { id: list.ids[row], label: `${row + 1}: ${list.labels[row]}`,
          ...(differing.length === 1 && { differing: list.headings[differing[0]], text: field(row, differing[0])[0] || "–" }) };
      }
    },
  };
})();
