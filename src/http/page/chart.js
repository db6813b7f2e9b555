// A chart of the last minutes, with a legend that shows its values as text.

import { html, useEffect, useRef, useState } from "./ui.js";

const HEIGHT = 160;
const power = (value, round) => 10 ** round(Math.log10(value));
const decades = (_, low, high) => [power(low ?? 1, Math.floor), power((high ?? 1_000) * 1.01, Math.ceil)];
const wholeDecades = (_, splits) => splits.map((value) => (Number.isInteger(Math.log10(value)) ? value : null));

/** Options of uPlot. Colours are those of the page and of the legend's `swatches`, asked for at each drawing. */
function options(box, swatches, { series, format, tick = format, log, stacked, seconds }, since, onCursor) {
  const colour = (element, property = "color") => () => getComputedStyle(element)[property];
  const grid = { stroke: colour(box, "borderTopColor"), width: 1 };
  const axis = { stroke: colour(box), font: "11px system-ui, sans-serif", gap: 4, grid, ticks: { show: false } };
  const values = (_, all) => all.map((value) => (value === null ? "" : tick(value)));
  const filter = log && { filter: wholeDecades };
  const clock = (step, text) => [step, text, null, null, null, null, null, null, 1];
  return {
    width: box.clientWidth,
    height: HEIGHT,
    padding: [8, 16, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { setScale: false } },
    scales: {
      x: { range: (_, __, last) => [Math.max(last - seconds, Math.min(last - seconds / 5, since())), last] },
      y: log ? { distr: 3, range: decades } : { range: (_, __, most) => [0, Math.max(1, (most ?? 0) * 1.1)] },
    },
    axes: [
      { ...axis, size: 24, space: 80, values: [clock(60, "{HH}:{mm}"), clock(1, "{HH}:{mm}:{ss}")] },
      { ...axis, ...filter, size: 44, space: 28, grid: { ...grid, ...filter }, values },
    ],
    series: [
      {},
      ...series.map(({ dashed }, at) => ({
        stroke: colour(swatches[at]),
        fill: stacked && colour(swatches[at], "backgroundColor"),
        width: stacked ? 1 : 1.5,
        dash: dashed && [4, 3],
        points: { show: false },
      })),
    ],
    hooks: { setCursor: [(plot) => onCursor(plot.cursor.idx)] },
  };
}

/** Each row on top of those behind it. */
const stack = (rows) =>
  rows.map((row, index) =>
    row.map((value, at) => (value === null ? null : rows.slice(index).reduce((sum, other) => sum + other[at], 0))),
  );

/** Draws `rows` (null where nothing is known) over `times` whenever `version` changes; `series` describes the rows. */
export function Chart({ title, times, rows, version, stacked, series, format, ...rest }) {
  const box = useRef();
  const legend = useRef();
  const plot = useRef();
  const [cursor, setCursor] = useState(null);
  const data = () => [times, ...(stacked ? stack(rows) : rows)];
  const since = () => times[Math.max(0, rows[0].findIndex((value) => value !== null))];
  useEffect(() => {
    const swatches = legend.current.querySelectorAll("i");
    const settings = options(box.current, swatches, { stacked, series, format, ...rest }, since, setCursor);
    const drawn = new uPlot(settings, data(), box.current);
    plot.current = drawn;
    const size = new ResizeObserver(([{ contentRect }]) => drawn.setSize({ width: contentRect.width, height: HEIGHT }));
    size.observe(box.current);
    const redraw = () => drawn.redraw(false);
    document.addEventListener("theme", redraw);
    return () => {
      size.disconnect();
      document.removeEventListener("theme", redraw);
      drawn.destroy();
    };
  }, []);
  useEffect(() => plot.current.setData(data()), [version]);
  const shown = rows.map((row) => row[cursor ?? row.length - 1] ?? null);
  const values = shown.map((value) => (value === null ? "–" : format(value)));
  const text = series.map(({ name }, at) => `${name} ${values[at]}`).join(", ");
  return html`<figure class="panel chart">
    <figcaption><h2>${title}</h2></figcaption>
    <div ref=${box} class="plot" role="img" aria-label=${`${title} in the last minutes; now ${text}`}></div>
    <ul ref=${legend} class="legend" aria-hidden="true">
      ${series.map(
        ({ name, colour, dashed }, at) => html`<li key=${name}>
          <i data-dashed=${dashed} data-filled=${stacked} style=${{ color: `var(--${colour})` }}></i>${name}${" "}
          <b>${values[at]}</b></li>`,
      )}
    </ul>
  </figure>`;
}
