// Names as SQL writes them.

import { KEYWORDS } from "./highlight.js";

/**
 * Quoted only where it must be.
 *
 * @param {string} name
 */
export function quoted(name) {
  return /^[a-z_][a-z0-9_]*$/.test(name) && !KEYWORDS.has(name.toUpperCase()) && !/^(user|default|check|primary|constraint|end|offset|analyse|both|leading|trailing|only|placing|symmetric|variadic)$/.test(name)
    ? name : `"${name.replaceAll('"', '""')}"`;
}

/**
 * @param {string} namespace
 * @param {string} table
 */
export function qualified(namespace, table) {
  return namespace === "public" ? quoted(table) : `${quoted(namespace)}.${quoted(table)}`;
}

/** @param {string} text */
export function literal(text) {
  return `'${text.replaceAll("'", "''")}'`;
}
