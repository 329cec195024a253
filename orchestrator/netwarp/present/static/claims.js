// Filters the claims table by verdict and by word. Rows left out are hidden on screen only: printed, all are shown.
// Ids, classes and data-verdict come from templates/claims.html.j2; netwarp.counted from report.js, netwarp.state from state.js.
"use strict";

(function () {
  const form = document.getElementById("claim-filters");
  if (!form) return;
  const UNTESTED = ["not tested", "not testable here"]; // as present/style.py
  const blocks = [...document.querySelectorAll("table.claims > tbody")].map((body) => ({
    body, verdict: body.dataset.verdict, text: body.textContent.toLowerCase(),
  }));

  function filter() {
    const words = form.elements.text.value.toLowerCase().split(/\s+/).filter(Boolean);
    const verdict = form.elements.verdict.value;
    // The template offers "all" beside "" (tested ones) only where some claims are not tested; else "" means all.
    const mixed = [...form.elements.verdict.options].some((option) => option.value === "all");
    let shown = 0;
    for (const { body, verdict: own, text } of blocks) {
      const fits = (verdict === "all" || own === verdict || (verdict === "" && (!mixed || !UNTESTED.includes(own)))) && words.every((word) => text.includes(word));
      body.classList.toggle("claims-off", !fits);
      shown += fits;
    }
    document.getElementById("claims-none").hidden = shown > 0;
    document.getElementById("claim-count").textContent =
      (shown === blocks.length ? "" : `${shown} of `) + netwarp.counted(blocks.length, "claim");
  }

  form.addEventListener("input", () => {
    filter();
    netwarp.state.write("claims", { verdict: form.elements.verdict.value, text: form.elements.text.value });
  });
  form.addEventListener("reset", () => setTimeout(() => { filter(); netwarp.state.write("claims", {}); }));
  form.addEventListener("submit", (event) => event.preventDefault());
  netwarp.state.on("claims", (values) => {
    form.elements.text.value = values.text || "";
    form.elements.verdict.value = values.verdict || "";
    if (form.elements.verdict.selectedIndex < 0) form.elements.verdict.selectedIndex = 0;
    filter();
  });
  // a link to one claim shows it, whatever is chosen
  function reveal() {
    const body = location.hash.startsWith("#claim-") && document.getElementById(location.hash.slice(1));
    if (!body || !body.classList.contains("claims-off")) return;
    form.reset();
    form.elements.verdict.value = "all";
    filter();
    netwarp.hold(body);
  }
  filter();
  window.addEventListener("hashchange", reveal);
  reveal();
})();
