/* Preact with htm: what pages of the console are written in. Text is text, never markup. */
import { Component, h, render } from "./vendor/preact.mjs";
import htm from "./vendor/htm.mjs";

export const html = htm.bind(h);
export { Component, render };
