/* Numbers, times and lists as people read them. */

export const clock = time => new Date(time).toISOString().slice(11, 19);
export const whole = number => Math.round(number).toLocaleString("en");
/** A rate: a digit behind the point when it is small. */
export const rate = number => (number > 0 && number < 9.95 ? number.toFixed(1) : whole(number));
export const several = ids => (ids.length > 5 ? `${ids.slice(0, 3).join(", ")} ... ${ids.at(-1)}` : ids.join(", "));
/** A host, with its node in a cluster. */
export const hostName = at => (at.node === undefined ? String(at.host) : `${at.node}/${at.host}`);
export const count = (number, one, many) => `${whole(number)} ${number === 1 ? one : many}`;

/** A duration: `3 min 20 s`. */
export function lasting(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000)), minutes = Math.floor(seconds / 60), rest = seconds % 60;
  return [minutes ? `${minutes} min` : "", rest || !minutes ? `${rest} s` : ""].filter(Boolean).join(" ");
}

/** Instants on the axis of time, with texts: ten of them at most. */
export function ticks(start, end) {
  const step = [10e3, 30e3, 60e3, 120e3].find(step => (end - start) / step <= 10);
  const made = [];
  for (let time = Math.ceil(start / step) * step; time <= end; time += step) {
    made.push({ time, text: step < 60e3 ? clock(time) : clock(time).slice(0, 5) });
  }
  return made;
}
