// What this browser remembers. Storage may be full or switched off: then nothing is remembered.

const PREFIX = "stoa.";

/** @returns {Storage | null} */
function ofBrowser() {
  try {
    return localStorage;
  } catch {
    return null;
  }
}

/**
 * @template T
 * @param {string} name
 * @param {T} otherwise
 * @param {Storage | null} [storage]
 * @returns {T}
 */
export function load(name, otherwise, storage = ofBrowser()) {
  try {
    const text = storage?.getItem(PREFIX + name) ?? null;
    return text === null ? otherwise : JSON.parse(text);
  } catch {
    return otherwise;
  }
}

/**
 * @param {string} name
 * @param {unknown} value
 * @param {Storage | null} [storage]
 * @returns {boolean} whether it is remembered
 */
export function save(name, value, storage = ofBrowser()) {
  try {
    storage?.setItem(PREFIX + name, JSON.stringify(value));
    return storage !== null;
  } catch {
    return false;
  }
}

/** @param {string} name */
export function remove(name) {
  ofBrowser()?.removeItem(PREFIX + name);
}

/**
 * The names of what is remembered that begin so.
 *
 * @param {string} start
 */
export function storedNames(start) {
  const storage = ofBrowser();
  const all = Array.from({ length: storage?.length ?? 0 }, (_, index) => storage?.key(index) ?? "");
  return all.filter((name) => name.startsWith(PREFIX + start)).map((name) => name.slice(PREFIX.length));
}
