// The list of cells: search, filters, sorting. The rows are in the page already; this only hides and moves them.
"use strict";

(function () {
  const table = document.getElementById("cell-table");
  const form = document.getElementById("cell-filters");
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => ({
    row,
    text: row.textContent.toLowerCase() + " " + row.title.toLowerCase(),
    id: (row.querySelector("a") || {}).hash,
    fields: [...row.cells].map((cell) => cell.textContent.trim()),
    sorts: [...row.cells].map((cell) => (cell.dataset.s === undefined ? null : Number(cell.dataset.s))),
  }));

  // what a filter is called in the address: the heading of its column
  const nameOf = (select) => (select.name === "outcome" ? "outcome" : table.tHead.rows[0].cells[Number(select.dataset.field) + 2].textContent.trim());
  let behind = null; // {claim, ids}: only the cells a claim is tested on
  let order = { column: "", descending: false };

  function filter() {
    const choice = new FormData(form);
    const words = String(choice.get("text") || "").toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = [...form.querySelectorAll("select")].filter((select) => select.value);
    let shown = 0;
    for (const [number, entry] of rows.entries()) {
      const fits = (!behind || behind.numbers.has(number)) && words.every((word) => entry.text.includes(word)) && chosen.every((select) => {
        if (select.name === "outcome") return entry.row.cells[1].dataset.o === select.value;
        return entry.fields[Number(select.dataset.field) + 2] === select.value;
      });
      entry.row.hidden = !fits;
      shown += fits;
    }
    document.getElementById("cell-count").textContent =
      (shown === rows.length ? "" : `${shown} of `) + netwarp.counted(rows.length, "cell");
    const note = document.getElementById("cells-behind");
    note.hidden = !behind;
    note.querySelector("b").textContent = behind ? behind.claim : "";
  }

  function remember() {
    const chosen = Object.fromEntries([...form.querySelectorAll("select")].map((select) => [nameOf(select), select.value]));
    netwarp.state.write("cells", { text: form.elements.text.value, ...chosen, claim: behind && behind.claim,
      sort: order.column && (order.descending ? "-" : "") + order.column });
  }

  function sort(column, descending) {
    const ordered = [...rows].sort((one, other) => {
      const [a, b] = [one.sorts[column], other.sorts[column]];
      if (a === null && b === null) return one.fields[column].localeCompare(other.fields[column]);
      if (a === null || b === null) return a === null ? 1 : -1; // nothing measured: always last
      return descending ? b - a : a - b;
    });
    if (descending && rows.every((entry) => entry.sorts[column] === null)) ordered.reverse();
    body.append(...ordered.map((entry) => entry.row));
    [...table.tHead.rows[0].cells].forEach((head, i) => {
      if (i === column) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    order = { column: table.tHead.rows[0].cells[column].textContent.trim(), descending };
  }

  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = netwarp.h("button", { type: "button", class: "sort" }, head.textContent.trim());
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      sort(column, head.getAttribute("aria-sort") === "ascending");
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
  netwarp.state.on("cells", (values) => {
    form.elements.text.value = values.text || "";
    for (const select of form.querySelectorAll("select")) select.value = values[nameOf(select)] || "";
    const numbers = Object.hasOwn(netwarp.data.claims, values.claim) ? netwarp.data.claims[values.claim] : null;
    behind = numbers && { claim: values.claim, numbers: new Set(numbers) };
    const [descending, heading] = [/^-/.test(values.sort || ""), (values.sort || "").replace(/^-/, "")];
    const column = [...table.tHead.rows[0].cells].findIndex((head) => head.textContent.trim() === heading);
    if (column >= 0) sort(column, descending);
    filter();
  });
  filter();

  // For choosing a cell to compare with: what each is called, and which columns are factors.
  netwarp.cellRows = rows.filter((entry) => entry.id).map((entry) => ({
    id: decodeURIComponent(entry.id.slice("#cell=".length)), fields: entry.fields,
    label: entry.row.querySelector("a").getAttribute("aria-label").replace(/^Cell (\d+): /, "$1: "),
  }));
  netwarp.cellFactors = [...new Set([...form.querySelectorAll("[data-field]")].map((select) => Number(select.dataset.field) + 2))]
    .map((column) => ({ column, title: table.tHead.rows[0].cells[column].textContent.trim() }));

  // The cells before and after this one, as the list stands now.
  netwarp.neighbours = function (id) {
    const hash = "#cell=" + encodeURIComponent(id);
    const listed = [...body.rows].filter((row) => !row.hidden && row.querySelector("a"));
    const hashes = listed.map((row) => row.querySelector("a").hash);
    const at = hashes.findIndex((one) => decodeURIComponent(one) === decodeURIComponent(hash));
    return { before: at > 0 ? hashes[at - 1] : null, after: at >= 0 ? hashes[at + 1] || null : null, at, of: hashes.length };
  };
})();
