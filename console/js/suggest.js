// The box with proposals below the cursor of the editor. It never takes the focus: the editor passes keys on.

import { complete } from "./completion.js";
import { h } from "./dom.js";

/** @typedef {import("./completion.js").Completion} Completion */
/** @typedef {import("./completion.js").Proposal} Proposal */

/** So many characters of a word call for proposals by themselves. */
const WORD_MIN = 2;

export class Suggest {
  /** @type {Completion | null} */
  #shown = null;
  #index = 0;
  /** Whether Enter takes a proposal: after Ctrl+Space or an arrow key. */
  #chosen = false;

  /**
   * @param {HTMLTextAreaElement} area
   * @param {HTMLElement} paper the same text as the area's, in elements whose place can be measured
   * @param {{ names: import("./names.js").Names, insert: (start: number, end: number, text: string) => void }} actions
   */
  constructor(area, paper, actions) {
    this.area = area;
    this.paper = paper;
    this.actions = actions;
    this.list = h("ul", { class: "suggest", id: "suggest", role: "listbox", "aria-label": "Completions", hidden: true });
    this.list.addEventListener("pointerdown", (event) => this.#clicked(event));
    for (const [name, value] of [["aria-autocomplete", "list"], ["aria-controls", "suggest"], ["aria-expanded", "false"]]) area.setAttribute(name ?? "", value ?? "");
    area.addEventListener("blur", () => this.close());
  }

  get isOpen() {
    return this.#shown !== null;
  }

  /**
   * Looks whether what was just typed calls for proposals.
   *
   * @param {Event} event of the area's input
   */
  typed(event) {
    const { inputType = "", data = "" } = /** @type {InputEvent} */ (event);
    const word = /[\w"]*$/.exec(this.area.value.slice(0, this.area.selectionStart))?.[0] ?? "";
    const typing = inputType === "insertText" && /[\w."]$/.test(data ?? "");
    const goesOn = inputType.startsWith("delete") && this.isOpen;
    if ((typing && (word.length >= WORD_MIN || data === ".")) || (goesOn && word !== "")) this.open(false);
    else this.close();
  }

  /** @param {boolean} chosen whether Enter takes the first one */
  async open(chosen) {
    await this.actions.names.ready();
    if (document.activeElement !== this.area) return;
    const { selectionStart, selectionEnd, value } = this.area;
    this.#shown = selectionStart === selectionEnd ? complete(value, selectionStart, this.actions.names.tables) : null;
    this.#index = 0;
    this.#chosen = chosen;
    this.#draw();
  }

  close() {
    if (!this.isOpen) return;
    this.#shown = null;
    this.#draw();
  }

  /**
   * @param {KeyboardEvent} event
   * @returns {boolean} whether it was for the box
   */
  key(event) {
    if (event.key === " " && event.ctrlKey) {
      this.open(true);
      return true;
    }
    if (!this.#shown || event.ctrlKey || event.metaKey || event.altKey) return false;
    const last = this.#shown.all.length - 1;
    if (event.key === "ArrowDown") this.#move(this.#index === last ? 0 : this.#index + 1);
    else if (event.key === "ArrowUp") this.#move(this.#index === 0 ? last : this.#index - 1);
    else if (event.key === "Tab" && !event.shiftKey) this.#take(this.#index);
    else if (event.key === "Enter" && this.#chosen) this.#take(this.#index);
    else if (event.key === "Escape") this.close();
    else {
      if (["Enter", "ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key)) this.close();
      return false;
    }
    return true;
  }

  /** @param {number} index */
  #move(index) {
    this.#index = index;
    this.#chosen = true;
    this.#draw();
  }

  /** @param {number} index */
  #take(index) {
    const shown = this.#shown;
    const proposal = shown?.all[index];
    this.close();
    if (shown && proposal) this.actions.insert(shown.start, shown.end, proposal.text);
  }

  /** @param {PointerEvent} event */
  #clicked(event) {
    // The area keeps the focus.
    event.preventDefault();
    const item = /** @type {Element} */ (event.target).closest("li");
    if (item) this.#take([...this.list.children].indexOf(item));
  }

  #draw() {
    const shown = this.#shown;
    this.list.hidden = shown === null;
    this.area.setAttribute("aria-expanded", String(shown !== null));
    if (!shown) {
      this.area.removeAttribute("aria-activedescendant");
      return this.list.replaceChildren();
    }
    this.list.replaceChildren(...shown.all.map((proposal, index) => h("li", { role: "option", id: `suggest-${index}`, class: proposal.kind, "aria-selected": String(index === this.#index) },
      h("code", {}, proposal.text), h("span", { class: "muted" }, proposal.from === "" ? proposal.kind : `${proposal.kind} of ${proposal.from}`))));
    this.area.setAttribute("aria-activedescendant", `suggest-${this.#index}`);
    this.#place(shown.start);
    this.list.children[this.#index]?.scrollIntoView({ block: "nearest" });
  }

  /**
   * Below the word, or above it where there is more room.
   *
   * @param {number} start
   */
  #place(start) {
    const word = placeOf(this.paper, start);
    const { offsetHeight: height, offsetWidth: width } = this.list;
    const below = word.bottom + height <= innerHeight || word.top < height;
    this.list.style.top = `${below ? word.bottom : word.top - height}px`;
    this.list.style.left = `${Math.max(0, Math.min(word.left, innerWidth - width - 8))}px`;
  }
}

/**
 * Where a character of an element's text is in the window.
 *
 * @param {HTMLElement} element
 * @param {number} index
 */
function placeOf(element, index) {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  let left = index;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const text = /** @type {Text} */ (node);
    if (left < text.length) {
      const range = document.createRange();
      range.setStart(text, left);
      range.setEnd(text, left + 1);
      return range.getBoundingClientRect();
    }
    left -= text.length;
  }
  return element.getBoundingClientRect();
}
