// A chart as a picture file.

const PIXELS = 2;
/** What the drawing takes from the page's style sheets. */
const STYLES = ["fill", "fill-opacity", "stroke", "stroke-width", "font-size", "font-family", "stroke-linejoin", "visibility"];

/**
 * @param {SVGSVGElement} svg
 * @param {string} name of the file, without its ending
 */
export async function savePicture(svg, name) {
  const copy = /** @type {SVGSVGElement} */ (svg.cloneNode(true));
  const drawn = [...svg.querySelectorAll("*")];
  for (const [index, element] of [...copy.querySelectorAll("*")].entries()) {
    const style = getComputedStyle(/** @type {Element} */ (drawn[index]));
    for (const property of STYLES) element.setAttribute(property, style.getPropertyValue(property));
  }
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  const [width, height] = [Number(svg.getAttribute("width")), Number(svg.getAttribute("height"))];
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(copy))}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [width * PIXELS, height * PIXELS];
  const pen = canvas.getContext("2d");
  if (!pen) throw new Error("the browser draws no pictures");
  pen.fillStyle = getComputedStyle(/** @type {Element} */ (svg.closest(".work") ?? document.body)).backgroundColor;
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.drawImage(image, 0, 0, canvas.width, canvas.height);
  const link = document.createElement("a");
  link.href = canvas.toDataURL("image/png");
  link.download = `${name.replace(/[^\w.-]+/g, "-") || "chart"}.png`;
  link.click();
}
