// What the test of a simulation's page reads from it and does in it, as one JSON message.
(async () => {
  const later = () => new Promise((done) => setTimeout(done, 100));
  const all = (selector) => [...document.querySelectorAll(selector)];
  const texts = (selector) => all(selector).map((element) => element.textContent);
  const rows = (id) => all(`#${id} tbody tr`).map((row) => [...row.cells].map((cell) => cell.innerText));
  // The number of colours in each canvas: one means an empty canvas.
  const colours = () =>
    all('#sim-course canvas, .completion canvas').map((canvas) => {
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      return new Set(new Uint32Array(data.buffer)).size;
    });
  const luminance = (rgb) => {
    const [r, g, b] = rgb.map((part) => (part / 255 <= 0.04045 ? part / 3294.6 : ((part / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const channels = (colour) => (colour.match(/[\d.]+/g) ?? []).map(Number);
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const [r, g, b, alpha = 1] = channels(getComputedStyle(at).backgroundColor);
      if (alpha === 1) return [r, g, b];
    }
    return [255, 255, 255];
  };
  // The text that is hardest to read, with its contrast.
  const hardest = () => {
    let worst = [99, 'no text'];
    const walker = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const { parentElement: element, data } = walker.currentNode;
      if (!data.trim() || element.getClientRects().length === 0 || element.closest('button:disabled')) continue;
      const [ink, paper] = [channels(getComputedStyle(element).color).slice(0, 3), ground(element)].map(luminance);
      const contrast = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
      if (contrast < worst[0]) worst = [contrast, data];
    }
    return worst;
  };
  const choose = async (name, value) => {
    const select = document.querySelector(`[data-choice=${name}]`);
    select.value = value;
    select.dispatchEvent(new Event('change'));
    await later();
  };
  const press = (selector) => document.querySelector(selector).click();
  const observed = {};
  const panels = () => texts('.panel-title');
  const host = document.querySelector('.panels');
  await later();
  document.getElementById('scenario').open = true;
  observed.sections = texts('main h2');
  observed.head = texts('#sim dd');
  observed.scenario = document.querySelector('.source code').textContent;
  [observed.links, observed.groups, observed.flows] = ['sim-links', 'sim-groups', 'sim-flows'].map(rows);
  observed.shown = [observed.flows.length, texts('#sim-flows .scroll + button')[0]];
  press('#sim-flows .scroll + button');
  observed.shown.push(rows('sim-flows').length);
  const resent = all('#sim-flows th').find((head) => head.textContent === 'Resent');
  observed.sorted = [];
  for (const _ of 'ab') {
    resent.querySelector('button').click();
    observed.sorted.push([resent.getAttribute('aria-sort'), ...rows('sim-flows').map((row) => row[4])]);
  }
  observed.light = [colours(), hardest()];
  observed.panels = [panels()];
  await choose('link', '1');
  await choose('of', 'rtt');
  await choose('by', 'flow');
  observed.panels.push(panels());
  await choose('link', '0');
  // What the lines of the first panel are at the cursor.
  const over = document.querySelector('.panels .u-over');
  const box = over.getBoundingClientRect();
  const at = { bubbles: true, clientX: box.left + box.width / 2, clientY: box.top + 20 };
  for (const type of ['mouseenter', 'mousemove']) over.dispatchEvent(new MouseEvent(type, at));
  await later();
  observed.cursor = [panels(), all('.panels .u-cursor-x').map((line) => line.style.transform), texts('#sim-course .legend .value')];
  over.dispatchEvent(new MouseEvent('mouseleave', { clientX: 0, clientY: 0 }));
  // Keys move all panels at once.
  observed.captions = texts('#sim-course .caption');
  for (const key of ['+', '+', 'ArrowRight', '0']) {
    host.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
    observed.captions.push(...texts('#sim-course .caption'));
  }
  press('#sim-course .legend button');
  observed.hidden = texts('#sim-course [aria-pressed=false]').length;
  press('#sim-course .legend button');
  while (document.documentElement.dataset.theme !== 'dark') press('#theme');
  await later();
  observed.dark = [colours(), hardest()];
  observed.errors = document.documentElement.dataset.errors ?? '';
  parent.postMessage(JSON.stringify(observed), '*');
})();
