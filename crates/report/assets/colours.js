// The colours of flows: eight hues that differ under the common colour blindnesses (after Okabe and Ito). Neighbours in
// the stack also differ in lightness, and a thin line separates them.

const HUES = 8;

/** Assigns colours: a flow keeps its colour wherever it is shown. */
class Colours {
  #slots = new Map();

  /** Flows of the whole input come first, so the heaviest have the clearest colours. */
  constructor(report) {
    for (const flow of (report.series?.flows ?? []).slice(0, HUES)) this.#slots.set(flow.flow, this.#slots.size);
    this.whole = new Set(this.#slots.keys());
  }

  /** Colour slots for `flows` shown together: known flows keep theirs, the rest take the free ones. */
  assign(flows) {
    const taken = new Set();
    const slots = new Map();
    for (const flow of flows) {
      if (this.#slots.has(flow)) {
        slots.set(flow, this.#slots.get(flow));
        taken.add(this.#slots.get(flow));
      }
    }
    let next = HUES - 1;
    for (const flow of flows) {
      if (slots.has(flow)) continue;
      while (next >= 0 && taken.has(next)) next -= 1;
      if (next < 0) break;
      slots.set(flow, next);
      taken.add(next);
    }
    return slots;
  }

  /** The slot of a flow that has one over the whole input. */
  slot(flow) {
    return this.#slots.get(flow);
  }
}

/** The current value of a style variable, light or dark. */
function cssVariable(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

const flowColour = (slot) => cssVariable(slot === undefined ? '--flow-other' : `--flow-${slot}`);

/** A square in a flow's colour; it follows the theme by itself. */
function swatch(slot) {
  return el('span', {
    class: 'swatch',
    'aria-hidden': 'true',
    style: { background: slot === undefined ? 'var(--flow-other)' : `var(--flow-${slot})` },
  });
}
