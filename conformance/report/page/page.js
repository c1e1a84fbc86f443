"use strict";
// Everything here adds to a page that is complete without it. Texts are set as text, never as HTML.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const element = (name, text, kind) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (kind) made.className = kind;
    return made;
  };

  // A behaviour: the slider chooses a step, the table shows the whole state after it.
  function exhibit(root) {
    const { texts, steps, observed } = JSON.parse(root.querySelector("script").textContent);
    const told = all(".steps > li", root);
    const names = told.map((one) => one.querySelector("code").textContent);
    const slider = root.querySelector("input[type=range]");
    const output = root.querySelector("output");
    const now = root.querySelector(".now");
    const drawing = root.querySelector(".drawing");
    const showState = (step) => {
      const state = new Map();
      steps.slice(0, step + 1).forEach((values) =>
        Object.entries(values).forEach(([name, number]) => state.set(name, texts[number])));
      const table = element("table");
      const changed = step ? steps[step] : {};
      const departs = step === steps.length - 1 ? observed : {};
      const rank = (name) => (name in departs) * 2 + (name in changed);
      const line = (name, value, kind) => {
        const row = element("tr", undefined, kind);
        const title = element("th", name);
        title.scope = "row";
        row.append(title, element("td", value.trim() ? value : "(not known)"));
        table.append(row);
      };
      for (const [name, value] of [...state].sort(([a], [b]) => rank(b) - rank(a))) {
        if (name in departs) {
          line(`${name}, expected`, value, "expected");
          line(`${name}, actual`, departs[name], "actual");
        } else line(name, value, name in changed ? "changed" : "");
      }
      const parts = [element("h4", `State after step ${step}: ${names[step]}`), table];
      const changes = step && told[step].querySelector("ul");
      if (changes) parts.unshift(element("h4", "What changed"), changes.cloneNode(true));
      now.replaceChildren(...parts);
    };
    const show = (step, scroll) => {
      if (now) showState(step);
      output.textContent = `Step ${step} of ${steps.length - 1}: ${names[step]}`;
      slider.value = step;
      slider.setAttribute("aria-valuetext", output.textContent);
      all(".band", drawing).forEach((band) => {
        const here = Number(band.dataset.step) === step;
        band.classList.toggle("now-step", here);
        band.removeAttribute("fill");
        if (!here) band.setAttribute("fill", "none");
        if (here && scroll) {
          const top = Number(band.getAttribute("y"));
          if (top < drawing.scrollTop || top + 60 > drawing.scrollTop + drawing.clientHeight)
            drawing.scrollTop = Math.max(0, top - 60);
        }
      });
    };
    slider.addEventListener("input", () => show(Number(slider.value), true));
    all("[data-by]", root).forEach((button) => button.addEventListener("click", () => {
      const wanted = Number(slider.value) + Number(button.dataset.by);
      show(Math.min(steps.length - 1, Math.max(0, wanted)), true);
    }));
    root.querySelector(".steer").hidden = false;
    if (now) now.hidden = false;
    show(steps.length - 1, false);
  }

  // Behaviours in closed parts of the page are made ready when they are opened.
  function prepare(root) {
    if (root.dataset.ready) return;
    root.dataset.ready = "yes";
    exhibit(root);
  }
  all("[data-exhibit]").forEach((root) => {
    const closed = root.closest("details:not([open])");
    if (closed) closed.addEventListener("toggle", () => prepare(root), { once: true });
    else prepare(root);
  });

  // Tables: a filter, a choice of verdicts, sorting by a column's title.
  function filtered(table) {
    const text = document.querySelector(`[data-filter="${table.id}"]`);
    const verdict = document.querySelector(`[data-verdict="${table.id}"]`);
    const count = document.querySelector(`[data-count="${table.id}"]`);
    const apply = () => {
      const rows = all("tbody tr", table);
      const wanted = text.value.toLowerCase();
      rows.forEach((row) => {
        row.hidden = !row.textContent.toLowerCase().includes(wanted) ||
          (verdict.value !== "" && row.dataset.verdict !== verdict.value);
      });
      const left = rows.filter((row) => !row.hidden).length;
      count.textContent = left === rows.length ? "" : `${left} of ${rows.length}`;
    };
    text.addEventListener("input", apply);
    verdict.addEventListener("change", apply);
    text.closest(".tools").hidden = false;
  }
  all("table[id]").filter((t) => document.querySelector(`[data-filter="${t.id}"]`)).forEach(filtered);

  function sortable(heading, column) {
    const button = element("button", heading.textContent);
    button.type = "button";
    heading.replaceChildren(button);
    button.addEventListener("click", () => {
      const table = heading.closest("table");
      const up = heading.getAttribute("aria-sort") !== "ascending";
      all("th", heading.parentElement).forEach((one) => one.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", up ? "ascending" : "descending");
      const number = heading.classList.contains("num");
      const value = (row) => {
        const text = row.cells[column].textContent.trim();
        return number ? parseFloat(text.replaceAll(",", "")) || 0 : text;
      };
      const body = table.tBodies[0];
      const order = (a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0);
      [...body.rows].sort((a, b) => (up ? order(a, b) : order(b, a))).forEach((row) => body.append(row));
    });
  }
  all("table.list thead tr").forEach((row) => [...row.cells].forEach(sortable));

  // A link to something in a closed part opens it.
  function reveal() {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let one = target; one; one = one.parentElement) if (one.tagName === "DETAILS") one.open = true;
    target.scrollIntoView();
  }
  addEventListener("hashchange", reveal);
  reveal();

  all("[data-copy]").forEach((button) => {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const text = button.parentElement.querySelector("pre");
      try {
        await navigator.clipboard.writeText(text.textContent);
        button.textContent = "Copied";
      } catch {
        // A page opened from a file may have no clipboard: select it for the reader.
        getSelection().selectAllChildren(text);
        button.textContent = "Selected: press Ctrl+C";
      }
    });
  });
})();
