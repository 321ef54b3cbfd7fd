// One session of the server per tab and window, opened when the tab first runs something: what `SET` changes,
// temporary tables and transactions last from statement to statement, and end with the tab.

import { endSession, openSession } from "./api.js";
import { load, save } from "./storage.js";

/** How long sessions wait for a window that is reloaded, seconds. */
const GRACE_S = 60;

export class TabSessions {
  /** @type {Map<string, Promise<string>>} */
  #all = new Map();

  constructor() {
    const kept = load("sessions", /** @type {Record<string, string>} */ ({}), windowStorage());
    for (const [tab, session] of Object.entries(kept)) this.#all.set(tab, Promise.resolve(session));
    addEventListener("pagehide", (event) => {
      // A page that the browser keeps may come back.
      if (!event.persisted) for (const session of this.#all.values()) session.then((id) => endSession(id, GRACE_S)).catch(() => {});
    });
  }

  /**
   * The session of a tab.
   *
   * @param {string} tab
   */
  of(tab) {
    const known = this.#all.get(tab);
    if (known) return known;
    const opened = openSession();
    this.#all.set(tab, opened);
    opened.then(() => this.#keep(), () => this.forget(tab));
    return opened;
  }

  /**
   * The server knows it no more.
   *
   * @param {string} tab
   */
  forget(tab) {
    this.#all.delete(tab);
    this.#keep();
  }

  /** @param {string} tab that was closed */
  end(tab) {
    this.#all.get(tab)?.then((session) => endSession(session, 0)).catch(() => {});
    this.forget(tab);
  }

  async #keep() {
    const all = await Promise.all([...this.#all].map(async ([tab, session]) => [tab, await session.catch(() => "")]));
    save("sessions", Object.fromEntries(all.filter(([, session]) => session !== "")), windowStorage());
  }
}

function windowStorage() {
  try {
    return sessionStorage;
  } catch {
    return null;
  }
}
