/* What the page knows: the load history that the server answers, the partitions, the changes of the map. It draws nothing.
   api-spec/admin.yaml describes the answers. */
import { hostName } from "./words.mjs";

/** Changes remembered, as many as the server remembers. */
const CHANGES_MAX = 1000;
/** A range begins here on the axis of keys; its stripes lie side by side behind it. "/" sorts before all digits. */
const FIRST_STRIPE = "/000";
const stripeStart = (low, number) => `${low}/${String(number).padStart(3, "0")}`;
const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

/** The position of the first of the sorted `texts` that is not below `text`. */
export function lowerBound(texts, text) {
  let low = 0, high = texts.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (texts[middle] < text) low = middle + 1; else high = middle;
  }
  return low;
}

/** Reads an answer. A page has no exact numbers above 2^53, and the ids of most clusters are above: these become texts. */
export function parse(text) {
  const exact = token => (/^\d+$/.test(token) && !Number.isSafeInteger(Number(token)) ? `"${token}"` : token);
  return JSON.parse(text.replace(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g, exact));
}

export class Model {
  constructor() {
    /** Stays of partitions on hosts, by number, and samples of their load, oldest first. */
    this.stays = new Map();
    this.samples = [];
    this.window = 600e3;
    this.every = 2000;
    this.began = null;
    /** The containers in key order: their lowest keys, and their names. */
    this.lows = [];
    this.names = [];
    this.allNamed = true;
    this.namesNumber = null;
    /** The partitions now, with rates, and the number of the answer that they are from. */
    this.partitions = [];
    this.map = null;
    this.hosts = 0;
    /** The hosts of a cluster, in the order in which they were first seen. */
    this.hostOrder = new Map();
    this.changes = [];
    this.latestChange = 0;
    this.axisCache = null;
  }

  /** The query for what is new in the history. */
  historyQuery() {
    const last = this.samples.at(-1);
    const parts = [];
    if (last) parts.push(`after=${last.number}`);
    if (this.namesNumber !== null) parts.push(`names=${this.namesNumber}`);
    return parts.join("&");
  }

  /** The query for the partitions that have changed, and for new changes of the map. */
  mapQuery() {
    return `after=${this.latestChange}${this.map ? `&since=${this.map.number}` : ""}`;
  }

  takeHistory(answer) {
    if (answer.after === null) {
      this.stays.clear();
      this.samples = [];
    }
    for (const stay of answer.stays) {
      const { number, low, high, stripe } = stay;
      const start = stripe ? stripeStart(low, stripe.number) : low + FIRST_STRIPE;
      const isLast = !stripe || stripe.number + 1 === stripe.of;
      const end = !isLast ? stripeStart(low, stripe.number + 1) : high === null ? null : high + FIRST_STRIPE;
      this.stays.set(number, { ...stay, start, end });
    }
    for (const { number, until } of answer.ended) {
      const stay = this.stays.get(number);
      if (stay) stay.until = until;
    }
    for (const sample of answer.samples) this.samples.push({ ...sample, at: Date.parse(sample.at) });
    this.window = answer.window_s * 1000;
    this.every = answer.every_s * 1000;
    this.began = answer.began === null ? null : Date.parse(answer.began);
    const last = this.samples.at(-1);
    while (this.samples.length > 1 && this.samples[0].at < last.at - this.window) this.samples.shift();
    const oldest = this.samples.length ? this.samples[0].number : 0;
    let shrunk = false;
    for (const [number, stay] of this.stays) {
      if (stay.until !== null && stay.until <= oldest) {
        this.stays.delete(number);
        shrunk = true;
      }
    }
    if (answer.stays.length || answer.ended.length || shrunk) this.axisCache = null;
    if (answer.containers) {
      this.lows = answer.containers.all.map(([low]) => low);
      this.names = answer.containers.all.map(([, name]) => name);
      this.allNamed = answer.containers.complete;
      this.namesNumber = answer.names;
    }
  }

  takeMap(answer) {
    const before = this.map, now = Date.parse(answer.now);
    const isPart = before !== null && answer.since === before.number;
    const old = new Map(this.partitions.map(p => [p.id, p]));
    const seconds = before ? (now - before.now) / 1000 : 0;
    for (const p of answer.partitions) {
      let was = old.get(p.id);
      // A new host counts from nothing.
      if (!was || was.requests > p.requests) was = {};
      const rate = what => (seconds > 0 ? Math.max(0, p[what] - (was[what] || 0)) / seconds : 0);
      p.rates = { requests: rate("requests"), reads: rate("reads"), writes: rate("writes"), lists: rate("lists"),
        cpu: rate("cpu_us"), log: rate("log_bytes") };
    }
    if (isPart) {
      const known = new Set([...answer.gone, ...answer.partitions.map(p => p.id)]);
      const rest = { requests: 0, reads: 0, writes: 0, lists: 0, cpu: 0, log: 0 };
      const same = this.partitions.filter(p => !known.has(p.id)).map(p => ({ ...p, rates: rest }));
      this.partitions = [...same, ...answer.partitions];
    } else {
      this.partitions = answer.partitions;
    }
    // The server was started anew: its changes count from 1 again, and all are asked for the next time.
    const anew = answer.latest_change < this.latestChange;
    if (anew) this.changes = [];
    this.latestChange = anew ? 0 : answer.latest_change;
    for (const change of answer.changes) this.changes.push({ ...change, when: Date.parse(change.at) });
    if (this.changes.length > CHANGES_MAX) this.changes.splice(0, this.changes.length - CHANGES_MAX);
    this.hosts = answer.hosts;
    this.map = { number: answer.number, now };
  }

  /** Every bound of the last ten minutes has a place, 0 to 1: what was split since is wide above and narrow below. */
  axis() {
    if (!this.axisCache) {
      const starts = [...new Set([...this.stays.values()].map(stay => stay.start))].sort(compare);
      const place = text => (text === null ? 1 : lowerBound(starts, text) / Math.max(1, starts.length));
      this.axisCache = { starts, place };
      for (const stay of this.stays.values()) [stay.left, stay.right] = [place(stay.start), place(stay.end)];
    }
    return this.axisCache;
  }

  /** A number that stands for a host. */
  placeOfHost(at) {
    if (at.node === undefined) return at.host;
    const name = hostName(at);
    if (!this.hostOrder.has(name)) this.hostOrder.set(name, this.hostOrder.size);
    return this.hostOrder.get(name);
  }

  /** Where a change of the map lies on the axis. */
  placeOf(change) {
    const { place } = this.axis();
    return [place(change.low + FIRST_STRIPE), place(change.high === null ? null : change.high + FIRST_STRIPE)];
  }

  /** The stays of a sample, in key order. */
  alive(number) {
    const has = stay => stay.since <= number && (stay.until === null || stay.until > number);
    return [...this.stays.values()].filter(has).sort((a, b) => compare(a.start, b.start));
  }

  /** The first container of a range, and how many more there are. Without one, where the range begins. */
  holds(low, high, from) {
    const first = lowerBound(this.lows, low.slice(0, 32));
    const end = high === null ? this.lows.length : lowerBound(this.lows, high);
    // Without a text it is the beginning of the key space, where the accounts are.
    if (end <= first) return { name: from ? from.split("/").slice(0, 2).join("/") : "(rows of accounts)", more: 0, is: null };
    return { name: this.names[first], more: end - first - 1, is: first };
  }

  /** The containers of a range as text. */
  where(low, high, from) {
    const { name, more } = this.holds(low, high, from);
    return more ? `${name} and ${more}${this.allNamed ? "" : " or more"} more` : name;
  }

  /** Neighbouring partitions of the same container, as one band of the axis each. */
  bands() {
    const last = this.samples.at(-1);
    if (!last) return [];
    this.axis();
    const rates = new Map(last.rates), bands = [];
    for (const stay of this.alive(last.number)) {
      const held = this.holds(stay.low, stay.high, stay.from), rate = rates.get(stay.number) || 0;
      const before = bands.at(-1);
      if (before && !held.more && !before.more && before.name === held.name) {
        before.right = stay.right;
        before.partitions += 1;
        before.rate += rate;
        before.hosts.add(hostName(stay));
      } else {
        bands.push({ ...held, text: this.where(stay.low, stay.high, stay.from), key: stay.start, left: stay.left,
          right: stay.right, partitions: 1, rate, hosts: new Set([hostName(stay)]) });
      }
    }
    return bands;
  }

  /** The rate of all partitions in the last sample, requests a second. */
  total() {
    const last = this.samples.at(-1);
    return last ? last.rates.reduce((sum, [, rate]) => sum + rate, 0) : 0;
  }

  /** The first and the last instant that are drawn: ten minutes, or what there is of them, a minute at least. */
  shown() {
    const end = this.samples.at(-1).at, begun = this.samples[0].at;
    return { start: end - Math.min(this.window, Math.max(60e3, end - begun)), end };
  }

  /** The sample that covers an instant, and the one before it. */
  lookAt(time) {
    const place = this.samples.findIndex(sample => sample.at >= time);
    return place > 0 ? { sample: this.samples[place], before: this.samples[place - 1] } : null;
  }
}
