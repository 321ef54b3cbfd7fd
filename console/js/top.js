// The top line: where we are connected, how it is, theme and help.

import { h, icon, iconButton, s, setText } from "./dom.js";
import { bytes, duration, timeOfDay } from "./format.js";

/** @typedef {import("./api.js").Status} Status */

export class Top {
  constructor() {
    this.dot = h("span", { class: "dot", "aria-hidden": "true" });
    this.state = h("span", { id: "state", role: "status" }, "connecting");
    this.place = h("span", { class: "place", title: "Warehouse" });
    this.version = h("span", { class: "muted tabular" });
    this.uptime = h("span", { class: "muted tabular", title: "Since start" });
    this.memory = h("span", { class: "muted tabular", title: "Resident memory of the server" });
    this.role = h("span", { class: "role", hidden: true });
  }

  /** @param {HTMLElement} nav */
  parts(nav) {
    return [
      logo(), h("h1", {}, "Stoa"), nav, this.place, h("span", { class: "spring" }),
      h("span", { class: "state-box" }, this.dot, this.state), this.role, this.version, this.uptime, this.memory,
      iconButton("keyboard", "Keys", openHelp), iconButton("theme", "Light, dark, or as the system", changeTheme),
    ];
  }

  /** @param {Status} status */
  show(status) {
    this.dot.className = status.ready ? "dot ok" : "dot bad";
    setText(this.state, status.ready ? "ready" : "not ready");
    this.state.title = status.not_ready ?? "";
    setText(this.place, status.warehouse.replace(/^file:\/\//, "").replace(/(.)\/$/, "$1"));
    setText(this.version, `v${status.version}`);
    setText(this.uptime, `up ${duration(Math.floor(status.uptime_ms / 1000) * 1000).replace(".00", "")}`);
    setText(this.memory, status.resident_bytes === null ? "" : bytes(status.resident_bytes));
  }

  /**
   * The server does not answer: what the page shows is as old as its last answer.
   *
   * @param {number | null} lastAnswer ms since 1970
   */
  showLost(lastAnswer) {
    this.dot.className = "dot bad";
    setText(this.state, lastAnswer === null ? "no connection" : `no connection · last answer ${timeOfDay(lastAnswer)}`);
    this.state.title = "The server does not answer. See whether it still runs; the console goes on by itself.";
  }

  /**
   * Who asks, where the server asks for passwords.
   *
   * @param {import("./api.js").Me} me
   */
  showRole({ role, superuser, signs_in }) {
    this.role.hidden = !signs_in;
    const what = superuser ? "A superuser: may see and do everything" : "Sees tables that the role may read, and the role's own statements; figures of the server are for superusers";
    this.role.replaceChildren(
      h("span", { title: what }, h("b", {}, role), superuser ? " · superuser" : ""),
      h("a", { href: `/v1/sign-out?role=${encodeURIComponent(role)}`, title: "The browser forgets the password" }, "Sign out"));
  }
}

function logo() {
  return s("svg", { class: "logo", viewBox: "0 0 24 24", "aria-hidden": "true" },
    s("path", { d: "M3 9 12 3.500 21 9v1.600H3z" }),
    s("path", { d: "M5 12.300h2.400v5.400H5zM10.800 12.300h2.400v5.400h-2.400zM16.600 12.300H19v5.400h-2.400zM3 19.200h18v1.600H3z" }));
}

function changeTheme() {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const order = dark ? ["", "light", "dark"] : ["", "dark", "light"];
  const next = order[(order.indexOf(root.dataset["theme"] ?? "") + 1) % order.length] ?? "";
  if (next === "") delete root.dataset["theme"];
  else root.dataset["theme"] = next;
  try {
    localStorage.setItem("stoa.theme", next);
  } catch {
    // Not remembered.
  }
}

const KEYS = /** @type {const} */ ([
  ["g, then h s t q p c", "Go to Home, SQL, Tables, Queries, Shapes, Cluster"],
  ["Ctrl Enter", "Run the statement at the caret, or what is selected"],
  ["Ctrl Alt Enter", "Run all statements of the tab"],
  ["Ctrl Shift Enter", "Run the statement with EXPLAIN ANALYZE"],
  ["Alt Shift F", "Format the text, or what is selected"],
  ["Ctrl F", "Find and replace in the text"],
  ["Ctrl Space", "Complete the word; Tab takes what is marked, arrows choose, Esc closes"],
  ["Esc", "Cancel the query that runs here"],
  ["Esc, then Tab", "Leave the editor by keyboard"],
  ["Alt ↑  Alt ↓", "Step through history, and back to your text"],
  ["Ctrl /", "Comment lines in or out"],
  ["/", "Filter tables"],
  ["F6", "Walk through tables, editor and rows"],
  ["← → ↑ ↓", "Walk through tables or cells; Shift selects cells, Ctrl C copies them"],
  ["s  p  Alt ←  Alt →", "On a cell: sort the rows by its column, pin the column (it stays in view), make it narrower or wider"],
  ["↑ ↓  Enter  Esc", "In lists: walk, open, close"],
  ["Enter", "On a table: its first rows; on a column: insert its name"],
]);

export function openHelp() {
  const dialog = h("dialog", { class: "dialog", "aria-label": "Keys", onclose: () => dialog.remove() },
    h("header", {}, h("h2", {}, "Keys"), h("span", { class: "spring" }), h("button", { type: "button", class: "icon-button", "aria-label": "Close", onclick: () => dialog.close() }, icon("close"))),
    h("dl", { class: "keys" }, ...KEYS.flatMap(([keys, what]) => [h("dt", {}, h("kbd", {}, keys)), h("dd", {}, what)])));
  document.body.append(dialog);
  dialog.showModal();
}
