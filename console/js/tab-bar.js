// The row of query tabs: choose, rename, close, by pointer and keyboard.

import { h, icon, iconButton, reconcile } from "./dom.js";

/** @typedef {import("./tabs.js").Tabs} Tabs */

export class TabBar {
  /**
   * @param {Tabs} tabs
   * @param {{ open: () => void, close: (id: string) => void }} actions
   */
  constructor(tabs, actions) {
    this.tabs = tabs;
    this.actions = actions;
    this.list = h("div", { class: "tab-list", role: "tablist", "aria-label": "Query tabs" });
    this.element = h("div", { class: "tabs" }, this.list, iconButton("plus", "New tab", actions.open));
  }

  show() {
    const { all, active } = this.tabs;
    reconcile(this.list, all, (tab) => tab.id, (tab) => this.#make(tab.id), (element, tab) => {
      const button = /** @type {HTMLButtonElement} */ (element.firstElementChild);
      if (button.textContent !== tab.title) button.textContent = tab.title;
      button.setAttribute("aria-selected", String(tab === active));
      button.tabIndex = tab === active ? 0 : -1;
      element.classList.toggle("active", tab === active);
    });
  }

  /** @param {string} id */
  #make(id) {
    const button = h("button", {
      type: "button", role: "tab", title: "Double-click to rename",
      onclick: () => this.tabs.select(id),
      ondblclick: () => this.#rename(id),
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.#key(event, id),
    });
    // By keyboard: Delete, on the tab.
    const close = h("span", { class: "tab-close", "aria-hidden": "true", title: "Close (Delete)", onclick: () => this.actions.close(id) }, icon("close"));
    return h("div", { class: "tab", role: "presentation" }, button, close);
  }

  /**
   * @param {KeyboardEvent} event
   * @param {string} id
   */
  #key(event, id) {
    const index = this.tabs.all.findIndex((tab) => tab.id === id);
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step !== 0) {
      const next = this.tabs.all[index + step];
      if (next) this.tabs.select(next.id);
      /** @type {HTMLElement | null} */ (this.list.querySelector("[aria-selected=true]"))?.focus();
    } else if (event.key === "Delete") {
      this.actions.close(id);
    } else if (event.key === "F2") {
      this.#rename(id);
    } else {
      return;
    }
    event.preventDefault();
  }

  /**
   * Puts a box over the tab's name.
   *
   * @param {string} id
   */
  #rename(id) {
    const tab = this.tabs.all.find((candidate) => candidate.id === id);
    const element = [...this.list.children].find((child) => child instanceof HTMLElement && child.dataset["key"] === id);
    const button = element?.firstElementChild;
    if (!tab || !(button instanceof HTMLElement) || !element || element.querySelector("input")) return;
    const end = (/** @type {boolean} */ keep) => {
      if (!box.isConnected) return;
      const title = box.value;
      box.remove();
      button.hidden = false;
      if (keep) this.tabs.rename(id, title);
    };
    const box = h("input", {
      class: "tab-name", value: tab.title, "aria-label": "Name of this tab",
      onblur: () => end(true),
      onkeydown: (/** @type {KeyboardEvent} */ event) => {
        event.stopPropagation();
        if (event.key === "Enter") end(true);
        if (event.key === "Escape") end(false);
      },
    });
    button.hidden = true;
    element.append(box);
    box.select();
  }
}
