/* Preact and htm as one: elements are written as html`<p class=${c}>..</p>`. Texts are always escaped. */
import { Component, h, render } from "./vendor/preact.js";
import htm from "./vendor/htm.js";

export const html = htm.bind(h);
export { Component, render };
export * from "./vendor/hooks.js";
