// The daemons of a cluster on Home, one line each.

import { h, reconcile, setText } from "./dom.js";
import { duration, shortDuration } from "./format.js";

/** @typedef {import("./api.js").Daemon} Daemon */

/**
 * @param {HTMLElement} list
 * @param {Daemon[]} daemons
 * @param {number} now_unix_ms
 */
export function showDaemons(list, daemons, now_unix_ms) {
  const order = [...daemons].sort((a, b) => a.host.localeCompare(b.host) || a.daemon.localeCompare(b.daemon));
  reconcile(list, order, ({ daemon }) => daemon, () => h("li", {}, h("a", { class: "name" }), h("span", { class: "state" }), h("span", { class: "what muted" })),
    (line, daemon) => showDaemon(line, daemon, now_unix_ms));
}

/**
 * @param {HTMLElement} line
 * @param {Daemon} daemon
 * @param {number} now_unix_ms
 */
function showDaemon(line, daemon, now_unix_ms) {
  const [name, state, what] = /** @type {HTMLElement[]} */ ([...line.children]);
  if (!name || !state || !what) return;
  setText(name, `${daemon.host} ${daemon.daemon.slice(0, 8)}${daemon.is_this ? " (this one)" : ""}`);
  // Its own console; a dead one has none.
  if (daemon.is_this || daemon.state === "dead") name.removeAttribute("href");
  else name.setAttribute("href", `${location.protocol}//${daemon.http_address}/`);
  const bad = daemon.state === "dead" || !daemon.is_reached;
  setText(state, daemon.state === "dead" || daemon.is_reached ? daemon.state : `${daemon.state}, not reached`);
  state.classList.toggle("bad", bad);
  const since = daemon.state_since_unix_ms === null ? "" : `since ${duration(Math.max(0, now_unix_ms - daemon.state_since_unix_ms))} · `;
  const answers = daemon.is_this ? "" : ` · answers in ${shortDuration(daemon.round_trip_us / 1000)}`;
  setText(what, `${since}${daemon.pg_address}${daemon.zone ? ` · ${daemon.zone}` : ""} · ${daemon.build}${answers}`);
}
