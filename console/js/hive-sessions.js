// Sessions of HiveServer2's clients and what they run, as `/api/v1/sessions` and `/api/v1/queries/active` tell of them.

import { h, setText } from "./dom.js";
import { count, duration, oneLine, plural } from "./format.js";
import { paint } from "./highlight.js";
import { Listing } from "./listing.js";

/** @typedef {import("./api.js").HiveSession} HiveSession */
/** @typedef {import("./api.js").HiveOperation} HiveOperation */
/** @typedef {HiveSession & { operation: string, sql: string }} Entry the newest operation; `""` for none */

export class HiveSessions {
  /** @param {(query: string) => void} open shows a query by its id */
  constructor(open) {
    this.counts = h("span", { class: "muted tabular" });
    this.listing = new Listing({
      label: "HiveServer2 sessions", key: (/** @type {Entry} */ session) => session.sessionId, empty: "None.",
      open: (session) => session.operation !== "" && open(session.operation), columns: columns(),
    });
    this.element = h("section", { "aria-label": "HiveServer2 sessions", hidden: true },
      h("h2", {}, "HiveServer2 sessions", this.counts), this.listing.element);
  }

  /**
   * Shows them; nothing is there while no such client is connected.
   *
   * @param {HiveSession[]} sessions
   * @param {HiveOperation[]} operations
   */
  show(sessions, operations) {
    const newest = new Map(operations.map((operation) => [operation.sessionId, operation]));
    this.element.hidden = sessions.length === 0;
    setText(this.counts, `${plural(sessions.length, "session")} · ${plural(sessions.reduce((sum, one) => sum + one.operationCount, 0), "operation")}`);
    this.listing.show(sessions.map((session) => {
      const running = newest.get(session.sessionId);
      return { ...session, operation: running?.operationId ?? "", sql: running?.queryDisplay.queryString ?? "" };
    }));
  }
}

/** @returns {import("./listing.js").Column<Entry>[]} */
function columns() {
  const seconds = (/** @type {number} */ value) => (value === 0 ? "–" : duration(1000 * value));
  return [
    { name: "session", label: "Session", numeric: true, value: ({ sessionId }) => Number(sessionId), text: ({ sessionId }) => sessionId },
    { name: "user", label: "User", value: ({ username }) => username },
    { name: "open", label: "Open for", numeric: true, value: ({ activeTime }) => activeTime, text: ({ activeTime }) => seconds(activeTime) },
    { name: "idle", label: "Idle", title: "Time since its latest statement began", numeric: true, value: ({ idleTime }) => idleTime, text: ({ idleTime }) => seconds(idleTime) },
    { spare: true, name: "operations", label: "Operations", title: "Statements that run", numeric: true, value: ({ operationCount }) => operationCount, text: ({ operationCount }) => count(operationCount) },
    { name: "sql", label: "Statement", wide: true, value: ({ sql }) => sql, paint: paintNow },
  ];
}

/**
 * @param {HTMLElement} cell
 * @param {Entry} row
 */
function paintNow(cell, row) {
  if (cell.dataset["sql"] === row.sql) return;
  cell.dataset["sql"] = row.sql;
  const code = h("code", {});
  paint(code, oneLine(row.sql).slice(0, 300));
  cell.replaceChildren(code);
}
