// What this browser remembers. Storage may be full or switched off: then nothing is remembered.

/**
 * @template T
 * @param {string} name
 * @param {T} otherwise
 * @returns {T}
 */
export function load(name, otherwise) {
  try {
    const text = localStorage.getItem(`stoa.${name}`);
    return text === null ? otherwise : JSON.parse(text);
  } catch {
    return otherwise;
  }
}

/**
 * @param {string} name
 * @param {unknown} value
 */
export function save(name, value) {
  try {
    localStorage.setItem(`stoa.${name}`, JSON.stringify(value));
  } catch {
    // Not remembered.
  }
}
