// The roles of a sweep's parameters in a plot. A parameter that is not on an axis separates lines or panels, or has one
// value.

const PANELS = 12; // most panels that are drawn
const FIRST_PANELS = 6; // most panels by default

/** Lines, panels and fixed values: they determine where each row goes. */
class Roles {
  #roles = new Map();

  /** `axes` are those of the parameters, `first` is a row. If `alike`, rows need not be distinguishable. */
  constructor(axes, first, alike) {
    Object.assign(this, { axes, first, alike, across: null });
    this.free = axes.filter((axis) => axis.values.length > 1);
  }

  /** Puts a parameter on the axis (or none), and gives the others a role that suits their number of values. */
  place(across) {
    this.across = across;
    this.#roles.clear();
    // Names make better lines than numbers, and few values better than many.
    const others = this.others.sort((a, b) => b.names - a.names || a.values.length - b.values.length);
    let [lines, panels] = [1, 1];
    for (const axis of others) {
      const size = axis.values.length;
      // A value that has data.
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

  /** The possible roles of a parameter, as values and texts of a choice. */
  choices(axis) {
    const fixed = axis.values.map((value, n) => [String(n), `only ${value}`]);
    const roles = [['lines', this.alike ? 'a colour for each' : 'a line for each']];
    return [...roles, ['panels', 'a panel for each'], ...(this.alike ? [['alike', 'all alike']] : []), ...fixed];
  }

  /** The parameters with a role. */
  of(role) {
    return this.others.filter((axis) => this.role(axis) === role);
  }

  /** The parameters with a single drawn value. */
  fixed() {
    return this.others.filter((axis) => /^\d+$/.test(this.role(axis)));
  }

  /** The rows that are drawn. */
  rows(rows) {
    const fixed = this.fixed();
    return rows.filter((row) => fixed.every((axis) => row.at[axis.parameter] === Number(this.role(axis))));
  }

  /** The rows separated by the values of the parameters of a role, in order: `number` is the index of the combination. */
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
