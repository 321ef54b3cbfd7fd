// The fields for $1, $2, … below the editor, as many as the text has.

import { h, reconcile } from "./dom.js";
import { tokenize } from "./highlight.js";

const PARAMETERS_MAX = 100;

/**
 * How many parameters a text has: the largest number after a `$`, outside strings and comments.
 *
 * @param {string} sql
 */
export function countOf(sql) {
  const code = tokenize(sql).map(({ kind, text }) => (kind === "plain" || kind === "number" ? text : " ")).join("");
  const numbers = [...code.matchAll(/\$(\d+)/g)].map((match) => Number(match[1]));
  return Math.min(Math.max(0, ...numbers), PARAMETERS_MAX);
}

export class Parameters {
  /** @type {(string | null)[]} */
  #values = [];

  /** @param {{ changed: (values: (string | null)[]) => void, run: () => void }} actions */
  constructor(actions) {
    this.actions = actions;
    this.element = h("div", { class: "parameters", role: "group", "aria-label": "Parameters", hidden: true });
  }

  /**
   * @param {string} sql
   * @param {(string | null)[]} values kept from before; what is missing is NULL
   */
  show(sql, values) {
    const count = countOf(sql);
    this.#values = values;
    this.element.hidden = count === 0;
    const numbers = Array.from({ length: count }, (_, index) => index);
    reconcile(this.element, numbers, String, (index) => this.#field(index), (element, index) => {
      const box = /** @type {HTMLInputElement} */ (element.querySelector("input"));
      const value = values[index] ?? "";
      if (box.value !== value) box.value = value;
    });
  }

  /**
   * The values for a part of the text, or all of it.
   *
   * @param {string} sql
   */
  of(sql) {
    return Array.from({ length: countOf(sql) }, (_, index) => this.#values[index] ?? null);
  }

  /** @param {number} index */
  #field(index) {
    const box = h("input", {
      class: "parameter", placeholder: "NULL", "aria-label": `Parameter $${index + 1}`, title: "Numbers, dates and texts as they are, without quotes; nothing is NULL",
      spellcheck: "false", autocomplete: "off",
      oninput: () => this.#set(index, box.value),
      onkeydown: (/** @type {KeyboardEvent} */ event) => {
        if (event.key !== "Enter") return;
        event.preventDefault();
        this.actions.run();
      },
    });
    return h("label", {}, h("code", {}, `$${index + 1}`), box);
  }

  /**
   * @param {number} index
   * @param {string} text
   */
  #set(index, text) {
    const values = [...this.#values];
    while (values.length <= index) values.push(null);
    values[index] = text === "" ? null : text;
    this.#values = values;
    this.actions.changed(values);
  }
}
