// Making elements. Text always goes in as text nodes: nothing here ever parses HTML.

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * Makes an element: `h("button", { class: "primary", onclick: run }, "Run")`.
 *
 * Properties whose value is a function become listeners (`onclick`), `true` an empty attribute;
 * `false`, `null` and `undefined` are left out; the rest are attributes.
 *
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, unknown>} [props]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  assign(element, props);
  append(element, children);
  return element;
}

/**
 * The same for SVG.
 *
 * @template {keyof SVGElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, unknown>} [props]
 * @param {...Child} children
 * @returns {SVGElementTagNameMap[K]}
 */
export function s(tag, props = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  assign(element, props);
  append(element, children);
  return element;
}

/**
 * @param {Element} element
 * @param {Record<string, unknown>} props
 */
function assign(element, props) {
  for (const [name, value] of Object.entries(props)) {
    if (value === false || value === null || value === undefined) continue;
    if (typeof value === "function" && name.startsWith("on")) {
      element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
}

/**
 * @param {Element} element
 * @param {Child[]} children
 */
function append(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

/**
 * Sets an element's text only if it changed, so that selections and screen readers stay calm.
 *
 * @param {Node} node
 * @param {string} text
 */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * Makes the children of `parent` match `items`, keeping the elements of those that stay: focus,
 * hover and selection survive updates.
 *
 * @template T
 * @param {HTMLElement} parent
 * @param {T[]} items
 * @param {(item: T) => string} key
 * @param {(item: T) => HTMLElement} create
 * @param {(element: HTMLElement, item: T) => void} update
 */
export function reconcile(parent, items, key, create, update) {
  /** @type {Map<string, HTMLElement>} */
  const old = new Map();
  for (const child of parent.children) {
    if (child instanceof HTMLElement) old.set(child.dataset["key"] ?? "", child);
  }
  /** @type {ChildNode | null} */
  let place = parent.firstChild;
  for (const item of items) {
    const name = key(item);
    let element = old.get(name);
    if (element) {
      old.delete(name);
    } else {
      element = create(item);
      element.dataset["key"] = name;
    }
    update(element, item);
    if (place === element) place = element.nextSibling;
    else parent.insertBefore(element, place);
  }
  for (const element of old.values()) element.remove();
}

const ICONS = {
  play: "M5 3.5v9l7.5-4.5z",
  stop: "M4 4h8v8H4z",
  search: "M7 2.5a4.5 4.5 0 1 0 2.8 8l3 3 .9-.9-3-3A4.5 4.5 0 0 0 7 2.5zm0 1.2a3.3 3.3 0 1 1 0 6.6 3.3 3.3 0 0 1 0-6.6z",
  chevron: "M6 4l4 4-4 4",
  close: "M4 4l8 8M12 4l-8 8",
  plus: "M8 3v10M3 8h10",
  refresh: "M13 8a5 5 0 1 1-1.6-3.7M13 2.5v3h-3",
  copy: "M6 6h7v7H6zM10 6V3H3v7h3",
  download: "M8 3v7M5 7.5 8 10.500l3-3M3 13h10",
  upload: "M8 11V3M5 6.200 8 3l3 3.200M3 13h10",
  history: "M3 8a5 5 0 1 0 1.600-3.700M3 2.500v3h3M8 5.500V8l2 1.500",
  format: "M2.500 3.500h11M2.500 6.500h7M2.500 9.500h9M2.500 12.500h5",
  link: "M7 9.500a2.500 2.500 0 0 0 3.500 0l2-2A2.500 2.500 0 0 0 9 4l-.8.800M9 6.500a2.500 2.500 0 0 0-3.500 0l-2 2A2.500 2.500 0 0 0 7 12l.8-.8",
  info: "M8 7.200v4M8 4.800v.1M8 2.500a5.500 5.500 0 1 0 0 11 5.500 5.500 0 0 0 0-11z",
  keyboard: "M2 4.500h12v7H2zM4.500 7v.01M7 7v.01M9.500 7v.01M12 7v.01M5 9.300h6",
  theme: "M8 2.500a5.500 5.500 0 1 0 0 11zM8 2.500a5.500 5.500 0 0 1 0 11",
  table: "M2.500 3.500h11v9h-11zM2.500 6.500h11M6.500 6.500v6",
  pin: "M5.500 2.500h5M6.500 2.500v4.500l-2 2.500h7l-2-2.500v-4.500M8 9.500v4",
  folder: "M2.500 4.500h4l1.200 1.500h5.800v6.500h-11z",
};

/** @typedef {keyof typeof ICONS} IconName */

const FILLED = new Set(["play", "stop", "search"]);

/**
 * A small icon in the colour of the text; says nothing to screen readers.
 *
 * @param {IconName} name
 */
export function icon(name) {
  const path = s("path", { d: ICONS[name] });
  const kind = FILLED.has(name) ? "icon filled" : "icon";
  return s("svg", { class: kind, viewBox: "0 0 16 16", "aria-hidden": "true" }, path);
}

/**
 * A button that shows only an icon.
 *
 * @param {IconName} name
 * @param {string} label
 * @param {(event: MouseEvent) => void} onclick
 */
export function iconButton(name, label, onclick) {
  return h("button", { type: "button", class: "icon-button", "aria-label": label, title: label, onclick }, icon(name));
}
