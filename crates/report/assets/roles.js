// What the parameters of a sweep are in a plot: those that are not on an axis part its lines, or its panels, or have one value.

const PANELS = 12; // panels that are drawn at most
const FIRST_PANELS = 6; // and without being asked for

/** Lines, panels and fixed values: which rows go where. */
class Roles {
  #roles = new Map();

  /** `axes` are those of the parameters, `first` is a row; where `alike` is possible, rows need not be told apart. */
  constructor(axes, first, alike) {
    Object.assign(this, { axes, first, alike, across: null });
    this.free = axes.filter((axis) => axis.values.length > 1);
  }

  /** Puts a parameter on the axis (or none), and gives the others what suits their number of values. */
  place(across) {
    this.across = across;
    this.#roles.clear();
    // Names make better lines than numbers, and few values better than many.
    const others = this.others.sort((a, b) => b.names - a.names || a.values.length - b.values.length);
    let [lines, panels] = [1, 1];
    for (const axis of others) {
      const size = axis.values.length;
      // A value of which there is something.
      let role = this.alike ? 'alike' : String(this.first.at[axis.parameter]);
      if (lines * size <= HUES && !(this.alike && lines > 1)) {
        role = 'lines';
        lines *= size;
      } else if (!this.alike && panels * size <= FIRST_PANELS) {
        role = 'panels';
        panels *= size;
      }
      this.#roles.set(axis, role);
    }
  }

  /** The parameters that are not on the axis and have more than one value. */
  get others() {
    return this.free.filter((axis) => axis !== this.across);
  }

  role(axis) {
    return this.#roles.get(axis);
  }

  choose(axis, role) {
    this.#roles.set(axis, role);
  }

  /** What a parameter can be here, as values and texts of a choice. */
  choices(axis) {
    const fixed = axis.values.map((value, n) => [String(n), `only ${value}`]);
    const told = [['lines', this.alike ? 'a colour for each' : 'a line for each']];
    return [...told, ['panels', 'a panel for each'], ...(this.alike ? [['alike', 'all alike']] : []), ...fixed];
  }

  /** The parameters that have a role. */
  of(role) {
    return this.others.filter((axis) => this.role(axis) === role);
  }

  /** The parameters of which only one value is drawn. */
  fixed() {
    return this.others.filter((axis) => /^\d+$/.test(this.role(axis)));
  }

  /** The rows that are drawn. */
  rows(rows) {
    const fixed = this.fixed();
    return rows.filter((row) => fixed.every((axis) => row.at[axis.parameter] === Number(this.role(axis))));
  }

  /** The rows parted by the values of the parameters of a role, in order: `number` is that of the combination, from 0. */
  parted(rows, role) {
    const axes = this.of(role);
    const parts = new Map();
    for (const row of rows) {
      const number = axes.reduce((before, axis) => before * axis.values.length + row.at[axis.parameter], 0);
      if (!parts.has(number)) {
        parts.set(number, { number, name: axes.map((axis) => axis.words(row)).join(', '), rows: [] });
      }
      parts.get(number).rows.push(row);
    }
    return [...parts.values()].sort((a, b) => a.number - b.number);
  }
}
