// The pages of the console, their names in the address and the links between them.
//
// The address says which page is shown, and what on it (`#/tables/public/visits`), so links, reload and
// the back button work.

import { h } from "./dom.js";

/**
 * A page; `shown` gets the parts of the address after its name.
 *
 * @typedef {{ name: string, title: string, key: string, element: HTMLElement, shown: (place: string[]) => void }} Page
 */

export class Pages {
  #place = "";

  /** @param {Page[]} all the first one is shown where the address names none */
  constructor(all) {
    this.all = all;
    this.links = all.map((page) => h("a", { href: `#/${page.name}`, title: `${page.title} (g, then ${page.key})` }, page.title));
    this.nav = h("nav", { class: "pages-nav", "aria-label": "Pages" }, ...this.links);
    this.active = all[0];
    this.unknown = h("main", { class: "page unknown", "aria-label": "Unknown address", hidden: true });
    addEventListener("hashchange", () => this.#follow());
  }

  /**
   * Whether a page is among the links, and has a key.
   *
   * @param {string} name
   * @param {boolean} is
   */
  offer(name, is) {
    const link = this.links[this.all.findIndex((page) => page.name === name)];
    if (link) link.hidden = !is;
  }

  /** Shows the page of the address. */
  start() {
    this.#follow();
  }

  /**
   * @param {string} name
   * @param {...string} place what on the page
   */
  go(name, ...place) {
    location.hash = `#/${[name, ...place].map(encodeURIComponent).join("/")}`;
    this.#show(name, place);
  }

  /**
   * Goes to the page of a key.
   *
   * @param {string} key
   * @returns {boolean} whether there is one
   */
  goByKey(key) {
    const page = this.all.find((candidate, index) => candidate.key === key && !this.links[index]?.hidden);
    if (page) this.go(page.name);
    return page !== undefined;
  }

  #follow() {
    const [name = "", ...place] = location.hash.replace(/^#\//, "").split("/").map(decoded);
    if (this.all.some((page) => page.name === name)) this.#show(name, place);
    else if (name === "" && location.pathname === "/") this.#show(this.active?.name ?? "", []);
    else this.#showUnknown();
  }

  #showUnknown() {
    const address = location.pathname === "/" ? location.hash : location.pathname;
    this.#hide();
    this.#place = "";
    this.unknown.replaceChildren(h("h2", {}, "There is no such page"),
      h("p", {}, "The console has nothing at ", h("code", {}, address), "."),
      h("ul", {}, ...this.all.flatMap((page, index) => (this.links[index]?.hidden ? [] : [h("li", {}, h("a", { href: `/#/${page.name}` }, page.title))]))));
    this.unknown.hidden = false;
    document.title = "No such page · Stoa";
  }

  #hide() {
    this.unknown.hidden = true;
    for (const [index, page] of this.all.entries()) {
      page.element.hidden = true;
      this.links[index]?.removeAttribute("aria-current");
    }
  }

  /**
   * What the window is called.
   *
   * @param {string} [what] on the page
   */
  title(what = "") {
    const page = this.active?.title ?? "";
    document.title = `${what === "" ? "" : `${what} · `}${page} · Stoa`;
  }

  /**
   * @param {string} name
   * @param {string[]} place
   */
  #show(name, place) {
    const text = place.join("/");
    if (this.active?.name === name && !this.active.element.hidden && this.#place === text) return;
    this.#place = text;
    this.#hide();
    const index = this.all.findIndex((page) => page.name === name);
    const page = this.all[index];
    if (!page) return;
    page.element.hidden = false;
    this.links[index]?.setAttribute("aria-current", "page");
    this.active = page;
    this.title(place.join("."));
    page.shown(place);
  }
}

/** @param {string} part */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
