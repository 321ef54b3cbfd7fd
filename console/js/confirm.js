// A question that is answered with yes or no.

import { h } from "./dom.js";

/**
 * @param {string} question
 * @param {string} yes what the button that says yes does
 * @returns {Promise<boolean>}
 */
export function confirmed(question, yes) {
  return new Promise((resolve) => {
    const dialog = h("dialog", { class: "dialog", "aria-label": yes, onclose: () => { dialog.remove(); resolve(dialog.returnValue === "yes"); } },
      h("p", { class: "question" }, question),
      h("footer", {},
        h("button", { type: "button", onclick: () => dialog.close("no") }, "Cancel"),
        h("button", { type: "button", class: "primary", onclick: () => dialog.close("yes") }, yes)));
    document.body.append(dialog);
    dialog.showModal();
  });
}
