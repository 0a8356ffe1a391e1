/* What the map shows, in words: key bands, changes, pauses, partitions. On a narrow screen each row is a card. */
import { Component, html } from "./html.mjs";
import { colourOf, KINDS } from "./map.mjs";
import { clock, count, hostName, rate, several, whole } from "./words.mjs";

/** Rows shown until all are asked for. */
const ROWS = 12;
/** Milliseconds at which the next bar of the pauses begins. */
const BOUNDS = [0.5, 1, 2, 5, 10, 20, 50, 100];

/** A table of whole rows: the rest is shown when it is asked for, so that no row is cut. */
class Table extends Component {
  constructor() {
    super();
    this.state = { all: false };
  }

  render({ id, title, columns, rows, none }, { all }) {
    const shown = all ? rows : rows.slice(0, ROWS);
    return html`
      <section>
        <h2 id=${`${id}-title`}>${title}</h2>
        ${rows.length === 0 ? html`<p>${none}</p>` : html`
          <table id=${id} aria-labelledby=${`${id}-title`}>
            <thead><tr>${columns.map(column => html`<th scope="col" class=${column.kind}>${column.name}</th>`)}</tr></thead>
            <tbody>
              ${shown.map(row => html`
                <tr key=${row.key}>${columns.map((column, i) => html`
                  <td class=${column.kind} data-name=${column.name}>${row.cells[i]}</td>`)}</tr>`)}
            </tbody>
          </table>`}
        ${rows.length > ROWS && html`
          <button type="button" class="more" aria-expanded=${all ? "true" : "false"} aria-controls=${id}
            onClick=${() => this.setState({ all: !all })}>
            ${all ? `Show ${ROWS} rows` : `Show all ${whole(rows.length)} rows`}
          </button>`}
      </section>`;
  }
}

const byNumber = (a, b) => a.localeCompare(b, "en", { numeric: true });
const text = name => ({ name, kind: "t" });
const wide = name => ({ name, kind: "w" });
const ids = name => ({ name, kind: "i" });
const host = name => ({ name, kind: "h" });
const number = name => ({ name, kind: "n" });

export function Bands({ model }) {
  const rows = model.bands().map(band => ({ key: band.key, cells: [band.text, whole(band.partitions),
    [...band.hosts].sort(byNumber).join(", "), rate(band.rate)] }));
  return html`<${Table} id="key-bands" title="Key bands, in key order" rows=${rows} none="No partition is known yet."
    columns=${[wide("account/container"), number("partitions"), ids("hosts"), number("requests/s")]} />`;
}

export function Changes({ model, kinds }) {
  const all = model.changes.filter(change => kinds.has(change.kind)).reverse();
  const kind = change => html`<i style=${{ color: colourOf(change.kind) }} aria-hidden="true">${KINDS[change.kind].sign}</i> ${change.kind}`;
  const rows = all.map(change => ({ key: change.number, cells: [clock(change.when), kind(change), change.pause_ms.toFixed(3),
    model.where(change.low, change.high, ""), several(change.from), several(change.to), hostName(change), change.number] }));
  const none = model.changes.length ? "All kinds of change are left out." : "The map has not changed since the server started.";
  return html`<${Table} id="changes" title="Changes of the map, latest first" rows=${rows} none=${none}
    columns=${[text("time, UTC"), text("change"), number("pause, ms"), wide("keys of"), ids("from"), ids("to"), host("host"), number("no.")]} />`;
}

export function Busiest({ model }) {
  const order = [...model.partitions].sort((a, b) => b.rates.requests - a.rates.requests || a.id - b.id).slice(0, 100);
  const stopped = p => (p.stopped ? ` (takes no writes: ${p.stopped})` : "");
  const rows = order.map(p => ({ key: p.id, cells: [p.id, hostName(p), rate(p.rates.requests), rate(p.rates.reads), rate(p.rates.writes),
    rate(p.rates.lists), (p.rates.cpu / 1e4).toFixed(1), (p.queue_age_us / 1e3).toFixed(1), rate(p.rates.log / 1024), whole(p.rows),
    `${p.from || "(the beginning)"}${stopped(p)}`] }));
  return html`<${Table} id="busiest" title="Busiest partitions" rows=${rows} none="No partition is known yet."
    columns=${[number("partition"), host("host"), number("requests/s"), number("reads/s"), number("writes/s"), number("lists/s"),
    number("CPU, %"), number("waits, ms"), number("log, KiB/s"), number("rows"), wide("from")]} />`;
}

/** How long writes waited for changes of the map. */
export function Pauses({ model, kinds }) {
  const pauses = model.changes.filter(change => kinds.has(change.kind)).map(change => change.pause_ms).sort((a, b) => a - b);
  const bins = new Array(BOUNDS.length + 1).fill(0);
  for (const pause of pauses) bins[BOUNDS.filter(bound => pause >= bound).length]++;
  const most = Math.max(1, ...bins);
  const at = part => pauses[Math.min(pauses.length - 1, Math.floor(part * pauses.length))].toFixed(2);
  const summary = pauses.length ? `${count(pauses.length, "change", "changes")}: half paused at most ${at(0.5)} ms, 99 % at most ${at(0.99)} ms, ` +
    `the longest ${pauses.at(-1).toFixed(2)} ms.` : "No change is shown.";
  return html`
    <section>
      <h2>Pauses of writes by these changes</h2>
      <ol class="bars" id="pauses" aria-label="Changes by the pause of writes, milliseconds">
        ${bins.map((bin, i) => html`
          <li key=${i}><b>${bin || ""}</b><i style=${{ height: `${(bin / most) * 90}px` }}></i>
            <span>${i ? `${BOUNDS[i - 1]}+` : `< ${BOUNDS[0]}`}</span></li>`)}
      </ol>
      <p class="soft">Milliseconds. <span id="p-summary">${summary}</span></p>
    </section>`;
}
