// Tables that are sorted by clicking on a column's name.

// Rows that are shown at first; on a phone they have no frame of their own.
const FIRST_ROWS = matchMedia('(max-width: 680px)').matches ? 20 : 200;

/**
 * A table of `entries` that is sorted by the column whose name is pressed; equal entries keep their order.
 *
 * A column has a `key`, a `title`, `value` (of an entry, to sort by: a number, or text), and `show` (the content of the
 * cell) or `cell` (the whole cell, with `figure` if it contains numbers). `up` means that the first press sorts upwards,
 * `about` explains the title, `label` is before the value where rows are blocks.
 *
 * Options: `kind` (its class), `by` (the key that sorts it at first; without one, entries keep their order), `limit`
 * (rows shown at first) with `all` (their joint name, in words), `dress` (attributes of a row).
 */
class SortedTable {
  #sort = { key: null, up: true };
  #rows = new Map();
  #limit;

  constructor(name, entries, columns, { kind, by = null, limit = Infinity, all = '', dress = () => ({}) }) {
    Object.assign(this, { entries, columns: columns.filter(Boolean), all, dress });
    this.#limit = limit;
    this.heads = new Map(this.columns.map((column) => [column.key, this.#head(column)]));
    this.table = table(name, [...this.heads.values()], [], { class: `sorts ${kind}` });
    this.more = button('', () => this.showAll(), { class: 'quiet' });
    const frame = { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': `Table: ${name}` };
    this.element = el('div', {}, el('div', frame, this.table), this.more);
    const first = this.columns.find((column) => column.key === by);
    if (first) this.#by(first);
    else this.#fill();
  }

  /** The rows created so far, by entry. */
  get rows() {
    return this.#rows;
  }

  /** Shows all rows, as for printing. */
  showAll() {
    this.#limit = Infinity;
    this.#fill();
  }

  #head(column) {
    const press = button(column.title, () => this.#by(column));
    return th(press, { class: column.cell && !column.figure ? null : 'figure', title: column.about });
  }

  #by(column) {
    const same = this.#sort.key === column.key;
    this.#sort = { key: column.key, up: same ? !this.#sort.up : Boolean(column.up) };
    this.#fill();
  }

  #fill() {
    const column = this.columns.find((entry) => entry.key === this.#sort.key);
    const sign = this.#sort.up ? 1 : -1;
    const order = (a, b) => (typeof a === 'string' ? a.localeCompare(b) : a - b);
    const sorted = [...this.entries];
    if (column) sorted.sort((a, b) => sign * order(column.value(a), column.value(b)));
    for (const [key, head] of this.heads) {
      head.setAttribute('aria-sort', key !== column?.key ? 'none' : this.#sort.up ? 'ascending' : 'descending');
    }
    this.table.tBodies[0].replaceChildren(...sorted.slice(0, this.#limit).map((entry) => this.#row(entry)));
    this.more.hidden = sorted.length <= this.#limit;
    this.more.textContent = `Show all ${this.all}`;
  }

  #row(entry) {
    if (!this.#rows.has(entry)) {
      const cells = this.columns.map((column) =>
        column.cell
          ? column.cell(entry)
          : td(column.label ?? column.title.toLowerCase(), column.show(entry), { class: 'figure' }),
      );
      this.#rows.set(entry, el('tr', { role: 'row', ...this.dress(entry) }, cells));
    }
    return this.#rows.get(entry);
  }
}
