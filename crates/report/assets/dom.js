// Elements. Text is only inserted as text: names in the data may contain anything.

/** Records errors where a test, or a person who reports one, finds them. */
addEventListener('error', (event) => {
  const root = document.documentElement;
  root.dataset.errors = `${root.dataset.errors ?? ''}${event.message}; `;
});

/** An element with attributes and children; strings become text nodes, null is skipped, `on…` are listeners. */
function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'style') for (const [key, entry] of Object.entries(value)) element.style.setProperty(key, entry);
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** A section with its heading. */
function section(id, title, ...children) {
  return el('section', { id, 'aria-labelledby': `${id}-title` }, el('h2', { id: `${id}-title` }, title), ...children);
}

function button(text, onclick, attributes = {}) {
  return el('button', { type: 'button', onclick, ...attributes }, text);
}

/** The name of a flow. It may break after its separators, and is complete in the tooltip. */
function flowName(flow) {
  const name = el('span', { class: 'flow', title: flow.length > 40 ? flow : null });
  for (const part of flow.split(/(?<=[:>/\]] ?)(?=[^ ])/)) name.append(part, el('wbr'));
  return name;
}

/** A line for screen readers. */
function announce(text) {
  document.getElementById('live').textContent = text;
}

/**
 * The model of the page. Times and byte totals that can exceed 2^53 are strings of digits in it; rounded to doubles
 * they are exact enough to draw. Seeds stay strings.
 */
function embeddedModel() {
  const isDecimal = (key, value) => /(_ns|bytes)$/.test(key) && typeof value === 'string' && /^-?\d+$/.test(value);
  const number = (key, value) => (isDecimal(key, value) ? Number(value) : value);
  return JSON.parse(document.getElementById('report-data').textContent, number);
}
