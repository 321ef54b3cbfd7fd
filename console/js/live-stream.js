// The one connection by which a window stays up to date: server-sent events of `/v1/live`, which say what has changed.
//
// In: the topics that the page in view needs. Out: documents as the API gives them, whole, each time one changes. Not
// `EventSource`: that says nothing about why a connection was refused, and a window that nobody sees is to have none.

/** @typedef {import("./api.js").ApiErrorBody} ApiErrorBody */
/** @typedef {{ v?: any, m?: Record<string, any>, d?: string[], l?: any[] }} Change as `/openapi.yaml` describes it */

/** The server sends something at least each five seconds. */
const SILENCE_MS = 15_000;
const AGAIN_MS = 1000;
const AGAIN_MS_MAX = 5000;

export class LiveStream {
  /** @type {AbortController | null} */
  #open = null;
  /** @type {Map<string, any>} */
  #documents = new Map();
  #address = "";
  #timer = 0;
  #failures = 0;

  /**
   * @param {{ address: () => string, changed: (topic: string, document: any) => void, begun: () => void, lost: () => void }} owner
   *   `address`: path and topics, as they are wanted now; `begun`: a connection was made; `lost`: one was tried in vain
   */
  constructor(owner) {
    this.owner = owner;
    document.addEventListener("visibilitychange", () => (document.visibilityState === "visible" ? this.begin() : this.end()));
    addEventListener("pagehide", () => this.end());
    addEventListener("pageshow", (event) => event.persisted && this.begin());
  }

  /** Connects, or connects anew as other topics are wanted now; once, however often it is called in a row. */
  begin() {
    if (document.visibilityState !== "visible") return;
    this.end();
    this.#timer = setTimeout(() => this.#connect());
  }

  #connect() {
    this.#address = this.owner.address();
    this.#documents.clear();
    const controller = new AbortController();
    this.#open = controller;
    this.#read(controller).then((isLost) => {
      if (this.#open !== controller) return;
      this.#open = null;
      if (isLost) this.owner.lost();
      this.#timer = setTimeout(() => this.begin(), Math.min(AGAIN_MS * Math.max(this.#failures, 1), AGAIN_MS_MAX));
    });
  }

  /** Closes the connection; what was received stays shown. */
  end() {
    clearTimeout(this.#timer);
    this.#open?.abort();
    this.#open = null;
  }

  /**
   * Reads until the connection ends.
   *
   * @param {AbortController} controller
   * @returns {Promise<boolean>} whether there was none, or it broke
   */
  async #read(controller) {
    let silence = 0;
    const heard = () => {
      clearTimeout(silence);
      silence = setTimeout(() => controller.abort(), SILENCE_MS);
    };
    try {
      heard();
      const response = await fetch(this.#address, { headers: { accept: "text/event-stream" }, signal: controller.signal, cache: "no-store" });
      if (!response.ok || !response.body) throw new Error(`the server answered ${response.status}`);
      this.#failures = 0;
      if (this.#open === controller) this.owner.begun();
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let text = ""; ;) {
        const { done, value } = await reader.read();
        // A server that goes says so; whether there is another one shows when it is asked.
        if (done) return false;
        heard();
        const events = (text + value).split("\n\n");
        text = events.pop() ?? "";
        for (const event of events) if (this.#open === controller) this.#take(event);
      }
    } catch (error) {
      // Whatever broke the connection; errors of the page itself are not hidden.
      if (error instanceof TypeError || error instanceof DOMException || !(error instanceof Error) || error.message.startsWith("the server answered")) {
        this.#failures += 1;
        return true;
      }
      throw error;
    } finally {
      clearTimeout(silence);
    }
  }

  /** @param {string} event */
  #take(event) {
    const field = (/** @type {string} */ name) => event.split("\n").find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
    const [topic, data] = [field("event"), field("data")];
    if (topic === undefined || data === undefined || topic === "end") return;
    const document = applied(this.#documents.get(topic), JSON.parse(data));
    this.#documents.set(topic, document);
    this.owner.changed(topic, document);
  }
}

/**
 * A document after a change.
 *
 * @param {any} old
 * @param {Change} change
 * @returns {any}
 */
export function applied(old, change) {
  if ("v" in change) return change.v;
  if (change.l) return change.l.flatMap((part) => (Array.isArray(part) ? old.slice(part[0], part[0] + part[1]) : "i" in part ? [applied(old[part.i], part.c)] : [part.v]));
  const members = Object.entries(change.m ?? {}).map(([name, of]) => [name, applied(old[name], of)]);
  const document = { ...old, ...Object.fromEntries(members) };
  for (const name of change.d ?? []) delete document[name];
  return document;
}
