// Whether texts can be read: runs in the page.

/** The lowest contrast of texts with what is behind them, by the formula of WCAG 2. */
export function lowestContrast(elements) {
  const channels = (color) => (/rgba?\(([^)]+)\)/.exec(color)?.[1] ?? "0,0,0,0").split(",").map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, index) => sum + c * [0.2126, 0.7152, 0.0722][index], 0);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = channels(getComputedStyle(at).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  let worst = { ratio: 21, text: "" };
  for (const element of elements) {
    if (element.textContent.trim() === "") continue;
    const [a, b] = [light(channels(getComputedStyle(element).color)), light(behind(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < worst.ratio) worst = { ratio, text: element.textContent };
  }
  return worst;
}
