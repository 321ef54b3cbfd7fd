// Which statements are of a shape: the shape's text is the statement's, with places instead of literals.

const PLACE = /\$L\d+([insdt])/g;
const TEXT = "'(?:[^']|'')*'";

/** What a literal of each kind looks like. @type {Record<string, string>} */
const LITERALS = {
  i: "[0-9]+",
  n: "[0-9]+\\.[0-9]*",
  s: TEXT,
  d: `[Dd][Aa][Tt][Ee]\\s*${TEXT}`,
  t: `[Tt][Ii][Mm][Ee][Ss][Tt][Aa][Mm][Pp]\\s*${TEXT}`,
};

/** Of statements that are no plain SELECT, the shape is the beginning of the text. */
const BEGINNING = 200;

/**
 * @param {string} shape
 * @returns {(sql: string) => boolean}
 */
export function matcherOf(shape) {
  if (shape === "") return () => false;
  let pattern = "";
  let from = 0;
  for (const match of shape.matchAll(PLACE)) {
    pattern += escaped(shape.slice(from, match.index)) + (LITERALS[match[1] ?? ""] ?? "");
    from = match.index + match[0].length;
  }
  const whole = new RegExp(`^\\s*${pattern}${escaped(shape.slice(from))}\\s*;?\\s*$`);
  const cut = [...shape].length === BEGINNING;
  return (sql) => whole.test(sql) || (cut && sql.startsWith(shape));
}

/** @param {string} text */
function escaped(text) {
  return text.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&");
}
