// Statements that change something: shown first, run when the user says so, by the user's own rights.

import { ApiError, runSql } from "./api.js";
import { h, icon } from "./dom.js";
import { sentence } from "./format.js";
import { paint } from "./highlight.js";

/**
 * What a dialog shows and does. `statements` gives what is shown and runs, one after the other; a text for what is missing
 * yet; `run` takes the place of running the statements.
 *
 * @typedef {{ title: string, note?: string, fields?: Node[], statements: () => string[] | string, yes: string, danger?: boolean, wide?: boolean,
 *   run?: (statements: string[], signal: AbortSignal) => Promise<string>, done: (said: string) => void }} SqlDialogOptions
 */

/**
 * Opens it.
 *
 * @param {SqlDialogOptions} options
 */
export function openSqlDialog(options) {
  const { title, note, fields = [], statements, yes, danger = false, wide = false, run = runAll, done } = options;
  const controller = new AbortController();
  const code = h("code", {});
  const missing = h("p", { class: "muted", role: "status" });
  const trouble = h("div", { class: "dialog-trouble", role: "alert" });
  const go = h("button", { type: "submit", class: danger ? "danger" : "primary" }, yes);
  const cancel = h("button", { type: "button", onclick: () => dialog.close() }, "Cancel");
  const form = h("form", { class: "sql-form", onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); start(); } },
    h("div", { class: "dialog-body" },
      note !== undefined && h("p", { class: "dialog-note" }, note), ...fields,
      h("h3", {}, "SQL that runs"), h("pre", { class: "statement", role: "group", tabindex: "0", "aria-label": "SQL that runs" }, code), missing, trouble),
    h("footer", {}, cancel, go));
  const dialog = h("dialog", {
    class: wide ? "dialog wide" : "dialog", "aria-label": title,
    oninput: () => update(), onchange: () => update(),
    onclose: () => { controller.abort(); dialog.remove(); },
  },
    h("header", {}, h("h2", {}, title), h("span", { class: "spring" }), h("button", { type: "button", class: "icon-button", "aria-label": "Close", onclick: () => dialog.close() }, icon("close"))),
    form);

  function update() {
    const shown = statements();
    const isWhole = typeof shown !== "string";
    go.disabled = !isWhole;
    missing.textContent = isWhole ? "" : shown;
    paint(code, isWhole ? shown.map((sql) => `${sql};`).join("\n\n") : "");
  }

  async function start() {
    const all = statements();
    if (typeof all === "string") return;
    trouble.replaceChildren();
    go.disabled = true;
    go.textContent = "Running…";
    try {
      const said = await run(all, controller.signal);
      dialog.close();
      done(said);
    } catch (error) {
      if (controller.signal.aborted) return;
      trouble.replaceChildren(...describe(error));
      go.textContent = yes;
      go.disabled = false;
    }
  }

  update();
  document.body.append(dialog);
  dialog.showModal();
  /** @type {HTMLElement | null} */ (dialog.querySelector(".dialog-body input.text:not([readonly])") ?? dialog.querySelector(".dialog-body input"))?.focus();
  return { dialog, update, trouble };
}

/**
 * @param {string[]} all
 * @param {AbortSignal} signal
 */
async function runAll(all, signal) {
  const said = [];
  for (const sql of all) {
    const { command, notices = [] } = await runSql({ sql, parameters: [] }, { maxRows: 1, signal });
    said.push(notices.length > 0 ? notices.join("; ") : command ?? "done");
  }
  return said.join("; ");
}

/** @param {unknown} error */
export function describe(error) {
  if (!(error instanceof ApiError)) return [h("p", { class: "bad" }, String(error))];
  const { code, message, detail, hint } = error.body;
  return [
    h("p", { class: "bad" }, h("span", { class: "badge" }, code), " ", sentence(message)),
    detail && h("p", {}, sentence(detail)), hint && h("p", { class: "muted" }, sentence(hint)),
  ].filter((part) => part instanceof Node);
}

/**
 * A field with its name before it.
 *
 * @param {string} label
 * @param {HTMLElement} input
 */
export function field(label, input) {
  return h("label", { class: "field" }, h("span", {}, label), input);
}
