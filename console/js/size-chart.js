// Sizes side by side, as bars: table partitions in their order, versions in the order in which they came.

import { h, s, setText } from "./dom.js";
import { bytes, count } from "./format.js";

/** @typedef {{ label: string, bytes: number, rows: number | null }} Size */

const [HEIGHT, TOP, BOTTOM] = [96, 6, 16];
const BARS_MAX = 200;

/**
 * @param {string} title what is drawn
 * @param {Size[]} all in the order in which they are drawn
 * @param {"sum" | "last"} together what neighbours come to of which there is no room for each
 */
export function sizeChart(title, all, together) {
  const sizes = joined(all, together);
  const highest = Math.max(...sizes.map((size) => size.bytes), 1);
  const tip = h("p", { class: "muted tabular size-tip", "aria-live": "polite" });
  const step = 100 / Math.max(sizes.length, 1);
  const bars = sizes.map((size, index) => {
    const height = ((HEIGHT - TOP - BOTTOM) * size.bytes) / highest;
    return s("rect", { class: "size-bar", x: `${index * step + step * 0.1}%`, width: `${step * 0.8}%`, y: HEIGHT - BOTTOM - height, height: Math.max(height, size.bytes > 0 ? 1 : 0) });
  });
  const [first, last] = [sizes[0], sizes.at(-1)];
  const svg = s("svg", { class: "size-chart", role: "img", height: HEIGHT, width: "100%", "aria-label": `${title}: ${all.length}, the largest ${bytes(highest)}` },
    ...bars,
    s("text", { x: 0, y: HEIGHT - 3 }, first?.label ?? ""),
    sizes.length > 1 && s("text", { x: "100%", y: HEIGHT - 3, "text-anchor": "end" }, last?.label ?? ""));
  let at = -1;
  const say = (/** @type {number} */ index) => {
    bars[at]?.classList.remove("marked");
    at = index;
    bars[at]?.classList.add("marked");
    const size = sizes[at];
    setText(tip, size ? `${size.label}: ${bytes(size.bytes)}${size.rows === null ? "" : `, ${count(size.rows)} rows`}` : " ");
  };
  say(-1);
  return h("div", {
    class: "size-frame", tabindex: "0", role: "group", "aria-label": `${title}; left and right arrow walk through the bars`,
    onpointermove: (/** @type {PointerEvent} */ event) => {
      const { left, width } = svg.getBoundingClientRect();
      say(Math.min(sizes.length - 1, Math.max(0, Math.floor(((event.clientX - left) / width) * sizes.length))));
    },
    onpointerleave: () => say(-1), onblur: () => say(-1),
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
      const to = { ArrowLeft: Math.max(0, at - 1), ArrowRight: Math.min(sizes.length - 1, at + 1), Home: 0, End: sizes.length - 1 }[event.key];
      if (to === undefined) return;
      say(to);
      event.preventDefault();
    },
  }, svg, tip);
}

/**
 * At most as many as there is room for: neighbours become one.
 *
 * @param {Size[]} all
 * @param {"sum" | "last"} together
 * @returns {Size[]}
 */
function joined(all, together) {
  const each = Math.ceil(all.length / BARS_MAX);
  if (each <= 1) return all;
  return Array.from({ length: Math.ceil(all.length / each) }, (_, place) => {
    const part = all.slice(place * each, (place + 1) * each);
    const [first, last] = [part[0], part.at(-1)];
    const label = `${first?.label} to ${last?.label}`;
    if (together === "last") return { label, bytes: last?.bytes ?? 0, rows: last?.rows ?? null };
    return { label, bytes: part.reduce((sum, size) => sum + size.bytes, 0), rows: part.reduce((sum, size) => sum + (size.rows ?? 0), 0) };
  });
}
