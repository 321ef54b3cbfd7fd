// "Show SQL": the statement that gives the numbers on the page, and a way into the editor with it.

import { h } from "./dom.js";
import { paint } from "./highlight.js";

/** @typedef {{ openSql: (sql: string, title: string) => void, notify: (text: string) => void }} SqlActions */

/**
 * A button, and the panel that it opens.
 *
 * @param {string} title of the tab that the statement opens in
 * @param {() => string} statement asked for when the panel opens
 * @param {SqlActions} actions
 */
export function showSql(title, statement, actions) {
  const code = h("code", {});
  const panel = h("div", { class: "sql-panel", hidden: true },
    h("pre", { tabindex: "0", "aria-label": `SQL of ${title}` }, code),
    h("div", { class: "sql-panel-actions" },
      h("button", { type: "button", onclick: () => actions.openSql(statement(), title) }, "Open in SQL editor"),
      h("button", { type: "button", class: "quiet", onclick: () => copy(statement(), actions) }, "Copy")));
  const button = h("button", {
    type: "button", class: "quiet show-sql", "aria-expanded": "false", title: `The SQL that gives these numbers: ${title}`,
    onclick: () => toggle(),
  }, "Show SQL");
  const update = () => paint(code, statement());
  const toggle = () => {
    panel.hidden = !panel.hidden;
    button.textContent = panel.hidden ? "Show SQL" : "Hide SQL";
    button.setAttribute("aria-expanded", String(!panel.hidden));
    update();
  };
  return { button, panel, update };
}

/**
 * @param {string} text
 * @param {SqlActions} actions
 */
async function copy(text, actions) {
  try {
    await navigator.clipboard.writeText(text);
    actions.notify("Statement copied");
  } catch {
    actions.notify("The browser did not allow copying");
  }
}
