/* The page of partitions: asks the server for what is new every two seconds, and shows it. */
import { Chart, Filters } from "./chart.mjs";
import { Component, html, render } from "./html.mjs";
import { KINDS, onLookChange } from "./map.mjs";
import { Model, parse } from "./model.mjs";
import { Bands, Busiest, Changes, Pauses } from "./tables.mjs";
import { clock, lasting, rate, whole } from "./words.mjs";

const PATIENCE = 15e3;
const TICK = 2000;
/** Samples further apart than this many times the usual are a gap. */
const LATE = 4;

/** An answer that is not what was asked for. */
class Refused extends Error {}

async function ask(path) {
  const answer = await fetch(path, { cache: "no-store", headers: { "X-Blockyard-Console": "1" }, signal: AbortSignal.timeout(PATIENCE) });
  if (answer.status === 401) {
    // The session has ended: the page of the login says what to do.
    location.replace("login");
    throw new Refused("The session has ended.");
  }
  const body = parse(await answer.text());
  if (!answer.ok) throw new Refused(body.error.message);
  return body;
}

class App extends Component {
  constructor() {
    super();
    this.model = new Model();
    this.state = { kinds: new Set(Object.keys(KINDS)), trouble: "", size: 0 };
    this.toggle = kind => {
      const kinds = new Set(this.state.kinds);
      if (!kinds.delete(kind)) kinds.add(kind);
      this.setState({ kinds });
    };
    this.again = () => this.setState({ size: this.state.size + 1 });
    this.leave = async () => {
      const answer = await fetch("logout", { method: "POST" }).catch(() => undefined);
      if (answer?.ok) location.replace("login");
      else this.setState({ trouble: "The server did not log out. Try again." });
    };
  }

  componentDidMount() {
    addEventListener("resize", this.again);
    onLookChange(this.again);
    document.addEventListener("visibilitychange", () => { if (!document.hidden) this.poll(); });
    this.poll();
  }

  async poll() {
    if (this.polling) return;
    this.polling = true;
    clearTimeout(this.timer);
    try {
      const { model } = this;
      const [history, map] = await Promise.all([
        ask(`admin/partitions/history?${model.historyQuery()}`), ask(`admin/partitions?${model.mapQuery()}`)]);
      model.takeHistory(history);
      model.takeMap(map);
      const late = model.samples.length > 0 && model.map.now - model.samples.at(-1).at > LATE * model.every;
      this.setState({ trouble: late ? "The server answers, but has not noted its load for a while." : "" });
    } catch (error) {
      const reason = error instanceof Refused ? error.message : `The server does not answer (${error.message}).`;
      this.setState({ trouble: `${reason} Trying again.` });
    }
    this.polling = false;
    // A page that nobody sees asks for nothing; it catches up later.
    if (!document.hidden) this.timer = setTimeout(() => this.poll(), TICK);
  }

  render(_, { kinds, trouble }) {
    const { model } = this, last = model.samples.at(-1);
    return html`
      <${Head} model=${model} leave=${this.leave} />
      <p id="trouble" role="alert">${trouble && last ? `No data since ${clock(last.at)} UTC. ${trouble}` : trouble}</p>
      ${last && model.map ? html`
        <main>
          <section class="first">
            <h2>Load by key and time</h2>
            <p id="span" class="soft">${reach(model)}</p>
            <${Filters} model=${model} kinds=${kinds} toggle=${this.toggle} />
            <${Chart} model=${model} kinds=${kinds} />
          </section>
          <div class="beside">
            <div class="second">
              <${Bands} model=${model} />
              <${Pauses} model=${model} kinds=${kinds} />
            </div>
            <${Changes} model=${model} kinds=${kinds} />
          </div>
          <${Busiest} model=${model} />
        </main>` : html`<p class="soft">${trouble ? "" : "Asking the server for its history ..."}</p>`}
      <footer><a href="console/licences.txt">Licences</a> of the code of this page</footer>`;
  }
}

/** How far the history reaches, and why not further. */
function reach(model) {
  const first = model.samples[0].at, last = model.samples.at(-1).at, length = last - first;
  const apart = `One sample every ${model.every / 1000 < 10 ? (model.every / 1000).toFixed(1).replace(/\.0$/, "") : whole(model.every / 1000)} s`;
  if (length >= model.window - 2 * model.every) return `The last ten minutes, times in UTC. ${apart}.`;
  const why = model.began !== null && first - model.began < model.every
    ? `the server started at ${clock(model.began)} and keeps ten minutes, in memory only`
    : "the load or the changes of the map were more than the server keeps of ten minutes";
  return `The last ${lasting(length)}, times in UTC: ${why}. ${apart}.`;
}

function Head({ model, leave }) {
  const figure = (name, id, value) => html`<div><dt>${name}</dt><dd id=${id}>${value}</dd></div>`;
  const known = model.map !== null;
  return html`
    <header>
      <h1><span>Blockyard</span> partitions</h1>
      <dl>
        ${figure("partitions", "f-partitions", known ? whole(model.partitions.length) : "-")}
        ${figure("hosts", "f-hosts", known ? model.hosts : "-")}
        ${figure("requests/s", "f-requests", known ? rate(model.total()) : "-")}
        ${figure("changes", "f-changes", known ? whole(model.latestChange) : "-")}
        ${figure("at", "f-now", known ? `${clock(model.map.now)} UTC` : "-")}
      </dl>
      <button type="button" id="leave" onClick=${leave}>Log out</button>
    </header>`;
}

render(html`<${App} />`, document.getElementById("app"));
