// Markdown as elements: never as HTML, so that a text can show nothing but text.

import { lexer } from "./vendor/marked.js";
import { visible } from "./format.js";
import { html, useMemo } from "./ui.js";

const entities = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'" };
// The lexer leaves entities to its HTML renderer, which we do not use.
const plain = (text) => visible(text.replace(/&(amp|lt|gt|quot|#39);/g, (entity) => entities[entity]));

/** Only addresses that a browser may open from a text of a model. */
const isSafe = (href) => /^(https?:|mailto:)/i.test(href);

/** A citation of a place in a file, such as `src/lib.rs:12-40`. */
const CITATION = /^[\w./@+-]*[\w+-]\.\w+:\d+(?:[-–]\d+)?$/;

function inline(tokens, onCite) {
  return tokens.map((token) => {
    const inner = () => inline(token.tokens ?? [], onCite);
    switch (token.type) {
      case "strong":
        return html`<strong>${inner()}</strong>`;
      case "em":
        return html`<em>${inner()}</em>`;
      case "del":
        return html`<del>${inner()}</del>`;
      case "br":
        return html`<br />`;
      case "codespan": {
        const code = html`<code>${visible(token.text)}</code>`;
        if (!onCite || !CITATION.test(token.text)) return code;
        return html`<button class="citation" onClick=${() => onCite(token.text)}>${code}</button>`;
      }
      case "link":
        return isSafe(token.href)
          ? html`<a href=${token.href} target="_blank" rel="noopener noreferrer nofollow">${inner()}</a>`
          : html`${inner()} (${plain(token.href)})`;
      // An image would be a request to another host.
      case "image":
        return html`${plain(token.text)} (${plain(token.href)})`;
      case "text":
        return token.tokens ? inner() : plain(token.text);
      default:
        return plain(token.raw);
    }
  });
}

function item(token, onCite) {
  const box = token.task && html`<input type="checkbox" checked=${token.checked} disabled aria-label="done" /> `;
  return html`<li>${box}${blocks(token.tokens, onCite)}</li>`;
}

function table(token, onCite) {
  const cell = (tag) => ({ tokens }, at) =>
    html`<${tag} style=${{ textAlign: token.align[at] ?? "start" }}>${inline(tokens, onCite)}</${tag}>`;
  return html`<div class="table-scroll" tabindex="0" role="group" aria-label="table"><table>
    <thead><tr>${token.header.map(cell("th"))}</tr></thead>
    <tbody>${token.rows.map((row) => html`<tr>${row.map(cell("td"))}</tr>`)}</tbody>
  </table></div>`;
}

function blocks(tokens, onCite) {
  return tokens.map((token) => {
    switch (token.type) {
      case "space":
        return null;
      case "heading":
        return html`<p class="heading">${inline(token.tokens, onCite)}</p>`;
      case "paragraph":
        return html`<p>${inline(token.tokens, onCite)}</p>`;
      case "code":
        return html`<pre tabindex="0"><code>${visible(token.text)}</code></pre>`;
      case "blockquote":
        return html`<blockquote>${blocks(token.tokens, onCite)}</blockquote>`;
      case "list": {
        const items = token.items.map((one) => item(one, onCite));
        return token.ordered ? html`<ol start=${token.start}>${items}</ol>` : html`<ul>${items}</ul>`;
      }
      case "table":
        return table(token, onCite);
      case "hr":
        return html`<hr />`;
      case "text":
        return token.tokens ? inline(token.tokens, onCite) : plain(token.text);
      default:
        return html`<p>${plain(token.raw)}</p>`;
    }
  });
}

/** What takes the lexer too long, or nests too deeply: many delimiters, and lines with many markers. */
const isHostile = (text) =>
  text.length > 200_000 || text.split(/[*_~`[]/, 3_001).length > 3_000 ||
  /^(?:[ \t]*(?:>|(?:[-*+]|\d+[.)])[ \t])){20}/m.test(text);

/** A text of a model or a person. `onCite` opens a place in a file that it cites. */
export function Markdown({ text, onCite }) {
  const tokens = useMemo(() => !isHostile(text) && lexer(text), [text]);
  if (!tokens) return html`<p class="said"><bdi>${visible(text)}</bdi></p>`;
  return html`<div class="markdown" dir="auto">${blocks(tokens, onCite)}</div>`;
}
