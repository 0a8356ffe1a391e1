/* The map with its axes: time downwards, keys from left to right, their containers below. */
import { Component, html } from "./html.mjs";
import { colourOf, drawHosts, drawMap, KINDS, palette, STEPS } from "./map.mjs";
import { clock, hostName, count, rate, several, ticks } from "./words.mjs";

/** At most so many bands are shown below the axis, the widest. */
const BANDS_MAX = 200;
/** A narrower band, in pixels, has no room for a name. */
const NAMED_MIN = 36;
const percent = part => `${(part * 100).toFixed(3)}%`;

export class Chart extends Component {
  constructor() {
    super();
    this.state = { cursor: null };
    this.marks = [];
    this.onMove = event => {
      const box = this.map.getBoundingClientRect();
      this.point((event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
    };
    this.onLeave = () => this.setState({ cursor: null });
    this.onKey = event => {
      const by = event.shiftKey ? 0.1 : 0.01;
      const way = { ArrowLeft: [-by, 0], ArrowRight: [by, 0], ArrowUp: [0, -by], ArrowDown: [0, by] }[event.key];
      if (event.key === "Escape") this.onLeave();
      if (!way) return;
      event.preventDefault();
      const from = this.cursor() || { x: 0.5, y: 1 };
      this.point(from.x + way[0], from.y + way[1]);
    };
  }

  /** An instant is pointed at, not a place: it moves up with the map, and its description stays. */
  point(x, y) {
    const { start, end } = this.props.model.shown();
    const time = start + Math.min(1, Math.max(0, y)) * (end - start);
    this.setState({ cursor: { x: Math.min(0.9999, Math.max(0, x)), time } });
  }

  /** Where the cursor is on the map now, 0 to 1. */
  cursor() {
    const { start, end } = this.props.model.shown(), { cursor } = this.state;
    return cursor && cursor.time >= start ? { x: cursor.x, y: (cursor.time - start) / (end - start) } : null;
  }

  componentDidMount() { this.draw(); }
  componentDidUpdate() { this.draw(); }

  draw() {
    const { model, kinds } = this.props;
    this.marks = drawMap(this.map, model, { kinds, cursor: this.cursor() });
    drawHosts(this.hosts, model);
  }

  /** What lies under the cursor, in words. */
  reading() {
    const { model } = this.props, cursor = this.cursor();
    if (!cursor) return "Point at the map, or focus it and use the arrow keys: this line then says what is there.";
    const { time } = this.state.cursor, found = model.lookAt(time);
    if (!found) return `${clock(time)} UTC: the history does not reach back so far.`;
    model.axis();
    const at = model.alive(found.sample.number).find(one => one.left <= cursor.x && cursor.x < one.right);
    if (!at) return `${clock(found.sample.at)} UTC: these keys were between two hosts.`;
    const [, requests] = found.sample.rates.find(([number]) => number === at.number) || [0, 0];
    const near = this.marks.filter(m => Math.abs(m.y - cursor.y) < 0.02 && m.left <= cursor.x && cursor.x <= m.right);
    const changes = near.map(({ change }) => `; ${change.kind} of ${several(change.from)} to ${several(change.to)} at ` +
      `${clock(change.when)}, writes paused ${change.pause_ms.toFixed(3)} ms`).join("");
    const stripe = at.stripe ? `stripe ${at.stripe.number + 1} of ${at.stripe.of} of the keys ` : "";
    return `${clock(found.sample.at)} UTC, partition ${at.id} on host ${hostName(at)}: ${rate(requests)} requests/s, ${stripe}from ` +
      `${at.from || "(the beginning)"} to ${at.to === null ? "(the end)" : at.to}${changes}`;
  }

  render({ model, kinds }) {
    const { start, end } = model.shown(), bands = model.bands();
    const wide = band => band.right - band.left;
    const shown = new Set([...bands].sort((a, b) => wide(b) - wide(a)).slice(0, BANDS_MAX));
    const hasRoom = band => wide(band) * (this.map?.clientWidth ?? innerWidth) >= NAMED_MIN;
    const seen = model.changes.filter(change => change.when >= start && kinds.has(change.kind)).length;
    const text = `Heat map of ${count(model.partitions.length, "partition", "partitions")} from ${clock(start)} to ${clock(end)} UTC, ` +
      `with ${count(seen, "change", "changes")} of the map. The tables of key bands, changes and partitions have the same in words.`;
    return html`
      <figure class="chart">
        <ol class="ticks" aria-hidden="true">
          ${ticks(start, end).map(tick => html`
            <li key=${tick.time} style=${{ top: percent((tick.time - start) / (end - start)) }}><span>${tick.text}</span></li>`)}
        </ol>
        <canvas id="map" tabindex="0" role="img" aria-label=${text} aria-describedby="reading" ref=${node => { this.map = node || this.map; }}
          onMouseMove=${this.onMove} onMouseLeave=${this.onLeave} onKeyDown=${this.onKey}></canvas>
        <span class="side" aria-hidden="true">host</span>
        <canvas id="hosts" role="img" aria-label="Which host has which keys now; the table of key bands has the same"
          ref=${node => { this.hosts = node || this.hosts; }}></canvas>
        <span class="side" aria-hidden="true">keys of</span>
        <ol id="bands" aria-label="Containers along the axis of keys">
          ${bands.filter(band => shown.has(band)).map(band => html`
            <li key=${band.key} title=${band.text} style=${{ left: percent(band.left), width: percent(band.right - band.left) }}>
              ${hasRoom(band) && html`<${BandName} band=${band} complete=${model.allNamed} />`}
            </li>`)}
        </ol>
      </figure>
      <p id="reading" aria-live="polite">${this.reading()}</p>
      <${Legend} />`;
  }
}

/** An account, a container and how many more; or whatever has no container. */
function BandName({ band, complete }) {
  const slash = band.is === null ? -1 : band.name.indexOf("/");
  const more = band.more ? ` +${band.more}${complete ? "" : " or more"}` : "";
  return html`
    <small>${slash < 0 ? "" : band.name.slice(0, slash)}</small>
    <b>${band.name.slice(slash + 1)}${more}</b>`;
}

function Legend() {
  const text = n => (n === 0 ? "none" : `\u2265 ${STEPS[n - 1].toLocaleString("en")}`);
  return html`
    <ul class="legend" aria-label="Colours of the map, requests a second">
      <li>requests/s</li>
      ${palette().map((colour, n) => html`<li key=${n}><i style=${{ background: colour }}></i>${text(n)}</li>`)}
    </ul>`;
}

/** The kinds of change, each of which can be left out. */
export function Filters({ model, kinds, toggle }) {
  const { start } = model.shown(), seen = model.changes.filter(change => change.when >= start);
  return html`
    <div class="chips" role="group" aria-label="Changes of the map that are shown">
      ${Object.entries(KINDS).map(([kind, { sign }]) => html`
        <button key=${kind} type="button" id=${`show-${kind}`} aria-pressed=${kinds.has(kind) ? "true" : "false"}
          onClick=${() => toggle(kind)}>
          <i style=${{ color: colourOf(kind) }} aria-hidden="true">${sign}</i> ${kind}
          <small>${seen.filter(change => change.kind === kind).length}</small>
        </button>`)}
    </div>`;
}
