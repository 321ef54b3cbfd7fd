// The pages of the console, their names in the address and the links between them.
//
// The address says which page is shown (`#/queries`), so links, reload and the back button work.

import { h } from "./dom.js";

/**
 * @typedef {{ name: string, title: string, key: string, element: HTMLElement, shown: () => void }} Page
 */

export class Pages {
  /** @param {Page[]} all the first one is shown where the address names none */
  constructor(all) {
    this.all = all;
    this.links = all.map((page) => h("a", { href: `#/${page.name}`, title: `${page.title} (g, then ${page.key})` }, page.title));
    this.nav = h("nav", { class: "pages-nav", "aria-label": "Pages" }, ...this.links);
    this.active = all[0];
    addEventListener("hashchange", () => this.#follow());
  }

  /** Shows the page of the address. */
  start() {
    this.#follow();
  }

  /** @param {string} name */
  go(name) {
    location.hash = `#/${name}`;
    this.#show(name);
  }

  /**
   * Goes to the page of a key.
   *
   * @param {string} key
   * @returns {boolean} whether there is one
   */
  goByKey(key) {
    const page = this.all.find((candidate) => candidate.key === key);
    if (page) this.go(page.name);
    return page !== undefined;
  }

  #follow() {
    const name = location.hash.replace(/^#\//, "");
    this.#show(this.all.some((page) => page.name === name) ? name : (this.active?.name ?? ""));
  }

  /** @param {string} name */
  #show(name) {
    if (this.active?.name === name && !this.active.element.hidden) return;
    for (const [index, page] of this.all.entries()) {
      const here = page.name === name;
      page.element.hidden = !here;
      if (here) this.links[index]?.setAttribute("aria-current", "page");
      else this.links[index]?.removeAttribute("aria-current");
      if (here) this.active = page;
    }
    this.active?.shown();
  }
}
